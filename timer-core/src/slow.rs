//! Tasks that hold the worker: the longest is counted, and people are warned.

use crate::engine::Engine;
use crate::time::Nanos;
use std::time::Duration;

/// Warns of tasks that hold the worker, at most once in a second.
#[derive(Default)]
pub(crate) struct SlowTasks {
    warned: Option<Nanos>,
    unsaid: u64,
}

impl SlowTasks {
    const PAUSE: Nanos = 1_000_000_000;

    #[inline]
    pub(crate) fn took(&mut self, engine: &Engine, nanos: Nanos) {
        engine.context.counters.task_took(u64::try_from(nanos).unwrap_or(u64::MAX));
        if nanos > engine.tick_nanos {
            self.warn(engine, nanos);
        }
    }

    #[cold]
    fn warn(&mut self, engine: &Engine, nanos: Nanos) {
        let context = &*engine.context;
        let now = context.clock.now();
        if self.warned.is_some_and(|warned| now.saturating_sub(warned) < Self::PAUSE) {
            self.unsaid += 1;
            return;
        }
        let took = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let unsaid = std::mem::take(&mut self.unsaid);
        self.warned = Some(now);
        context.tell(|| {
            tracing::warn!(
                timer = %context.name,
                ?took,
                others_since_last_warning = unsaid,
                "a task held the worker for longer than a tick and delayed others: give it to an executor with threads"
            );
        });
    }
}
