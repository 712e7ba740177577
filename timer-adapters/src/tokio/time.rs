//! The names of `tokio::time`, on the timer of [`timer_core::time`].
//!
//! [`Instant`] is tokio's own, so that `Instant::now()` tells the time of a paused clock. A
//! [`Sleep`], an [`Interval`] and a [`Timeout`] whose deadline has come use up some of the task's
//! cooperative budget, as tokio's do. In all other respects the functions are those of
//! [`timer_core::time`], whose documentation lists the differences from tokio. The module `error`
//! has no `Error`, because no function here fails with it.
//!
//! On a runtime whose clock was stopped, and that was not built by [`runtime`](mod@super::runtime),
//! the futures use tokio's timer, and so they need `enable_time`. The chapter `from_tokio` explains
//! when a program notices such a clock.

#[cfg(feature = "tokio")]
use super::follower::{Follower, with_follower};
use super::theirs::Theirs;
use ::tokio::task::coop::{has_budget_remaining, poll_proceed};
use ::tokio::task::unconstrained;
use ::tokio::time as theirs;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, ready};
use pin_project_lite::pin_project;
use timer_core::time;

#[doc(no_inline)]
pub use ::tokio::time::Instant;
#[doc(no_inline)]
pub use std::time::Duration;
#[doc(no_inline)]
pub use timer_core::time::{MissedTickBehavior, error};

#[cfg(feature = "tokio")]
#[doc(no_inline)]
pub use super::clock::{advance, pause, resume};

/// The period that stands for zero, at which tokio panics.
const MIN_PERIOD: Duration = Duration::from_millis(1);

/// Returns the period for an interval of tokio.
fn for_tokio(period: Duration) -> Duration {
    if period.is_zero() { MIN_PERIOD } else { period }
}

/// Moves the timer of a runtime with virtual time to the time of its clock, so that a delay
/// counts from there.
#[inline]
fn update_clock() {
    #[cfg(feature = "tokio")]
    with_follower(Follower::update);
}

/// Polls a future that uses up some of the task's cooperative budget when it is ready. A task
/// without budget yields, so a loop of short sleeps does not keep its thread from other tasks.
#[inline]
fn cooperate<T>(cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    let budget = ready!(poll_proceed(cx));
    poll(cx).map(|output| {
        budget.made_progress();
        output
    })
}

/// Returns a future that is ready `duration` from now.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio;
/// use tokio::time::{Duration, Instant, sleep};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let begin = Instant::now();
/// sleep(Duration::from_millis(2)).await;
/// assert!(begin.elapsed() >= Duration::from_millis(2));
/// # }
/// ```
#[inline]
pub fn sleep(duration: Duration) -> Sleep {
    update_clock();
    Sleep { ours: time::sleep(duration), theirs: Theirs::make(|| Box::pin(theirs::sleep(duration))) }
}

/// Returns a future that is ready at `deadline`.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio;
/// use tokio::time::{Duration, Instant, sleep_until};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let deadline = Instant::now() + Duration::from_millis(2);
/// sleep_until(deadline).await;
/// assert!(Instant::now() >= deadline);
/// # }
/// ```
#[inline]
pub fn sleep_until(deadline: Instant) -> Sleep {
    update_clock();
    let ours = time::sleep_until(deadline.into_std());
    Sleep { ours, theirs: Theirs::make(|| Box::pin(theirs::sleep_until(deadline))) }
}

/// Requires `future` to be ready within `duration` from now.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio;
/// use tokio::time::{Duration, timeout};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// assert_eq!(timeout(Duration::from_secs(5), async { 7 }).await, Ok(7));
/// # }
/// ```
#[inline]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    update_clock();
    let theirs = Theirs::make(|| Box::pin(theirs::sleep(duration)));
    let duration = if theirs.get().is_some() { Duration::MAX } else { duration };
    Timeout { timeout: time::timeout(duration, future), theirs }
}

/// Requires `future` to be ready by `deadline`.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio;
/// use tokio::time::{Duration, Instant, timeout_at};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let deadline = Instant::now() + Duration::from_secs(5);
/// assert_eq!(timeout_at(deadline, async { 7 }).await, Ok(7));
/// # }
/// ```
#[inline]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    update_clock();
    let theirs = Theirs::make(|| Box::pin(theirs::sleep_until(deadline)));
    if theirs.get().is_some() {
        return Timeout { timeout: time::timeout(Duration::MAX, future), theirs };
    }
    Timeout { timeout: time::timeout_at(deadline.into_std(), future), theirs }
}

/// Returns an interval that ticks every `period`, for the first time at once.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio;
/// use tokio::time::{Duration, interval};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut ticks = interval(Duration::from_millis(1));
/// let first = ticks.tick().await;
/// assert!(ticks.tick().await >= first + Duration::from_millis(1));
/// # }
/// ```
pub fn interval(period: Duration) -> Interval {
    update_clock();
    let theirs = Theirs::make(|| theirs::interval(for_tokio(period)));
    Interval { ours: time::interval(period), theirs }
}

/// Returns an interval that ticks every `period`, for the first time at `start`.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio;
/// use tokio::time::{Duration, Instant, interval_at};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let start = Instant::now() + Duration::from_millis(2);
/// assert_eq!(interval_at(start, Duration::from_secs(1)).tick().await, start);
/// # }
/// ```
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    update_clock();
    let theirs = Theirs::make(|| theirs::interval_at(start, for_tokio(period)));
    Interval { ours: time::interval_at(start.into_std(), period), theirs }
}

