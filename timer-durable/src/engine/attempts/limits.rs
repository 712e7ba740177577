//! Time limits of attempts.
//!
//! An attempt that is cut off ends as one that has failed. Its handler is told and may go on, so
//! the next attempt can run beside it. A blocking handler keeps its thread until it returns. The
//! default executor therefore gets another thread for each such handler, up to a limit.

use super::Attempts;
use crate::TimeoutId;
use crate::message::{AttemptEnd, AttemptResult};
use crate::retry::Retry;
use crate::store::Micros;
use crate::time::micros;
use std::sync::Arc;
use std::time::Duration;

impl Attempts {
    /// Returns the time of the next look at an attempt with a time limit.
    pub(crate) fn next_look(&self) -> Option<Micros> {
        self.looks.first().map(|(time, _)| *time)
    }

    /// Returns the number of attempts that were cut off and whose handlers have not returned.
    pub(crate) fn stuck(&self) -> usize {
        self.stuck.len()
    }

    /// Looks at a running attempt after `pause`.
    pub(crate) fn look_after(&mut self, id: TimeoutId, pause: Duration, now: Micros) {
        let Some(running) = self.running.get_mut(&id) else { return };
        let look = now.saturating_add(micros(pause).max(1));
        running.look = Some(look);
        self.looks.insert((look, id));
    }

    /// Cuts off the next attempt whose handler runs for longer than the limit of its topic. Returns
    /// its topic and its end. A handler that waits for a thread has not started.
    pub(crate) fn cut_off(&mut self, now: Micros) -> Option<(Arc<str>, AttemptEnd)> {
        while let Some((_, id)) = self.looks.first().copied().filter(|(look, _)| *look <= now) {
            self.looks.pop_first();
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
            let attempt = running.attempt;
            let topic = running.topic.clone();
            self.stuck.insert((id, attempt), false);
            tracing::warn!(timer = %self.settings.name, %topic, %id, attempt, ?limit, "an attempt is cut off");
            let result = AttemptResult::CutOff(Retry::new(format_args!("the handler ran for more than {limit:?}")));
            return Some((topic, AttemptEnd { id, attempt, result }));
        }
        None
    }
}
