//! Times on the store's clock.

use std::time::{Duration, Instant};

/// Microseconds since 1970 on the store's clock, or a length of time in microseconds.
pub type Micros = i64;

/// The time at which virtual time begins, 2001-09-09.
///
/// It is long before the time of any id, so that no id is too old for a store on virtual time.
pub const VIRTUAL_START: Micros = 1_000_000_000_000_000;

/// A due time, relative to the store's clock or absolute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    In(Micros),
    At(Micros),
}

impl When {
    /// Returns the due time. A time in the past is now, so that it sorts behind older timeouts.
    pub(crate) fn from(self, now: Micros) -> Micros {
        match self {
            Self::In(delay) => now.saturating_add(delay),
            Self::At(due) => due.max(now),
        }
    }
}

/// Returns a duration in microseconds, rounded up, so that nothing is due too early.
#[must_use]
pub fn micros(duration: Duration) -> Micros {
    let seconds = Micros::try_from(duration.as_secs()).unwrap_or(Micros::MAX);
    seconds.saturating_mul(1_000_000).saturating_add(duration.subsec_nanos().div_ceil(1_000).into())
}

/// Returns the duration from one time to another, or zero if the other one is earlier.
#[must_use]
pub fn between(from: Micros, to: Micros) -> Duration {
    Duration::from_micros(u64::try_from(to.saturating_sub(from)).unwrap_or(0))
}

/// A time on the clock of a lease. Unlike [`Instant`] on Linux, it goes on while the machine is
/// suspended, as the server's clock does.
///
/// # Examples
///
/// A store takes the time before it sends a renewal, and returns the end of the lease from
/// [`Store::lease_end`](crate::store::Store::lease_end):
///
/// ```
/// use std::time::{Duration, Instant};
/// use timer_durable::store::LeaseTime;
///
/// let sent = LeaseTime::now();
/// let lease_end = sent.after(Duration::from_secs(15));
/// assert!(LeaseTime::now() < lease_end);
/// assert!(lease_end.instant() > Instant::now());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseTime(Duration);

impl LeaseTime {
    /// Returns the time now.
    #[must_use]
    pub fn now() -> Self {
        let now = read();
        #[cfg(test)]
        let now = now + SUSPENDED.get();
        Self(now)
    }

    /// Emulates a suspension of the machine, for the thread of a test. No [`Instant`] moves.
    #[cfg(test)]
    pub(crate) fn suspend(duration: Duration) {
        SUSPENDED.set(SUSPENDED.get() + duration);
    }

    /// Returns the time that is `duration` later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// Returns the instant at which this time comes, unless the machine is suspended before.
    ///
    /// # Panics
    ///
    /// If the time is too far away for an [`Instant`].
    #[must_use]
    pub fn instant(self) -> Instant {
        // Both clocks are read in the order that gives the earlier instant.
        let now = Instant::now();
        now + self.0.saturating_sub(Self::now().0)
    }

    /// Returns the time of an instant. `now` was read before the instant was computed, so a
    /// suspension in between makes the time earlier.
    pub(crate) fn of(instant: Instant, now: Self) -> Self {
        Self(now.0 + instant.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
thread_local! {
    static SUSPENDED: std::cell::Cell<Duration> = const { std::cell::Cell::new(Duration::ZERO) };
}

/// A system without this clock, such as an emulator, gets the clock of [`Instant`]. The first
/// reading decides, because a lease must not be measured on two clocks.
#[cfg(target_os = "linux")]
fn read() -> Duration {
    use rustix::time::{ClockId, DynamicClockId, clock_gettime, clock_gettime_dynamic};
    static CLOCK: std::sync::OnceLock<ClockId> = std::sync::OnceLock::new();
    let now = clock_gettime(*CLOCK.get_or_init(|| {
        let has_boot_time = clock_gettime_dynamic(DynamicClockId::Known(ClockId::Boottime)).is_ok();
        if has_boot_time { ClockId::Boottime } else { ClockId::Monotonic }
    }));
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// An instant is the best clock that there is.
#[cfg(not(target_os = "linux"))]
fn read() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_earlier_by_a_suspension() {
        let lease = Duration::from_secs(60);
        let end = LeaseTime::now().after(lease);
        assert!(end.instant() > Instant::now() + lease / 2);
        LeaseTime::suspend(lease);
        assert!(end.instant() <= Instant::now());
    }
}
