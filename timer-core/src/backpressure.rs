//! Callers give way to a worker that is late.
//!
//! The system shares its CPUs among all threads that are busy, and what many callers leave to expire can take more than the
//! worker's share. Then lateness and memory would grow for as long as they go on. So a caller that schedules [`MANY`] timeouts
//! within a [`PERIOD`] while the worker is more than [`GRACE`] behind lets other threads have its CPU, once in that period. It waits
//! for nothing: if no other thread wants the CPU, it goes on at once. Callers that schedule less are not the cause.
//!
//! The worker writes since when it owes work: the tick that it sleeps until, or that its turn is about. One that is behind by more
//! than [`STUCK`] does not lack the CPU: a task blocks it, and no caller can help.
//!
//! Absent: timers that a program's loop turns, and virtual time. Their owners owe nothing. Nor is it asked of a worker that
//! schedules, whatever its timer.

use crate::sync::{AtomicU64, Ordering, give_way};
use crate::time::Nanos;

/// The worker may be behind by 4 ms: a thread that wakes on busy CPUs waits as long for its turn.
const GRACE: Nanos = 4_000_000;

/// If it is late by a second more, a task blocks it.
const STUCK: Nanos = 1_000_000_000;

/// 1.05 ms, as a number of bits.
const PERIOD: u32 = 20;

/// At full speed a thread schedules some thousands in a period, so fewer than one call in a thousand gives way.
const MANY: u64 = 128;

/// From when on the worker is late.
#[derive(Debug)]
pub(crate) struct Backpressure {
    late_from: AtomicU64,
}

impl Default for Backpressure {
    fn default() -> Self {
        Self { late_from: AtomicU64::new(Nanos::MAX) }
    }
}

impl Backpressure {
    /// For the worker: something is due at `due`, and it is about it, or will be then.
    pub(crate) fn owe(&self, due: Nanos) {
        // ORDERING: Relaxed, nothing hangs on it but how the CPUs are shared.
        self.late_from.store(due.saturating_add(GRACE), Ordering::Relaxed);
    }

    /// For the worker at its end.
    pub(crate) fn owe_nothing(&self) {
        self.owe(Nanos::MAX);
    }

    /// Whether a caller should give way.
    #[inline]
    pub(crate) fn is_late(&self, now: Nanos) -> bool {
        // ORDERING: Relaxed, as in `owe`.
        now > self.late_from.load(Ordering::Relaxed)
    }

    /// For a caller that has scheduled `n` timeouts, with nothing held. Whether it gave way.
    #[inline]
    pub(crate) fn give_way_if_late(&self, now: Nanos, n: usize) -> bool {
        self.is_late(now) && self.give_way(now, n)
    }

    #[cold]
    #[inline(never)]
    fn give_way(&self, now: Nanos, n: usize) -> bool {
        // ORDERING: Relaxed, as in `owe`.
        let late_from = self.late_from.load(Ordering::Relaxed);
        now.saturating_sub(late_from) < STUCK && give_way(now >> PERIOD, n as u64, MANY)
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use crate::sync::never_give_way;
    use std::thread;

    const DUE: Nanos = 1 << 40;

    #[test]
    fn a_caller_gives_way_to_a_late_worker_only() {
        // On a thread of its own, which has never given way: the first time at which it does.
        let first = |mut times: Vec<Nanos>| {
            let late = Backpressure::default();
            late.owe(DUE);
            let caller = thread::spawn(move || {
                times.retain(|&now| late.give_way_if_late(now, MANY as usize));
                times.first().copied()
            });
            caller.join().unwrap()
        };
        assert_eq!(first(vec![0, DUE, DUE + GRACE, DUE + GRACE + 1]), Some(DUE + GRACE + 1));
        assert_eq!(first(vec![DUE + GRACE + STUCK, u64::MAX]), None, "a task blocks it");
        assert!(!Backpressure::default().is_late(u64::MAX), "nothing is owed");
    }

    #[test]
    fn once_per_period_whatever_the_timer() {
        let gave_way = thread::spawn(|| {
            let timers = [Backpressure::default(), Backpressure::default()];
            timers.iter().for_each(|timer| timer.owe(DUE));
            let begin = ((DUE + GRACE) >> PERIOD) + 1;
            let times = (0..8).map(|quarter| (begin << PERIOD) + (quarter << (PERIOD - 2)));
            let a_quarter = |timer: &&Backpressure, now| timer.give_way_if_late(now, MANY as usize / 4);
            times.map(|now| timers.iter().filter(|timer| a_quarter(timer, now)).count()).collect::<Vec<_>>()
        });
        assert_eq!(gave_way.join().unwrap(), [0, 1, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_worker_gives_way_to_none() {
        let gave_way = thread::spawn(|| {
            never_give_way();
            let late = Backpressure::default();
            late.owe(DUE);
            late.give_way_if_late(DUE + GRACE + 1, MANY as usize)
        });
        assert!(!gave_way.join().unwrap());
    }
}
