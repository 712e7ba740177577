//! The names of `tokio::time`, on [`Timer::global`]: where a program says `use tokio::time::`, let it say `use timer_core::global::`.
//!
//! It works on any executor, and on a tokio runtime that was built without `enable_time`.
//!
//! ```
//! use timer_core::global::{self, Duration, Instant};
//!
//! # futures::executor::block_on(async {
//! let before = Instant::now();
//! global::sleep(Duration::from_millis(2)).await;
//! assert!(before.elapsed() >= Duration::from_millis(2));
//!
//! let late = global::timeout(Duration::from_millis(2), std::future::pending::<()>()).await;
//! assert!(late.is_err());
//!
//! let mut ticks = global::interval(Duration::from_millis(1));
//! ticks.tick().await;
//! # });
//! ```
//!
//! *What differs from tokio's*:
//!
//! | | tokio | here |
//! |---|---|---|
//! | missed ticks of an interval | `Burst` by default | [`Skip`](MissedTickBehavior::Skip) by default; both are there |
//! | `Sleep::reset` | takes `Pin<&mut Self>` and an `Instant` | takes `&mut self` and a delay; [`reset_at`](Sleep::reset_at) takes an `Instant` |
//! | `Sleep` | has to be pinned | need not be |
//! | the error of `timeout` | `error::Elapsed` | [`TimeoutError`]: `Elapsed`, or why there could be no deadline |
//! | `Instant` | a type of its own | that of `std` |
//! | a sleep of zero | may wait for a millisecond | is ready at its first poll |
//! | a period of zero | panics | is one tick of the timer, a millisecond |
//! | `pause`, `advance` | of the runtime's clock | none; a timer of one's own has [`ManualDriver`](crate::ManualDriver) |
//! | cooperative budget | a ready sleep uses it up | none: a loop over what is always ready has to yield by itself |
//! | outside a runtime | panics | works |
//!
//! *Panics*: a [`Sleep`] or [`Interval`] panics at the poll that needs a worker if the operating system gives no thread for it, or if the
//! process had used up all shards when the global timer was made. [`Timer`]'s own methods return an error instead.

use crate::error::RejectReason;
use crate::future::{self, TimeoutFuture};
use crate::handle::Timer;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};

#[doc(no_inline)]
pub use crate::config::MissedRuns as MissedTickBehavior;
#[doc(no_inline)]
pub use crate::future::{TimeoutError, TimeoutFuture as Timeout};
pub use std::time::{Duration, Instant};

/// One tick of the global timer.
const TICK: Duration = Duration::from_millis(1);

/// Ready `delay` from now; otherwise as [`Timer::sleep`].
///
/// # Examples
///
/// ```
/// # use timer_core::global::{Duration, sleep};
/// # futures::executor::block_on(async {
/// sleep(Duration::from_millis(2)).await;
/// # });
/// ```
pub fn sleep(delay: Duration) -> Sleep {
    Sleep { sleep: Timer::global().sleep(delay) }
}

/// Ready at `deadline`; otherwise as [`Timer::sleep_until`].
///
/// # Examples
///
/// ```
/// # use timer_core::global::{Duration, Instant, sleep_until};
/// # futures::executor::block_on(async {
/// sleep_until(Instant::now() + Duration::from_millis(2)).await;
/// # });
/// ```
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep { sleep: Timer::global().sleep_until(deadline) }
}

/// Gives `future` `delay` from now; as [`Timer::timeout`].
///
/// # Examples
///
/// ```
/// # use timer_core::global::{Duration, timeout};
/// # futures::executor::block_on(async {
/// assert_eq!(timeout(Duration::from_secs(5), async { 7 }).await, Ok(7));
/// # });
/// ```
pub fn timeout<F: IntoFuture>(delay: Duration, future: F) -> TimeoutFuture<F::IntoFuture> {
    Timer::global().timeout(delay, future)
}

/// Gives `future` until `deadline`; as [`Timer::timeout_at`].
///
/// # Examples
///
/// ```
/// # use timer_core::global::{Duration, Instant, timeout_at};
/// # futures::executor::block_on(async {
/// assert_eq!(timeout_at(Instant::now() + Duration::from_secs(5), async { 7 }).await, Ok(7));
/// # });
/// ```
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> TimeoutFuture<F::IntoFuture> {
    Timer::global().timeout_at(deadline, future)
}

/// Ticks every `period`, for the first time at once; otherwise as [`Timer::interval`]. A period of zero is one of a millisecond.
///
/// # Examples
///
/// ```
/// # use timer_core::global::{Duration, interval};
/// # futures::executor::block_on(async {
/// let mut ticks = interval(Duration::from_millis(1));
/// let first = ticks.tick().await;
/// assert!(ticks.tick().await > first);
/// # });
/// ```
pub fn interval(period: Duration) -> Interval {
    Interval { interval: Timer::global().interval(at_least_a_tick(period)) }
}

/// Ticks every `period`, for the first time at `start`; otherwise as [`interval`].
///
/// # Examples
///
/// ```
/// # use timer_core::global::{Duration, Instant, interval_at};
/// # futures::executor::block_on(async {
/// let start = Instant::now() + Duration::from_millis(1);
/// assert_eq!(interval_at(start, Duration::from_secs(1)).tick().await, start);
/// # });
/// ```
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    Interval { interval: Timer::global().interval_at(start, at_least_a_tick(period)) }
}

