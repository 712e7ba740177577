//! The parts of a lateness.

use super::Cause;
use crate::deadline::Nanos;
use std::fmt;
use std::time::Duration;

/// The time by which a run was late, or many runs together, as one part for each cause. The parts
/// add up to the time from the deadline to the start.
///
/// # Examples
///
/// ```
/// let lateness = timer_core::Timer::new().stats().lateness;
/// assert!(lateness.total().is_zero() && lateness.main_cause().is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Lateness<C: Cause> {
    nanos: C::Parts,
}

impl<C: Cause> Lateness<C> {
    /// Returns the part that `cause` has.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::{LateCause, Lateness};
    /// assert!(Lateness::default().part(LateCause::Tick).is_zero());
    /// ```
    pub fn part(&self, cause: C) -> Duration {
        Duration::from_nanos(self.part_nanos(cause))
    }

    /// Returns the sum of all parts.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(timer_core::Lateness::default().total().is_zero());
    /// ```
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.total_nanos())
    }

    /// Returns the cause with the largest part, or `None` if nothing was late.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(timer_core::Lateness::default().main_cause(), None);
    /// ```
    pub fn main_cause(&self) -> Option<C> {
        let largest = C::CAUSES.iter().copied().max_by_key(|cause| self.part_nanos(*cause));
        largest.filter(|cause| self.part_nanos(*cause) > 0)
    }

    /// Returns the lateness that was added after `earlier`, an older lateness of the same timer.
    ///
    /// # Examples
    ///
    /// The main cause of the last minute:
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{LateCause, Timer};
    ///
    /// let (timer, mut driver) = Timer::builder().build_driven()?;
    /// let minute_ago = timer.stats().lateness;
    /// timer.new_timeout(Duration::from_millis(1), |_| {})?;
    /// let begin = std::time::Instant::now();
    /// while begin.elapsed() < Duration::from_millis(5) {}
    /// driver.turn();
    /// let minute = timer.stats().lateness.since(&minute_ago);
    /// assert_eq!(minute.main_cause(), Some(LateCause::System));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "difference")]
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.combined(earlier, u64::saturating_sub)
    }

    /// Adds `time` to the part of `cause`.
    pub fn add(&mut self, cause: C, time: Duration) {
        self.add_nanos(cause, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds each part of `other`.
    ///
    /// # Examples
    ///
    /// The lateness of two timers:
    ///
    /// ```
    /// use timer_core::Timer;
    ///
    /// let mut sum = Timer::new().stats().lateness;
    /// let other = Timer::new().stats().lateness;
    /// sum.add_all(&other);
    /// assert!(sum.total().is_zero());
    /// ```
    pub fn add_all(&mut self, other: &Self) {
        *self = self.combined(other, u64::saturating_add);
    }

    /// Moves the part of a cause to another one.
    pub fn reassign(&mut self, from: C, to: C) {
        self.move_nanos(from, to, self.part_nanos(from));
    }

    /// Moves `nanos`, at most the part of `from`, to another cause.
    pub(super) fn move_nanos(&mut self, from: C, to: C, nanos: Nanos) {
        self.nanos.as_mut()[from.index()] -= nanos;
        self.add_nanos(to, nanos);
    }

    /// Returns the parts in nanoseconds, each at the index of its cause.
    #[inline]
    pub(crate) fn as_nanos(&self) -> &C::Parts {
        &self.nanos
    }

    #[inline]
    pub(crate) fn part_nanos(&self, cause: C) -> Nanos {
        self.nanos.as_ref()[cause.index()]
    }

    pub(crate) fn total_nanos(&self) -> Nanos {
        self.nanos.as_ref().iter().fold(0, |sum, part| sum.saturating_add(*part))
    }

    #[inline]
    pub(crate) fn add_nanos(&mut self, cause: C, nanos: Nanos) {
        let part = &mut self.nanos.as_mut()[cause.index()];
        *part = part.saturating_add(nanos);
    }

    #[inline]
    pub(super) fn combined(mut self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        for (part, other) in self.nanos.as_mut().iter_mut().zip(other.nanos.as_ref()) {
            *part = combine(*part, *other);
        }
        self
    }

    /// Returns `total / whole` of each part, rounded down. The largest part is rounded up instead,
    /// so that all of them add up to `total`.
    #[cold]
    pub(super) fn share(mut self, total: Nanos, whole: Nanos) -> Self {
        let largest = self.main_cause();
        for part in self.nanos.as_mut() {
            let share = u128::from(*part) * u128::from(total) / u128::from(whole.max(1));
            *part = u64::try_from(share).unwrap_or(u64::MAX);
        }
        if let Some(largest) = largest {
            self.add_nanos(largest, total.saturating_sub(self.total_nanos()));
        }
        self
    }
}

impl<C: Cause> Default for Lateness<C> {
    fn default() -> Self {
        Self { nanos: C::Parts::default() }
    }
}

impl<C: Cause> fmt::Debug for Lateness<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for cause in C::CAUSES {
            map.entry(&format_args!("{cause}"), &self.part(*cause));
        }
        map.finish()
    }
}
