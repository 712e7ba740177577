//! The names of `tokio::time` on the timer of the process. Write `use timer_core::time` instead of
//! `use tokio::time`.
//!
//! The functions work on any executor, and on a tokio runtime that was built without `enable_time`.
//!
//! ```
//! use timer_core::time::{self, Duration, Instant};
//!
//! # futures::executor::block_on(async {
//! let before = Instant::now();
//! time::sleep(Duration::from_millis(2)).await;
//! assert!(before.elapsed() >= Duration::from_millis(2));
//!
//! let late = time::timeout(Duration::from_millis(2), std::future::pending::<()>()).await;
//! assert!(late.is_err());
//!
//! let mut ticks = time::interval(Duration::from_millis(1));
//! ticks.tick().await;
//! # });
//! ```
//!
//! # Which timer
//!
//! 1. The timer that the calling thread has [entered](enter), if there is one.
//! 2. [`Timer::global`], the timer given to [`Timer::set_global`], or one with all defaults.
//!
//! A manual timer in either place gives virtual time to all code that uses this module. See
//! [`ManualDriver::block_on`](crate::ManualDriver::block_on).
//!
//! # Differences from tokio
//!
//! Nothing here panics. The futures are those of [`Timer`], so a deadline that the
//! timer refuses [moves to another timer](crate::future#refusals).
//!
//! | | tokio | here |
//! |---|---|---|
//! | `Sleep` | is not `Unpin` | is `Unpin`; [`Sleep::reset_at`] needs no pin |
//! | `Instant` | its own type | that of `std`; [`now`] reads the clock of the timer in use |
//! | a sleep of zero, a limit of zero, the first tick of an interval | pending at the first poll, and ready up to a millisecond later | ready at the first poll |
//! | a sleep that waits and is reset to the past | is ready at its next poll | its task is woken at once, and the poll after that is ready |
//! | `is_elapsed` of a sleep that was never polled, after its deadline | `false` | `true` |
//! | a period of zero | panics | is one millisecond |
//! | outside of a runtime, or without `enable_time` | panics | works |
//! | `pause`, `advance`, `resume` | of the runtime's clock | in `timer_adapters::tokio` |
//! | cooperative budget | a ready sleep consumes it | none, so a loop over ready sleeps has to yield by itself |
//!
//! A program may rely on the wait before the first tick without knowing it. The engine of
//! socketioxide sends a ping at each tick, and here its first ping comes before its connect packet.
//! `interval_at(Instant::now() + period, period)` has no tick at the beginning.

use crate::handle::{Timer, with_current};

#[doc(no_inline)]
pub use crate::config::MissedTickBehavior;
#[doc(no_inline)]
pub use crate::future::{Interval, Sleep, TimeoutFuture as Timeout};
pub use crate::handle::{EnterGuard, enter};
pub use std::time::{Duration, Instant};

/// Error types, with the names of `tokio::time::error`.
pub mod error {
    #[doc(no_inline)]
    pub use crate::future::Elapsed;
}

/// Returns the current time of the timer in use. It is virtual if that timer is manual.
///
/// # Examples
///
/// ```
/// use timer_core::time::{self, Duration};
/// use timer_core::Timer;
///
/// let (timer, mut driver) = Timer::builder().build_manual()?;
/// let _entered = time::enter(timer);
/// let before = time::now();
/// driver.advance(Duration::from_secs(5));
/// assert_eq!(time::now() - before, Duration::from_secs(5));
/// # Ok::<(), timer_core::BuildError>(())
/// ```
#[doc(alias = "Instant::now")]
pub fn now() -> Instant {
    with_current(Timer::now)
}

/// Returns a future that is ready `delay` from now.
///
/// # Examples
///
/// ```
/// # use timer_core::time::{Duration, sleep};
/// # futures::executor::block_on(async {
/// sleep(Duration::from_millis(2)).await;
/// # });
/// ```
#[inline]
pub fn sleep(delay: Duration) -> Sleep {
    with_current(|timer| timer.sleep(delay))
}

/// Returns a future that is ready at `deadline`, or at its first poll if that has passed.
///
/// # Examples
///
/// ```
/// # use timer_core::time::{Duration, Instant, sleep_until};
/// # futures::executor::block_on(async {
/// sleep_until(Instant::now() + Duration::from_millis(2)).await;
/// # });
/// ```
#[inline]
pub fn sleep_until(deadline: Instant) -> Sleep {
    with_current(|timer| timer.sleep_until(deadline))
}

/// Limits `future` to `delay` from now.
///
/// Each poll polls the inner future first, even if the deadline has passed.
///
/// # Errors
///
/// The future returns [`error::Elapsed`] if it is still pending at the deadline.
///
/// # Examples
///
/// ```
/// # use timer_core::time::{Duration, timeout};
/// # futures::executor::block_on(async {
/// assert_eq!(timeout(Duration::from_secs(5), async { 7 }).await, Ok(7));
/// # });
/// ```
#[inline]
pub fn timeout<F: IntoFuture>(delay: Duration, future: F) -> Timeout<F::IntoFuture> {
    with_current(|timer| timer.timeout(delay, future))
}

/// Limits `future` to `deadline`. Otherwise the same as [`timeout`].
///
/// # Errors
///
/// The future returns [`error::Elapsed`] if it is still pending at the deadline.
///
/// # Examples
///
/// ```
/// # use timer_core::time::{Duration, Instant, timeout_at};
/// # futures::executor::block_on(async {
/// assert_eq!(timeout_at(Instant::now() + Duration::from_secs(5), async { 7 }).await, Ok(7));
/// # });
/// ```
#[inline]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    with_current(|timer| timer.timeout_at(deadline, future))
}

/// Returns an interval that ticks once per `period`, for the first time at once. A period of zero
/// is one millisecond.
///
/// # Examples
///
/// ```
/// # use timer_core::time::{Duration, interval};
/// # futures::executor::block_on(async {
/// let mut ticks = interval(Duration::from_millis(1));
/// let first = ticks.tick().await;
/// assert!(ticks.tick().await > first);
/// # });
/// ```
pub fn interval(period: Duration) -> Interval {
    with_current(|timer| timer.interval(period))
}

/// Returns an interval that ticks once per `period`, for the first time at `start`. Otherwise the
/// same as [`interval`].
///
/// # Examples
///
/// ```
/// # use timer_core::time::{Duration, Instant, interval_at};
/// # futures::executor::block_on(async {
/// let start = Instant::now() + Duration::from_millis(1);
/// assert_eq!(interval_at(start, Duration::from_secs(1)).tick().await, start);
/// # });
/// ```
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    with_current(|timer| timer.interval_at(start, period))
}
