//! The current time, read from the system's monotonic clock or set by a manual driver.
//!
//! Steps of the wall clock have no effect, because it is never read. Times are u64 nanoseconds on
//! the scale of `Instant`. The scale is the same for all timers of the process.

use crate::deadline::{END_OF_TIME, Nanos, after};
use crate::sync::{AtomicU64, OnceLock, Ordering};
use std::time::{Duration, Instant};

/// One moment on both scales.
struct Anchor {
    instant: Instant,
    nanos: Nanos,
}

fn anchor() -> &'static Anchor {
    static ANCHOR: OnceLock<Anchor> = OnceLock::new();
    ANCHOR.get_or_init(Anchor::take)
}

/// Returns the current time in nanoseconds of the clock that `Instant` reads.
#[cfg(target_os = "linux")]
#[inline]
pub(crate) fn now() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// Returns the nanoseconds since one hour before the first reading in this process.
#[cfg(not(target_os = "linux"))]
#[inline]
pub(crate) fn now() -> Nanos {
    nanos_of(Instant::now())
}

/// Returns the time from now until `when`, or zero if it has come. Threads wait for this duration,
/// not until an instant, because a library that fakes the clock of [`Instant`] does not fake
/// [`now`].
pub(crate) fn until(when: Nanos) -> Duration {
    Duration::from_nanos(when.saturating_sub(now()))
}

/// Returns the time of the kernel's last tick. It is not later than [`now`] and seldom more than
/// [`MAX_COARSE_ERROR`] earlier. It costs a fifth of `now` on a machine that reads its counter
/// slowly.
#[inline]
fn coarse_now() -> Nanos {
    #[cfg(target_os = "linux")]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
        (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
    }
    #[cfg(not(target_os = "linux"))]
    now()
}

/// Several ticks of any kernel, in nanoseconds.
const MAX_COARSE_ERROR: Nanos = 50_000_000;

#[cfg(target_os = "linux")]
impl Anchor {
    /// Reads both clocks at one moment, as nearly as possible. The anchor uses the later of the two
    /// readings, so that an `Instant` converts to a time that is late by the distance of the two
    /// readings, some tens of nanoseconds, and never early.
    fn take() -> Anchor {
        const TRIES: usize = 16;
        let readings = [(); TRIES].map(|()| {
            let before = now();
            let instant = Instant::now();
            let nanos = now();
            (nanos.saturating_sub(before), Anchor { instant, nanos })
        });
        let closest = readings.into_iter().min_by_key(|(distance, _)| *distance);
        closest.map_or_else(|| Anchor { instant: Instant::now(), nanos: now() }, |(_, anchor)| anchor)
    }
}

#[cfg(not(target_os = "linux"))]
impl Anchor {
    fn take() -> Anchor {
        Anchor { instant: Instant::now(), nanos: 3_600_000_000_000 }
    }
}

/// Returns the instant of `at`. If the platform cannot represent it, returns an earlier distant
/// instant for a late `at`, and the anchor for an early one.
pub(crate) fn instant(at: Nanos) -> Instant {
    let anchor = anchor();
    if at < anchor.nanos {
        let before = Duration::from_nanos(anchor.nanos - at);
        return anchor.instant.checked_sub(before).unwrap_or(anchor.instant);
    }
    let mut after = Duration::from_nanos(at - anchor.nanos);
    loop {
        match anchor.instant.checked_add(after) {
            Some(instant) => return instant,
            None => after /= 2,
        }
    }
}

/// Returns the time of `instant`, clamped to the scale.
pub(crate) fn nanos_of(instant: Instant) -> Nanos {
    let anchor = anchor();
    match instant.checked_duration_since(anchor.instant) {
        Some(elapsed) => after(anchor.nanos, elapsed),
        None => anchor.nanos.saturating_sub(after(0, anchor.instant.duration_since(instant))),
    }
}

/// Reads a coarse clock if `when` is far away, and the exact one otherwise. A coarse reading is at
/// least [`MAX_COARSE_ERROR`] earlier than `when`.
#[inline]
pub(crate) fn now_or_coarse(when: Nanos) -> Nanos {
    let coarse = coarse_now();
    if coarse.saturating_add(MAX_COARSE_ERROR) < when { coarse } else { now() }
}

/// The current time of a timer on virtual time, or a mark that the timer uses the system's clock.
#[derive(Debug)]
pub(crate) struct Present {
    /// The virtual time if it stands still, or one of the marks.
    word: AtomicU64,
    /// The distance, an `i64`, from the system's clock to a virtual time that runs.
    offset: AtomicU64,
    /// The lag of a virtual time that stands still. A deadline is due once it lies this long in the
    /// past.
    lag: AtomicU64,
}

impl Present {
    const REAL: u64 = u64::MAX;
    /// Marks a virtual time that runs. A virtual time that stands still is never zero.
    const RUNS: u64 = 0;

    /// Creates a present that follows the system's clock.
    pub(crate) fn real() -> Self {
        Self { word: AtomicU64::new(Self::REAL), offset: AtomicU64::new(0), lag: AtomicU64::new(0) }
    }

