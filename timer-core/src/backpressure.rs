//! Back-pressure: callers slow down while the worker is overloaded.
//!
//! On a busy machine the scheduler gives the worker only its fair share of CPU time. If many
//! threads schedule timeouts at full speed, expiring them can take more than that share, and the
//! backlog would grow without limit. Therefore a thread that schedules at least [`BURST`] timeouts
//! within one [`PERIOD`] while the worker is late slows down, once per period:
//!
//! 1. If the worker has been inside one and the same call of user code for [`LONG_CALL`], the
//!    thread continues. The worker does not lack CPU time, so slowing down would not help. Once
//!    [`MAX_GROWTH`] more timeouts are pending than at the beginning of that call, threads slow
//!    down nonetheless, because the worker has to expire them afterwards.
//! 2. If the worker is less than [`SLEEP_FROM`] late, the thread yields its CPU. Yielding does not
//!    block. If no other thread wants the CPU, the caller continues at once.
//! 3. Otherwise the thread sleeps for a tenth of the lateness, at most [`MAX_SLEEP`]. If a tenth of
//!    the lateness is more than that, a quarter of [`BURST`] is enough to slow a thread down, so
//!    threads sleep more often. With many threads per CPU, yielding is not enough, because each
//!    yield lasts a full round of all others, of which the worker gets one share. If the builder
//!    forbids sleeping, the thread yields.
//!
//! A batch counts and slows down after each of its chunks. Threads that schedule fewer timeouts
//! never slow down. A poll of a future never does, because a poll that registers the future returns
//! `Pending` to its runtime anyway, and a task cannot register more futures than it holds. Nor does
//! the worker of any timer, whichever timer it schedules on. Virtual time and drivers of event
//! loops have no worker and are never late.
//!
//! # The published state
//!
//! The worker publishes the time since which it has had work to do, and a word that is odd while it
//! is inside user code (a task, a waker, a call of the executor). That word changes with each call.
//! A thread that finds the same odd value as an earlier thread therefore knows that one call has
//! lasted since then. So the first thread that finds an odd value records it with the time and the
//! number of pending timeouts. A worker that is preempted inside a short call looks the same, but
//! for less than [`LONG_CALL`], because callers slow down in that time. Callers read the second
//! word only when the worker is late, and it has its own cache line.

use crate::deadline::Nanos;
use crate::sync::{AtomicU64, Ordering, is_burst, pause, yield_now};
use std::time::Duration;

/// The lateness from which the worker counts as late, 4 ms. A thread that wakes up on busy CPUs may
/// wait that long for a CPU.
const GRACE: Nanos = 4_000_000;

/// The lateness from which callers sleep instead of yielding, 20 ms.
const SLEEP_FROM: Nanos = 20_000_000;

/// The divisor of the lateness that gives the length of a sleep, so that a short delay costs
/// little.
const SHARE: Nanos = 10;

/// The longest sleep of a call. The promise is 10 ms; the rest is for the wake-up.
const MAX_SLEEP: Nanos = 8_000_000;

/// The length of a period, as the binary logarithm of its nanoseconds (2^20 ns are 1.05 ms).
const PERIOD: u32 = 20;

/// The number of periods (100 ms) after which a call of user code is taken to block the worker. A
/// worker that is preempted inside a call gets the CPU again within that time.
const LONG_CALL: u32 = 95;

/// The number by which the pending timeouts may grow during such a call before callers slow down,
/// 2^18. The worker expires them in a fraction of a second.
const MAX_GROWTH: u64 = 262_144;

/// The number of timeouts in a period from which a thread slows down. At full speed a thread
/// schedules thousands in a period, so fewer than one call in a thousand slows down.
const BURST: u64 = 128;

/// The way in which a caller slows down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slowdown {
    Yield,
    Sleep(Duration),
}

/// The lateness of one timer's worker.
#[derive(Debug)]
pub(crate) struct Backpressure {
    /// The time from which the worker is late.
    late_from: AtomicU64,
    /// The last odd value of `user_code` that a caller found while the worker was late, and the
    /// period in which the first caller found it. Each has 32 bits.
    call_seen: AtomicU64,
    /// The number of timeouts that were pending when `call_seen` was written.
    pending_seen: AtomicU64,
    /// Whether callers may sleep.
    may_sleep: bool,
    user_code: UserCode,
}

