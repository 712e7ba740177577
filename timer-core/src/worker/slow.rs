//! The durations of batches on the worker, and the warnings about slow tasks.

use crate::deadline::Nanos;
use crate::engine::Engine;
use std::time::Duration;

/// The warnings about slow tasks. Belongs to the turn's thread.
#[derive(Default)]
pub(crate) struct SlowTasks {
    /// The time of the last warning.
    warned: Option<Nanos>,
    /// The number of slow batches since then.
    suppressed: u64,
}

impl SlowTasks {
    /// The shortest time between two warnings.
    const PAUSE: Nanos = 1_000_000_000;

    /// The time that a batch of several tasks may take, however short a tick is. A full batch of
    /// tasks of a few microseconds takes less.
    const MAX_BATCH_TIME: Nanos = 1_000_000;

    /// Records that a batch of `tasks` tasks held the turn's thread from `began` to `now`. No
    /// single task took longer.
    #[inline]
    pub(crate) fn record(&mut self, engine: &Engine, tasks: usize, began: Nanos, now: Nanos) {
        let nanos = now.saturating_sub(began);
        engine.context.counters.longest_batch.record(nanos, now);
        // Tasks that hold up the worker for longer than a tick cause a warning.
        let tick = engine.context.tick_nanos();
        if nanos > if tasks == 1 { tick } else { tick.max(Self::MAX_BATCH_TIME) } {
            self.warn(engine, tasks, nanos, now);
        }
    }

    #[cold]
    fn warn(&mut self, engine: &Engine, tasks: usize, nanos: Nanos, now: Nanos) {
        if self.warned.is_some_and(|warned| now.saturating_sub(warned) < Self::PAUSE) {
            self.suppressed += 1;
            return;
        }
        let (context, at_most) = (&engine.context, Duration::from_nanos(nanos));
        let suppressed = std::mem::take(&mut self.suppressed);
        self.warned = Some(now);
        context.trace(|| {
            tracing::warn!(
                timer = %context.name,
                ?at_most,
                tasks,
                others_since_last_warning = suppressed,
                "tasks held the worker for longer than a tick and delayed others; slow tasks belong on an executor with threads"
            );
        });
    }
}
