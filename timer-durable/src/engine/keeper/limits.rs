//! Time limits of attempts.
//!
//! An attempt that is cut off ends as one that has failed. Its handler is told and may go on, so
//! the next attempt can run beside it. A blocking handler keeps its thread until it returns. The
//! default executor therefore gets another thread for each such handler, up to
//! [`MAX_EXTRA_THREADS`].

use super::Keeper;
use crate::TimeoutId;
use crate::figures::count;
use crate::message::{AttemptEnd, AttemptResult};
use crate::retry::Retry;
use crate::store::{Micros, Store};
use crate::time::micros;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The threads of the default executor.
pub(crate) const THREADS: usize = 4;

/// The most threads by which the default executor grows. It keeps them.
const MAX_EXTRA_THREADS: usize = 64;

/// The attempts whose topics have a time limit.
#[derive(Default)]
pub(super) struct Limits {
    /// The time of the next look at each attempt, not after its limit.
    looks: BTreeSet<(Micros, TimeoutId)>,
    /// Attempts that were cut off and whose handlers have not returned, with `true` for those that
    /// transactions of the user have ended.
    stuck: HashMap<(TimeoutId, u32), bool>,
    /// The number of threads by which the default executor has grown.
    extra_threads: usize,
}

impl Limits {
    pub(super) fn next(&self) -> Option<Micros> {
        self.looks.first().map(|(time, _)| *time)
    }

    /// Forgets an attempt that has ended. `look` is the time of its next look.
    pub(super) fn forget(&mut self, id: TimeoutId, look: Option<Micros>) {
        look.into_iter().for_each(|look| _ = self.looks.remove(&(look, id)));
    }

    /// Notes that a transaction of the user has ended an attempt.
    pub(super) fn ended_in_transaction(&mut self, ended: &AttemptEnd) {
        self.stuck.entry((ended.id, ended.attempt)).and_modify(|is_ended| *is_ended = true);
    }

    /// Notes that the handler of an attempt has returned. Returns `true` if a transaction of the
    /// user has ended the attempt after it was cut off.
    pub(super) fn returned(&mut self, ended: &AttemptEnd) -> bool {
        self.stuck.remove(&(ended.id, ended.attempt)).unwrap_or_default()
    }
}

impl<S: Store> Keeper<S> {
    /// Looks at a running attempt again after `pause`.
    pub(super) fn look_after(&mut self, id: TimeoutId, pause: Duration, now: Micros) {
        let Some(running) = self.running.get_mut(&id) else { return };
        let look = now.saturating_add(micros(pause).max(1));
        running.look = Some(look);
        self.limits.looks.insert((look, id));
    }

    /// Cuts off the attempts whose handlers run for longer than the limits of their topics. A
    /// handler that waits for a thread has not started.
    pub(super) fn cut_off(&mut self, now: Micros) {
        while let Some((_, id)) = self.limits.looks.first().copied().filter(|(look, _)| *look <= now) {
            self.limits.looks.pop_first();
            let Some(running) = self.running.get_mut(&id) else { continue };
            running.look = None;
            let settings = self.settings.topics.get(&running.topic);
            let Some(limit) = settings.and_then(|topic| topic.time_limit) else { continue };
            if running.progress.has_returned() {
                continue;
            }
            let ran = running.progress.ran();
            // On virtual time, an attempt starts when it begins.
            let ran = ran.map_or(Duration::ZERO, |ran| if self.settings.settle.is_some() { limit } else { ran });
            if ran < limit {
                self.look_after(id, limit - ran, now);
                continue;
            }
            running.progress.cut_off();
            let (attempt, topic) = (running.attempt, &running.topic);
            count!(self.figures, Some(topic), timed_out);
            tracing::warn!(timer = %self.settings.name, %topic, %id, attempt, ?limit, "an attempt is cut off");
            let result = AttemptResult::CutOff(Retry::new(format_args!("the handler ran for more than {limit:?}")));
            self.unwritten.push_end(AttemptEnd { id, attempt, result });
            self.limits.stuck.insert((id, attempt), false);
            self.grow_pool();
        }
    }

    /// Adds a thread to the default executor for each handler that keeps one.
    fn grow_pool(&mut self) {
        let Some(pool) = &self.settings.pool else { return };
        let wanted = self.limits.stuck.len().min(MAX_EXTRA_THREADS);
        if wanted <= self.limits.extra_threads {
            return;
        }
        match pool.set_threads(THREADS + wanted) {
            Ok(()) => self.limits.extra_threads = wanted,
            Err(error) => {
                tracing::warn!(timer = %self.settings.name, %error, "no thread in place of a handler that hangs");
            }
        }
    }
}
