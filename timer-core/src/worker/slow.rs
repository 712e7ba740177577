//! The durations of batches on the worker, and the warnings about slow tasks.

use crate::deadline::Nanos;
use crate::engine::Engine;
use crate::timer_context::TimerContext;
use std::time::Duration;

/// The reasons for which a batch took long.
#[derive(Clone, Copy, Default)]
pub(crate) struct Blame {
    /// The name of the tasks if all have the same one.
    pub(super) task: Option<&'static str>,
    /// The time for which the worker had lost its CPU.
    pub(super) lost: Nanos,
}

/// A slow batch that no warning has named yet.
struct Slow {
    task: Option<&'static str>,
    tasks: usize,
    nanos: Nanos,
    end: Nanos,
    /// The number of timeouts that were due by the end of the batch and ran afterwards.
    waited: u64,
}

/// The warnings about slow tasks. Belongs to the turn's thread.
#[derive(Default)]
pub(crate) struct SlowTasks {
    /// The time of the last warning.
    warned: Option<Nanos>,
    /// The next warning. It is emitted when all timeouts that waited for the batch have run.
    pending: Option<Slow>,
    /// The number of slow batches since the last warning.
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
    pub(crate) fn record(&mut self, engine: &Engine, tasks: usize, began: Nanos, now: Nanos, blame: Blame) {
        let nanos = now.saturating_sub(began);
        engine.context.counters.longest_batch.record(nanos, now);
        let nanos = nanos.saturating_sub(blame.lost);
        // Tasks that hold up the worker for longer than a tick cause a warning.
        let tick = engine.context.tick_nanos();
        if nanos > if tasks == 1 { tick } else { tick.max(Self::MAX_BATCH_TIME) } {
            self.note(Slow { task: blame.task, tasks, nanos, end: now, waited: 0 });
        }
    }

    #[cold]
    fn note(&mut self, slow: Slow) {
        if self.pending.is_some() || self.warned.is_some_and(|warned| slow.end.saturating_sub(warned) < Self::PAUSE) {
            self.suppressed += 1;
        } else {
            self.warned = Some(slow.end);
            self.pending = Some(slow);
        }
    }

    /// Counts the timeouts that waited for the slow batch among those that were due at `dues` and
    /// have run. If one of them did not wait, no other is left that did, so the warning is emitted.
    #[inline]
    pub(super) fn waited(&mut self, dues: impl ExactSizeIterator<Item = Nanos>, context: &TimerContext) {
        let Some(slow) = &mut self.pending else { return };
        let count = dues.len();
        let waited = dues.filter(|due| *due <= slow.end).count();
        slow.waited += waited as u64;
        if waited < count {
            self.emit(context);
        }
    }

    /// Emits the pending warning.
    pub(super) fn emit(&mut self, context: &TimerContext) {
        if let Some(slow) = self.pending.take() {
            self.warn(slow, context);
        }
    }

    #[cold]
    fn warn(&mut self, slow: Slow, context: &TimerContext) {
        let suppressed = std::mem::take(&mut self.suppressed);
        let at_most = Duration::from_nanos(slow.nanos);
        let task = slow.task.unwrap_or("unknown");
        context.trace(|| {
            tracing::warn!(
                timer = %context.name,
                task,
                ?at_most,
                tasks = slow.tasks,
                waited = slow.waited,
                others_since_last_warning = suppressed,
                "tasks held the worker for longer than a tick and delayed others; slow tasks belong on an executor with threads"
            );
        });
    }
}
