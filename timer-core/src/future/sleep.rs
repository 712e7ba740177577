//! A future that is ready at its deadline.

use super::registration::Registration;
use crate::context::{deadline_after, deadline_at};
use crate::error::RejectReason;
use crate::shard::BlockId;
use crate::time::{Deadline, Nanos};
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Ready at its deadline: [`Timer::sleep`](crate::Timer::sleep), [`Timer::sleep_until`](crate::Timer::sleep_until).
///
/// Its output is `Ok`, or `Err` with [`Stopped`](RejectReason::Stopped) if the timer was stopped or
/// its last handle dropped, [`TooManyPending`](RejectReason::TooManyPending) if the timer has a
/// bound and it is reached when the sleep has to be registered,
/// [`ThreadRefused`](RejectReason::ThreadRefused) if the system gives no thread for the worker, or
/// [`TooManyTimers`](RejectReason::TooManyTimers). Polled again after that it says the same, or
/// tries again.
///
/// The future needs no pin, may move between tasks and threads, and can be used again with
/// [`reset`](Self::reset). The first poll that waits for a deadline allocates 48 bytes. A `reset`
/// before the deadline allocates nothing. Dropping the future cancels it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// # futures::executor::block_on(async {
/// let timer = Timer::new();
/// let mut idle = timer.sleep(Duration::from_millis(1));
/// idle.reset(Duration::from_millis(2));
/// (&mut idle).await?;
/// assert!(idle.is_elapsed());
/// # Ok::<(), timer_core::RejectReason>(())
/// # }).unwrap();
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    registration: Registration,
}

impl Sleep {
    #[inline]
    pub(crate) fn new(block: Option<BlockId>, started: bool, deadline: Deadline) -> Self {
        Self { registration: Registration::new(block, started, deadline) }
    }

    /// It is ready `delay` from now instead, whether it has been ready before or not. The task that
    /// waits for it stays the one that is woken; after it was ready, poll it again.
    ///
    /// While it waits, to a later deadline this costs reading the clock and one read-modify-write
    /// of its own entry. A timer that is stopped stays so.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let mut idle = timer.sleep(Duration::from_secs(30));
    /// driver.advance(Duration::from_secs(29));
    /// idle.reset(Duration::from_secs(30));
    /// driver.advance(Duration::from_secs(29));
    /// assert!(!idle.is_elapsed());
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn reset(&mut self, delay: Duration) {
        let now = self.registration.now();
        self.registration.reset(deadline_after(now, delay), now, delay.is_zero());
    }

    /// As [`reset`](Self::reset), to an instant; one that is past is now.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use timer_core::Timer;
    /// let mut idle = Timer::new().sleep(Duration::from_secs(30));
    /// let deadline = Instant::now() + Duration::from_secs(60);
    /// idle.reset_at(deadline);
    /// assert_eq!(idle.deadline(), deadline);
    /// ```
    pub fn reset_at(&mut self, deadline: Instant) {
        let now = self.registration.now();
        let deadline = deadline_at(now, deadline);
        self.set(deadline, now);
    }

    /// When it is ready, or was: to the nanosecond for the first 18 years of the clock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, driver) = Timer::builder().build_manual()?;
    /// assert_eq!(timer.sleep(Duration::from_secs(1)).deadline(), driver.now() + Duration::from_secs(1));
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn deadline(&self) -> Instant {
        self.registration.instant()
    }

    /// Whether the deadline has come. It says so from then on, polled or not.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let sleep = timer.sleep(Duration::from_secs(1));
    /// assert!(!sleep.is_elapsed());
    /// driver.advance(Duration::from_secs(1));
    /// assert!(sleep.is_elapsed());
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn is_elapsed(&self) -> bool {
        self.registration.is_elapsed()
    }

    pub(crate) fn due(&self) -> Nanos {
        self.registration.deadline().nanos()
    }

    pub(crate) fn now(&self) -> Nanos {
        self.registration.now()
    }

    /// `reset`, to what was computed at `now`.
    pub(crate) fn set(&mut self, deadline: Deadline, now: Nanos) {
        self.registration.reset(deadline, now, deadline.is_due(now));
    }
}

impl Future for Sleep {
    type Output = Result<(), RejectReason>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.registration.poll(cx)
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}
