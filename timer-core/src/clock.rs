//! Where the present comes from: the system's monotonic clock, or a number that a manual driver sets.
//!
//! Only the monotonic source is ever read; wall-clock steps do not exist here. The scale is that of `Instant`, in u64
//! nanoseconds, one for the whole process: a time means the same to every timer, dead ones included.

use crate::sync::{AtomicU64, OnceLock, Ordering};
use crate::time::{END_OF_TIME, Nanos};
use std::time::{Duration, Instant};

/// One moment, in both scales.
struct Anchor {
    instant: Instant,
    nanos: Nanos,
}

fn anchor() -> &'static Anchor {
    static ANCHOR: OnceLock<Anchor> = OnceLock::new();
    ANCHOR.get_or_init(Anchor::take)
}

/// The present: nanoseconds of the clock that `Instant` reads, without its arithmetic.
#[cfg(target_os = "linux")]
#[inline]
pub(crate) fn now() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// The present: nanoseconds since the first reading in this process, and an hour before it.
#[cfg(not(target_os = "linux"))]
#[inline]
pub(crate) fn now() -> Nanos {
    nanos_of(Instant::now())
}

/// The present as of the kernel's last tick: not later than [`now`], and seldom earlier by more than [`COARSE`]. On a machine where
/// reading the counter takes long, a fifth of the price.
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
const COARSE: Nanos = 50_000_000;

#[cfg(target_os = "linux")]
impl Anchor {
    /// Reads both clocks at one moment, as nearly as possible. The later reading counts, so that an `Instant` converts to a
    /// time that is late by the distance of the two readings, some tens of nanoseconds, and never early.
    fn take() -> Anchor {
        const TRIES: usize = 16;
        let readings = [(); TRIES].map(|()| {
            let (before, instant) = (now(), Instant::now());
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

/// When `at` is, or the latest instant that can be named.
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

/// The time of `instant`, as far as the scale reaches.
pub(crate) fn nanos_of(instant: Instant) -> Nanos {
    let anchor = anchor();
    let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    match instant.checked_duration_since(anchor.instant) {
        Some(after) => anchor.nanos.saturating_add(nanos(after)),
        None => anchor.nanos.saturating_sub(nanos(anchor.instant.duration_since(instant))),
    }
}

/// The present of a timer on virtual time; for all others, the mark that it is the system's.
#[derive(Debug)]
pub(crate) struct Present(AtomicU64);

impl Present {
    const REAL: u64 = u64::MAX;

    /// The system's present.
    pub(crate) fn real() -> Self {
        Self(AtomicU64::new(Self::REAL))
    }

    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        // ORDERING: Acquire pairs with the Release in `set`: what the driver did before it moved the time is seen.
        match self.0.load(Ordering::Acquire) {
            Self::REAL => now(),
            by_hand => by_hand,
        }
    }

    /// A reading for one who asks whether it is later than `when`: not later than the present, and if it is not earlier than `when` by
    /// [`COARSE`], the present.
    #[inline]
    pub(crate) fn now_beside(&self, when: Nanos) -> Nanos {
        // ORDERING: Acquire, as in `now`.
        match self.0.load(Ordering::Acquire) {
            Self::REAL => {
                let coarse = coarse_now();
                if coarse.saturating_add(COARSE) < when { coarse } else { now() }
            }
            by_hand => by_hand,
        }
    }

    /// From now on it stands still between calls of this; it never goes back, and never reaches beyond the end of time.
    pub(crate) fn set(&self, now: Nanos) {
        // ORDERING: Relaxed load, only the driver's owner writes it. Release, as said in `now`.
        let present = match self.0.load(Ordering::Relaxed) {
            Self::REAL => 0,
            present => present,
        };
        self.0.store(now.clamp(present, END_OF_TIME), Ordering::Release);
    }

    /// It is the system's again.
    pub(crate) fn set_real(&self) {
        // ORDERING: Release, so that who reads this sees that the shard has another generation.
        self.0.store(Self::REAL, Ordering::Release);
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_the_one_that_instant_reads() {
        for _ in 0..1_000 {
            let (before, nanos, after) = (Instant::now(), now(), Instant::now());
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
        let present = Present::real();
        for _ in 0..1_000 {
            let coarse = present.now_beside(u64::MAX);
            assert!(coarse <= now(), "what is due may be found late, and nothing is early");
            let before = now();
            assert!(present.now_beside(before) >= before, "near it, it is exact");
        }
        present.set(1_000);
        assert_eq!(present.now_beside(u64::MAX), 1_000);
    }

    // B81: a clock that goes back.
    #[test]
    fn a_clock_that_goes_back_stands_still() {
        let present = Present::real();
        present.set(1_000);
        present.set(1);
        assert_eq!(present.now(), 1_000);
        present.set(u64::MAX);
        assert_eq!(present.now(), END_OF_TIME);
    }
}