    /// Returns the current time.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        // ORDERING: Acquire pairs with the Release in `set`, so that the driver's work before it
        // moved the time is seen.
        match self.word.load(Ordering::Acquire) {
            Self::REAL => now(),
            Self::RUNS => self.running(),
            by_hand => by_hand,
        }
    }

    /// Returns a virtual time that runs.
    #[cold]
    fn running(&self) -> Nanos {
        // ORDERING: Acquire, as in `now`.
        let offset = self.offset.load(Ordering::Acquire);
        now().saturating_add_signed(offset as i64).min(END_OF_TIME)
    }

    /// Returns the time up to which deadlines are due at `now`, a reading of this clock.
    #[inline]
    pub(crate) fn due_by(&self, now: Nanos) -> Nanos {
        // ORDERING: Relaxed, because a thread that sees another lag than that of `now` only finds a
        // deadline up to one lag later or earlier, and none before its time.
        now.saturating_sub(self.lag.load(Ordering::Relaxed))
    }

    /// Sets the lag of [`due_by`](Self::due_by). Only the driver's owner calls it.
    pub(crate) fn set_lag(&self, lag: Nanos) {
        // ORDERING: Relaxed, as in `due_by`.
        self.lag.store(lag, Ordering::Relaxed);
    }

    /// Returns the current time as an instant.
    #[inline]
    pub(crate) fn instant(&self) -> Instant {
        // ORDERING: Acquire, for the reason given in `now`.
        let is_real = self.word.load(Ordering::Acquire) == Self::REAL;
        if is_real { Instant::now() } else { instant(self.now()) }
    }

    /// Sets the current time. It never goes back and never exceeds the end of time. It stands still
    /// until the next call, unless it [runs](Self::run). Only the driver's owner calls it.
    pub(crate) fn set(&self, now: Nanos) {
        // ORDERING: Relaxed load, because there is one writer. Release, as explained in `now`.
        match self.word.load(Ordering::Relaxed) {
            Self::REAL => self.word.store(now.clamp(1, END_OF_TIME), Ordering::Release),
            Self::RUNS if now <= self.running() => {}
            Self::RUNS => self.run_from(now),
            present => self.word.store(now.clamp(present, END_OF_TIME), Ordering::Release),
        }
    }

    /// Lets a virtual time run with the system's clock, unless it is more than 292 years ahead of
    /// that clock. Called by the driver's owner.
    pub(crate) fn run(&self) {
        // ORDERING: Relaxed, because there is one writer.
        if self.word.load(Ordering::Relaxed) != Self::RUNS {
            self.set_lag(0);
            self.run_from(self.now());
        }
    }

    fn run_from(&self, at: Nanos) {
        let Ok(offset) = i64::try_from(i128::from(at) - i128::from(now())) else {
            // ORDERING: Release, as explained in `now`.
            return self.word.store(at.min(END_OF_TIME), Ordering::Release);
        };
        // ORDERING: Release, as explained in `now`.
        self.offset.store(offset as u64, Ordering::Release);
        self.word.store(Self::RUNS, Ordering::Release);
    }

    /// Returns `true` if this is a virtual time.
    pub(crate) fn is_virtual(&self) -> bool {
        // ORDERING: Relaxed, because it is asked by the thread that makes the timer.
        self.word.load(Ordering::Relaxed) != Self::REAL
    }

    /// Returns `true` if this is a virtual time that runs with the system's clock.
    pub(crate) fn runs_with_system(&self) -> bool {
        // ORDERING: Relaxed, because only warnings and missed runs go by the answer.
        self.word.load(Ordering::Relaxed) == Self::RUNS
    }

    /// Lets a virtual time stand still. Called by the driver's owner. A thread that is preempted
    /// while it reads the time may return a later one than this call sets.
    pub(crate) fn stop(&self) {
        // ORDERING: Release, as explained in `now`.
        self.word.store(self.now().max(1), Ordering::Release);
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_the_one_that_instant_reads() {
        for _ in 0..1_000 {
            let before = Instant::now();
            let nanos = now();
            let after = Instant::now();
            let rounding = Duration::from_micros(1);
            assert!(before <= instant(nanos) + rounding && instant(nanos) <= after);
            assert!(nanos_of(before) <= nanos + 1_000 && nanos <= nanos_of(after), "an instant is never early");
        }
    }

    #[test]
    fn instants_and_nanos_are_one_scale() {
        let present = now();
        for nanos in [0, 1, present - 1, present, present + 1, present + (1 << 60), u64::MAX] {
            assert_eq!(nanos_of(instant(nanos)), nanos);
        }
        let here = Instant::now();
        assert_eq!(instant(nanos_of(here)), here);
    }

    #[test]
    fn a_coarse_reading_is_not_later_than_the_present() {
        for _ in 0..1_000 {
            let coarse = now_or_coarse(u64::MAX);
            assert!(coarse <= now(), "what is due may be found late, and nothing is early");
            let before = now();
            let seen = now_or_coarse(before);
            // The kernel may have held the thread since its last tick.
            assert!(seen >= before || seen + MAX_COARSE_ERROR < before, "near it, it is exact");
        }
    }

    // Guards against tokio-rs/tokio#3619, clocks that go back.
    #[test]
    fn a_clock_that_goes_back_stands_still() {
        let present = Present::real();
        present.set(1_000);
        present.set(1);
        assert_eq!(present.now(), 1_000);
        present.set(u64::MAX);
        assert_eq!(present.now(), END_OF_TIME);
    }

    #[test]
    fn a_virtual_time_runs_and_stands_still() {
        let present = Present::real();
        for begin in [1, now() << 1, 1 << 62] {
            present.set(begin);
            present.run();
            let before = now();
            let at = present.now();
            while present.now() < at + 1_000 {}
            assert!(now() - before >= 1_000 && at >= begin, "it runs as fast as the clock");
            present.set(begin);
            assert!(present.now() >= at + 1_000, "it does not go back");
            present.set(begin + 3_600_000_000_000);
            assert!(present.now() >= begin + 3_600_000_000_000, "it still moves by hand");
            present.stop();
            let stopped = present.now();
            let then = now();
            while now() == then {}
            assert!(present.now() == stopped && stopped >= begin + 3_600_000_000_000);
        }
        present.set(END_OF_TIME);
        present.run();
        assert_eq!(present.now(), END_OF_TIME);
    }
}