/// A future that is ready at its deadline, returned by [`sleep`] and [`sleep_until`].
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio::time::{Duration, Instant, sleep};
///
/// let mut idle = std::pin::pin!(sleep(Duration::from_secs(30)));
/// let deadline = Instant::now() + Duration::from_secs(60);
/// idle.as_mut().reset(deadline);
/// assert_eq!(idle.deadline(), deadline);
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    ours: time::Sleep,
    theirs: Theirs<Pin<Box<theirs::Sleep>>>,
}

impl Sleep {
    /// Returns the deadline.
    pub fn deadline(&self) -> Instant {
        self.theirs.get().map_or_else(|| self.ours.deadline().into(), |theirs| theirs.deadline())
    }

    /// Returns `true` if the deadline has come.
    pub fn is_elapsed(&self) -> bool {
        self.theirs.get().map_or_else(|| self.ours.is_elapsed(), |theirs| theirs.is_elapsed())
    }

    /// Moves the deadline, whether or not the future was ready before.
    #[inline]
    pub fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
        if let Some(theirs) = self.theirs.get_mut() {
            return theirs.as_mut().reset(deadline);
        }
        update_clock();
        self.ours.reset_at(deadline.into_std());
    }
}

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(theirs) = self.theirs.get_mut() {
            return theirs.as_mut().poll(cx);
        }
        cooperate(cx, |cx| Pin::new(&mut self.ours).poll(cx))
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}

pin_project! {
    /// A future with a deadline, returned by [`timeout`] and [`timeout_at`].
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_adapters::tokio::time::{Duration, timeout};
    ///
    /// let limited = timeout(Duration::from_secs(5), std::future::ready(7));
    /// assert_eq!(limited.into_inner().into_inner(), 7);
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Timeout<F> {
        // This timeout has no deadline if tokio's sleep ends it.
        #[pin]
        timeout: time::Timeout<F>,
        theirs: Theirs<Pin<Box<theirs::Sleep>>>,
    }
}

impl<F> Timeout<F> {
    /// Returns the inner future.
    pub fn get_ref(&self) -> &F {
        self.timeout.get_ref()
    }

    /// Returns the inner future by mutable reference.
    pub fn get_mut(&mut self) -> &mut F {
        self.timeout.get_mut()
    }

    /// Returns the inner future and drops the deadline.
    pub fn into_inner(self) -> F {
        self.timeout.into_inner()
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, error::Elapsed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let had_budget = has_budget_remaining();
        let this = self.project();
        let polled = this.timeout.poll(cx);
        if let Some(theirs) = this.theirs.get_mut().filter(|_| polled.is_pending()) {
            // The future may have used up the budget, and the deadline ends it nevertheless.
            return pin!(unconstrained(theirs.as_mut())).poll(cx).map(|()| Err(error::Elapsed::new()));
        }
        let output = ready!(polled);
        // If the future has just used up the budget, the deadline ends it nevertheless.
        if output.is_err() && (!had_budget || has_budget_remaining()) {
            ready!(poll_proceed(cx)).made_progress();
        }
        Poll::Ready(output)
    }
}

/// A sequence of ticks at a fixed rate, returned by [`interval`] and [`interval_at`].
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio::time::{Duration, MissedTickBehavior, interval};
///
/// let mut ticks = interval(Duration::from_secs(5));
/// ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
/// assert_eq!(ticks.period(), Duration::from_secs(5));
/// ```
#[derive(Debug)]
pub struct Interval {
    ours: time::Interval,
    theirs: Theirs<theirs::Interval>,
}

/// Converts to the interval of [`timer_core::time`], whose ticks are instants of `std`.
impl From<Interval> for time::Interval {
    fn from(interval: Interval) -> Self {
        interval.ours
    }
}

impl Interval {
    /// Waits for the next tick and returns the instant for which it was scheduled.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        if let Some(theirs) = self.theirs.get_mut() {
            return theirs.poll_tick(cx);
        }
        update_clock();
        cooperate(cx, |cx| self.ours.poll_tick(cx)).map(Instant::from_std)
    }

    /// Moves the next tick to one period from now.
    pub fn reset(&mut self) {
        self.reset_after(self.period());
    }

    /// Moves the next tick to now.
    pub fn reset_immediately(&mut self) {
        self.reset_after(Duration::ZERO);
    }

    /// Moves the next tick to `after` from now.
    pub fn reset_after(&mut self, after: Duration) {
        update_clock();
        match self.theirs.get_mut() {
            Some(theirs) => theirs.reset_after(after),
            None => self.ours.reset_after(after),
        }
    }

    /// Moves the next tick to `deadline`.
    pub fn reset_at(&mut self, deadline: Instant) {
        update_clock();
        match self.theirs.get_mut() {
            Some(theirs) => theirs.reset_at(deadline),
            None => self.ours.reset_at(deadline.into_std()),
        }
    }

    /// Returns the handling of ticks that were missed.
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.ours.missed_tick_behavior()
    }

    /// Sets the handling of ticks that were missed.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.ours.set_missed_tick_behavior(behavior);
        if let Some(theirs) = self.theirs.get_mut() {
            theirs.set_missed_tick_behavior(match behavior {
                MissedTickBehavior::Burst => theirs::MissedTickBehavior::Burst,
                MissedTickBehavior::Delay => theirs::MissedTickBehavior::Delay,
                MissedTickBehavior::Skip => theirs::MissedTickBehavior::Skip,
            });
        }
    }

    /// Returns the period.
    pub fn period(&self) -> Duration {
        self.ours.period()
    }
}