fn at_least_a_tick(period: Duration) -> Duration {
    if period.is_zero() { TICK } else { period }
}

/// [`future::Sleep`] on the global timer, without an error.
///
/// # Examples
///
/// ```
/// # use timer_core::global::{Duration, sleep};
/// # futures::executor::block_on(async {
/// let mut idle = sleep(Duration::from_millis(1));
/// (&mut idle).await;
/// assert!(idle.is_elapsed());
/// # });
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    sleep: future::Sleep,
}

impl Sleep {
    /// It is ready `delay` from now instead, whether it has been ready before or not: [`future::Sleep::reset`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, sleep};
    /// sleep(Duration::from_secs(30)).reset(Duration::from_secs(60));
    /// ```
    pub fn reset(&mut self, delay: Duration) {
        self.sleep.reset(delay);
    }

    /// As [`reset`](Self::reset), to an instant; one that is past is now.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, Instant, sleep};
    /// sleep(Duration::from_secs(30)).reset_at(Instant::now());
    /// ```
    pub fn reset_at(&mut self, deadline: Instant) {
        self.sleep.reset_at(deadline);
    }

    /// When it is ready, or was.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, Instant, sleep};
    /// assert!(sleep(Duration::from_secs(30)).deadline() > Instant::now());
    /// ```
    pub fn deadline(&self) -> Instant {
        self.sleep.deadline()
    }

    /// Whether the deadline has come.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, sleep};
    /// assert!(!sleep(Duration::from_secs(30)).is_elapsed());
    /// ```
    pub fn is_elapsed(&self) -> bool {
        self.sleep.is_elapsed()
    }
}

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.sleep).poll(cx).map(accepted)
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sleep.fmt(f)
    }
}

/// [`future::Interval`] on the global timer, without an error.
///
/// # Examples
///
/// ```
/// # use timer_core::global::{Duration, MissedTickBehavior, interval};
/// # futures::executor::block_on(async {
/// let mut ticks = interval(Duration::from_millis(1));
/// ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
/// ticks.tick().await;
/// # });
/// ```
pub struct Interval {
    interval: future::Interval,
}

impl Interval {
    /// What it does about missed ticks. Default: [`MissedTickBehavior::Skip`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, MissedTickBehavior, interval};
    /// interval(Duration::from_secs(1)).set_missed_tick_behavior(MissedTickBehavior::Burst);
    /// ```
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.interval.set_missed_runs(behavior);
    }

    /// What it does about missed ticks.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, MissedTickBehavior, interval};
    /// assert_eq!(interval(Duration::from_secs(1)).missed_tick_behavior(), MissedTickBehavior::Skip);
    /// ```
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.interval.missed_runs()
    }

    /// As [`set_missed_tick_behavior`](Self::set_missed_tick_behavior), in one go.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, MissedTickBehavior, interval};
    /// let ticks = interval(Duration::from_secs(1)).with_missed_runs(MissedTickBehavior::Burst);
    /// ```
    #[must_use]
    pub fn with_missed_runs(self, missed_runs: MissedTickBehavior) -> Self {
        Self { interval: self.interval.with_missed_runs(missed_runs) }
    }

    /// Waits for the next tick and returns when it was due: [`future::Interval::tick`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, Instant, interval};
    /// # futures::executor::block_on(async {
    /// assert!(interval(Duration::from_secs(1)).tick().await <= Instant::now());
    /// # });
    /// ```
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// [`tick`](Self::tick), for those who write their own futures.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::task::{Context, Waker};
    /// # use timer_core::global::{Duration, interval};
    /// assert!(interval(Duration::from_secs(1)).poll_tick(&mut Context::from_waker(Waker::noop())).is_ready());
    /// ```
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        self.interval.poll_tick(cx).map(accepted)
    }

    /// From tick to tick.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, interval};
    /// assert_eq!(interval(Duration::ZERO).period(), Duration::from_millis(1));
    /// ```
    pub fn period(&self) -> Duration {
        self.interval.period()
    }

    /// The next tick is one period from now, and the others follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, interval};
    /// interval(Duration::from_secs(1)).reset();
    /// ```
    pub fn reset(&mut self) {
        self.interval.reset();
    }

    /// The next tick is now, and the others follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, interval};
    /// interval(Duration::from_secs(1)).reset_immediately();
    /// ```
    pub fn reset_immediately(&mut self) {
        self.interval.reset_immediately();
    }

    /// The next tick is `delay` from now, and the others follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, interval};
    /// interval(Duration::from_secs(1)).reset_after(Duration::from_secs(5));
    /// ```
    pub fn reset_after(&mut self, delay: Duration) {
        self.interval.reset_after(delay);
    }

    /// The next tick is at `deadline`, or now if that is past, and the others follow it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::global::{Duration, Instant, interval};
    /// interval(Duration::from_secs(1)).reset_at(Instant::now() + Duration::from_secs(5));
    /// ```
    pub fn reset_at(&mut self, deadline: Instant) {
        self.interval.reset_at(deadline);
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.interval.fmt(f)
    }
}

/// The global timer has no bound and is not stopped: what is left is the system's refusal.
#[track_caller]
fn accepted<T>(result: Result<T, RejectReason>) -> T {
    match result {
        Ok(value) => value,
        Err(reason) => refused(reason),
    }
}

#[cold]
#[track_caller]
fn refused(reason: RejectReason) -> ! {
    panic!("the global timer cannot serve this future: {reason}")
}
