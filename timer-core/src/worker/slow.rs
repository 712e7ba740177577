//! Slow tasks on the worker: records the longest batch, and logs a warning.

use crate::context::Context;
use crate::time::Nanos;
use std::time::Duration;

/// The warnings about slow tasks. Belongs to the owner of the turn.
#[derive(Default)]
pub(crate) struct SlowTasks {
    /// The time of the last warning.
    warned: Option<Nanos>,
    /// The number of slow batches since then.
    unsaid: u64,
}

impl SlowTasks {
    /// The shortest time between two warnings.
    const PAUSE: Nanos = 1_000_000_000;

    /// Records that a batch of `tasks` tasks held the owner of the turn for `nanos` until `now`. No
    /// single task took longer.
    #[inline]
    pub(crate) fn record(&mut self, context: &Context, tick: Nanos, tasks: usize, nanos: Nanos, now: Nanos) {
        context.counters.longest_batch.record(nanos, now);
        if nanos > tick {
            self.warn(context, tasks, nanos, now);
        }
    }

    #[cold]
    fn warn(&mut self, context: &Context, tasks: usize, nanos: Nanos, now: Nanos) {
        if self.warned.is_some_and(|warned| now.saturating_sub(warned) < Self::PAUSE) {
            self.unsaid += 1;
            return;
        }
        let at_most = Duration::from_nanos(nanos);
        let unsaid = std::mem::take(&mut self.unsaid);
        self.warned = Some(now);
        context.trace(|| {
            tracing::warn!(
                timer = %context.name,
                ?at_most,
                tasks,
                others_since_last_warning = unsaid,
                "a task held the worker for longer than a tick and delayed others: give it to an executor with threads"
            );
        });
    }
}
