//! The timeline of the worker, with the cause of each recent moment.
//!
//! The worker extends the timeline by the readings of the clock that it takes for its batches. The
//! lateness of a run, from its tick to the reading after its batch, is an interval at the end of
//! the [timeline](crate::lateness::Timeline). Therefore its parts add up to it.

use crate::counters::Counter;
use crate::counters::LateCause::{self, Executor, Lock, Quota, System, Tasks, Turn};
use crate::deadline::Nanos;
use crate::lateness::{self, QuotaWatch};
use crate::sync::cpu_use;
use std::mem;

/// The shortest piece of work, 100 us, after which the worker asks the system if it lost the CPU.
/// Asking is one system call.
const MIN_LOSS: Nanos = 100_000;

/// An interval of any length is split to about a quarter. Runs are seldom late by much more than
/// the pieces of work before them.
const RESOLUTION: u64 = 4;

/// The timeline of one worker or driver.
pub(super) struct Timeline {
    causes: lateness::Timeline<LateCause>,
    /// The part of the time in which the worker has waited for locks that is on the timeline.
    lock_waits: u64,
    /// The time of the last note, with the CPU time of the thread and the number of times it had
    /// blocked. Stays `None` on virtual time.
    cpu_use: Option<(Nanos, (u64, usize))>,
    quota: QuotaWatch,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            causes: lateness::Timeline::new(System, RESOLUTION),
            lock_waits: 0,
            cpu_use: None,
            quota: QuotaWatch::default(),
        }
    }
}

impl Timeline {
    /// Returns the causes of all moments up to the last reading of the clock.
    #[inline]
    pub(super) fn causes(&self) -> &lateness::Timeline<LateCause> {
        &self.causes
    }

    /// Watches the CPU quota from now on. Not called on virtual time.
    pub(super) fn watch_quota(&mut self, quota: QuotaWatch) {
        self.quota = quota;
    }

    /// Gives the quota its part of the time from `due` to the end of the timeline.
    #[inline]
    pub(super) fn name_quota(&mut self, due: Nanos) {
        self.quota.name(&mut self.causes, due, System, Quota);
    }

    /// Extends the timeline to `now`.
    #[inline]
    pub(super) fn extend(&mut self, now: Nanos, cause: LateCause, task: Option<&'static str>) {
        self.causes.extend(now, cause, task);
    }

    /// Extends the timeline to `now` by the turn's own work, with the waits for locks in it.
    #[inline]
    pub(super) fn extend_turn(&mut self, now: Nanos, lock_waits: &Counter) {
        let waited = lock_waits.get();
        let wait = waited.wrapping_sub(mem::replace(&mut self.lock_waits, waited));
        if wait > 0 {
            self.extend(now.min(self.causes.end().saturating_add(wait)), Lock, None);
        }
        self.extend_by_work(now, Turn, None, wait);
    }

    /// Extends the timeline to `now` by work of the calling thread, which waited for `waited`
    /// nanoseconds since the last note. Returns the time in which it did not have the CPU. That
    /// time is the system's, but a task that blocks counts all of its time.
    #[inline]
    pub(super) fn extend_by_work(
        &mut self,
        now: Nanos,
        cause: LateCause,
        task: Option<&'static str>,
        waited: Nanos,
    ) -> Nanos {
        let took = now.saturating_sub(self.causes.end());
        let lost = if took < MIN_LOSS && waited == 0 { 0 } else { self.lost(now, cause, waited).min(took) };
        self.extend(now - lost, cause, task);
        self.extend(now, System, None);
        lost
    }

    /// Returns the time since the last note in which the calling thread neither ran nor `waited`,
    /// and makes a note. Returns 0 if user code may have blocked.
    #[cold]
    fn lost(&mut self, now: Nanos, cause: LateCause, waited: Nanos) -> Nanos {
        let Some((then, (used, blocked))) = self.cpu_use else { return 0 };
        self.note_cpu_use(now);
        match self.cpu_use {
            Some((_, (now_used, now_blocked))) if cause == Turn || now_blocked == blocked => {
                now.saturating_sub(then).saturating_sub(waited).saturating_sub(now_used.saturating_sub(used))
            }
            _ => 0,
        }
    }

    /// Notes how much CPU time the calling thread has used at `now`. Not called on virtual time.
    pub(super) fn note_cpu_use(&mut self, now: Nanos) {
        self.cpu_use = cpu_use().map(|at| (now, at));
    }

    /// Returns the time since `begin` in which the worker had the CPU and the locks.
    pub(super) fn worked_since(&self, begin: Nanos) -> Nanos {
        let parts = self.causes.split(begin, self.causes.end());
        [Turn, Tasks, Executor].map(|cause| parts.part_nanos(cause)).iter().sum()
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