/// Odd while the worker is inside user code.
#[derive(Debug, Default)]
#[repr(align(64))]
struct UserCode(AtomicU64);

impl Backpressure {
    pub(crate) fn new(may_sleep: bool) -> Self {
        let late_from = AtomicU64::new(Nanos::MAX);
        let call_seen = AtomicU64::new(0);
        let pending_seen = AtomicU64::new(0);
        Self { late_from, call_seen, pending_seen, may_sleep, user_code: UserCode::default() }
    }

    /// Returns `true` if callers may sleep.
    pub(crate) fn may_sleep(&self) -> bool {
        self.may_sleep
    }

    /// Publishes that the worker has work since `due`, or will have then. Called by the worker, at
    /// its end with `Nanos::MAX`.
    pub(crate) fn set_due(&self, due: Nanos) {
        // ORDERING: Relaxed, the value decides only how the CPUs are shared.
        self.late_from.store(due.saturating_add(GRACE), Ordering::Relaxed);
    }

    /// Calls `user_code`, which must not unwind. Called by the turn's thread.
    #[inline]
    pub(crate) fn inside_user_code<R>(&self, user_code: impl FnOnce() -> R) -> R {
        self.step();
        let result = user_code();
        self.step();
        result
    }

    #[inline]
    fn step(&self) {
        let word = &self.user_code.0;
        // ORDERING: Relaxed, there is one writer, and the value decides only how the CPUs are
        // shared.
        word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Returns `true` if the worker is late at `now`.
    #[inline]
    pub(crate) fn is_late(&self, now: Nanos) -> bool {
        // ORDERING: Relaxed, as in `set_due`.
        now > self.late_from.load(Ordering::Relaxed)
    }

    /// Slows down the calling thread if the worker is late and the thread schedules a burst. The
    /// thread has scheduled `n` timeouts and holds no lock. `pending` returns the number of pending
    /// timeouts.
    #[inline]
    pub(crate) fn after_scheduling(&self, now: Nanos, n: usize, pending: impl FnOnce() -> u64) {
        if self.is_late(now) {
            self.slow_down(now, n, pending);
        }
    }

    #[cold]
    #[inline(never)]
    fn slow_down(&self, now: Nanos, n: usize, pending: impl FnOnce() -> u64) {
        match self.choose_slowdown(now, n, pending) {
            None => {}
            Some(Slowdown::Yield) => yield_now(),
            Some(Slowdown::Sleep(duration)) => pause(duration),
        }
    }

    /// Decides whether and how the calling thread slows down.
    fn choose_slowdown(&self, now: Nanos, n: usize, pending: impl FnOnce() -> u64) -> Option<Slowdown> {
        // ORDERING: Relaxed, as in `set_due`.
        let late = now.saturating_sub(self.late_from.load(Ordering::Relaxed)) + GRACE;
        // A sleep must not be longer, so threads sleep more often.
        let burst = if late / SHARE < MAX_SLEEP { BURST } else { BURST / 4 };
        if !is_burst(now >> PERIOD, n as u64, burst) {
            return None;
        }
        if self.is_in_long_call(now, pending) {
            return None;
        }
        if late < SLEEP_FROM || !self.may_sleep {
            return Some(Slowdown::Yield);
        }
        Some(Slowdown::Sleep(Duration::from_nanos((late / SHARE).min(MAX_SLEEP))))
    }

    /// Returns `true` if the worker has been inside one call of user code for [`LONG_CALL`], as far
    /// as callers have noticed, and fewer than [`MAX_GROWTH`] timeouts were added since.
    fn is_in_long_call(&self, now: Nanos, pending: impl FnOnce() -> u64) -> bool {
        // ORDERING: Relaxed here and below, as in `step`.
        let call = self.user_code.0.load(Ordering::Relaxed) as u32;
        if call % 2 == 0 {
            return false;
        }
        let period = (now >> PERIOD) as u32;
        let seen = self.call_seen.load(Ordering::Relaxed);
        if (seen >> 32) as u32 != call {
            // A thread that was preempted here may replace the record of a later call. The time and
            // the growth of that call are then counted anew.
            // ORDERING: Relaxed, as in `step`, also below.
            self.pending_seen.store(pending(), Ordering::Relaxed);
            self.call_seen.store(u64::from(call) << 32 | u64::from(period), Ordering::Relaxed);
            return false;
        }
        // `now` may have been read before the call was recorded. The difference then wraps around.
        let is_long = (LONG_CALL..u32::MAX / 2).contains(&period.wrapping_sub(seen as u32));
        // ORDERING: Relaxed, as in `step`.
        is_long && pending().saturating_sub(self.pending_seen.load(Ordering::Relaxed)) < MAX_GROWTH
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    mod calls;

    use super::*;
    use crate::sync::never_slow_down;
    use std::thread;

    const DUE: Nanos = 1 << 40;
    const LATE: Nanos = DUE + GRACE + 1;
    const STALL: Nanos = (LONG_CALL as Nanos + 1) << PERIOD;

    /// Returns the slowdown at each time, decided on a new thread that schedules a burst each time.
    fn slowdowns(worker: &Backpressure, times: &[Nanos]) -> Vec<Option<Slowdown>> {
        let mut decisions = Vec::new();
        thread::scope(|scope| {
            scope
                .spawn(|| decisions.extend(times.iter().map(|&now| worker.choose_slowdown(now, BURST as usize, || 0))));
        });
        decisions
    }

    fn late_worker() -> Backpressure {
        let worker = Backpressure::new(true);
        worker.set_due(DUE);
        worker
    }

    #[test]
    fn only_a_late_worker_slows_callers_down() {
        let worker = late_worker();
        assert_eq!([0, DUE, DUE + GRACE, LATE].map(|now| worker.is_late(now)), [false, false, false, true]);
        worker.set_due(Nanos::MAX);
        assert!(!worker.is_late(Nanos::MAX), "it has ended");
        assert!(!Backpressure::new(true).is_late(Nanos::MAX), "it has not begun");
    }

    #[test]
    fn callers_sleep_for_a_share_of_the_lateness() {
        let worker = late_worker();
        let sleep = |micros| Some(Slowdown::Sleep(Duration::from_micros(micros)));
        let times = [LATE, DUE + 18_000_000, DUE + SLEEP_FROM, DUE + 50_000_000, DUE + 10_000_000_000];
        let expected = [Some(Slowdown::Yield), Some(Slowdown::Yield), sleep(2_000), sleep(5_000), sleep(8_000)];
        assert_eq!(slowdowns(&worker, &times), expected);
    }

    #[test]
    fn callers_yield_if_sleeping_is_forbidden() {
        let worker = Backpressure::new(false);
        worker.set_due(DUE);
        assert_eq!(slowdowns(&worker, &[DUE + 10_000_000_000]), [Some(Slowdown::Yield)]);
    }

    #[test]
    fn a_long_call_of_user_code_slows_nobody_down() {
        let worker = Backpressure::new(false);
        worker.set_due(DUE);
        let times = [LATE, LATE + STALL / 2, LATE + STALL, LATE + 100 * STALL];
        let slow = Some(Slowdown::Yield);
        worker.inside_user_code(|| assert_eq!(slowdowns(&worker, &times), [slow, slow, None, None]));
        assert_eq!(slowdowns(&worker, &times), [slow; 4], "it has returned");
    }

    #[test]
    fn many_new_timeouts_in_a_long_call_slow_callers_down() {
        let worker = late_worker();
        let is_slowed = |now, pending| {
            let decide = || worker.choose_slowdown(now, BURST as usize, || pending).is_some();
            thread::scope(|scope| scope.spawn(decide).join().unwrap())
        };
        let later = LATE + STALL;
        worker.inside_user_code(|| {
            assert!(is_slowed(LATE, 1_000), "a call that has just begun");
            let pending = [0, 1_000, 999 + MAX_GROWTH, 1_000 + MAX_GROWTH, 1_000];
            assert_eq!(pending.map(|pending| is_slowed(later, pending)), [false, false, false, true, false]);
        });
        worker.inside_user_code(|| {
            assert!(is_slowed(later, 2 * MAX_GROWTH), "the next call has just begun");
            assert!(!is_slowed(later + STALL, 2 * MAX_GROWTH), "nothing was added during this call");
        });
    }

    #[test]
    fn many_calls_of_user_code_slow_callers_down() {
        let slowed = thread::spawn(|| {
            let worker = late_worker();
            let slows_down =
                |now| worker.inside_user_code(|| worker.choose_slowdown(now, BURST as usize, || 0).is_some());
            (0..4).filter(|n| slows_down(LATE + n * STALL)).count()
        });
        assert_eq!(slowed.join().unwrap(), 4);
    }

    #[test]
    fn a_thread_notices_the_calls_of_several_timers() {
        let workers = [0; 8].map(|_| late_worker());
        workers.iter().for_each(|worker| worker.step());
        let slowed = |now| workers.iter().filter(|worker| slowdowns(worker, &[now]) != [None]).count();
        assert_eq!([LATE, LATE + STALL].map(slowed), [8, 0], "each thread is new, so none remembers a look");
        thread::spawn(move || {
            workers.iter().for_each(|worker| (0..2).for_each(|_| worker.step()));
            let mut times = (0..16).map(|n| LATE + (n + 2) * STALL);
            let mut slowed = || {
                let now = times.by_ref().take(8);
                workers
                    .iter()
                    .zip(now)
                    .filter(|(it, now)| it.choose_slowdown(*now, BURST as usize, || 0).is_some())
                    .count()
            };
            assert_eq!([slowed(), slowed()], [8, 0], "a thread that goes round the timers");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_reading_from_before_the_first_look_finds_no_long_call() {
        let worker = late_worker();
        worker.step();
        let slow = Some(Slowdown::Sleep(Duration::from_millis(8)));
        assert_eq!(slowdowns(&worker, &[LATE + 2 * STALL, LATE + STALL]), [slow, slow]);
    }

    #[test]
    fn no_call_sleeps_longer_than_promised() {
        let promised = Duration::from_millis(10);
        for late in (0..64).map(|bit| Nanos::MAX >> bit) {
            let worker = Backpressure::new(true);
            worker.set_due(0);
            let slowdown = slowdowns(&worker, &[late])[0];
            assert!(!matches!(slowdown, Some(Slowdown::Sleep(it)) if it >= promised), "{late}: {slowdown:?}");
        }
    }

    #[test]
    fn a_thread_slows_down_once_per_period() {
        let slowed = thread::spawn(|| {
            let workers = [late_worker(), late_worker()];
            let begin = (LATE >> PERIOD) + 1;
            let times = (0..8).map(|quarter| (begin << PERIOD) + (quarter << (PERIOD - 2)));
            let a_quarter =
                |worker: &&Backpressure, now| worker.choose_slowdown(now, BURST as usize / 4, || 0).is_some();
            times.map(|now| workers.iter().filter(|worker| a_quarter(worker, now)).count()).collect::<Vec<_>>()
        });
        assert_eq!(slowed.join().unwrap(), [0, 1, 0, 0, 0, 1, 0, 0], "whichever timer it schedules on");
    }

    #[test]
    fn a_quarter_of_a_burst_is_enough_if_the_worker_is_very_late() {
        let worker = late_worker();
        let slows_down = |(late, n): (Nanos, u64)| {
            let decide = || worker.choose_slowdown(DUE + late, n as usize, || 0).is_some();
            thread::scope(|scope| scope.spawn(decide).join().unwrap())
        };
        let quarter = BURST / 4;
        let cases = [(79_999_999, quarter), (80_000_000, quarter - 1), (80_000_000, quarter)];
        assert_eq!(cases.map(slows_down), [false, false, true]);
    }

    #[test]
    fn a_worker_never_slows_down() {
        let slowdown = thread::spawn(|| {
            never_slow_down();
            late_worker().choose_slowdown(LATE, BURST as usize, || 0)
        });
        assert_eq!(slowdown.join().unwrap(), None);
    }
}
