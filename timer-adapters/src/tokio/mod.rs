//! `tokio` with the timer of [`timer_core`]. It has all names of the crate `tokio`. Its [`time`] is
//! another one, and so is its [`runtime`](mod@runtime) for tests.
//!
//! A program changes its timer by one line in each module that names `tokio`. Everything else
//! stays, tests with a paused clock included.
//!
//! ```
//! use timer_adapters::tokio;
//! use tokio::time::{Duration, Instant, timeout};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() {
//!     let begin = Instant::now();
//!     let late = timeout(Duration::from_millis(2), std::future::pending::<()>()).await;
//!     assert!(late.is_err() && begin.elapsed() >= Duration::from_millis(2));
//! }
//! ```
//!
//! A program that names a few functions only may import them from [`time`] instead.
//!
//! # Features
//!
//! `tokio-time` has [`time`]. Enable it in `[dependencies]`. `tokio` adds virtual time, which is
//! [`paused`], [`pause`], [`advance`], [`resume`] and [`runtime`](mod@runtime). Enable it in
//! `[dev-dependencies]` only, because it enables `test-util` of tokio.
//!
//! # Virtual time
//!
//! [`paused`] is to this timer what `#[tokio::test(start_paused = true)]` is to tokio's. It runs a
//! future on a current-thread runtime whose time is virtual. When all tasks wait, time moves to the
//! next deadline. The attribute itself works too, because its code names `tokio::runtime::Builder`,
//! which is that of this module in a file that imports it:
//!
//! ```
//! # #[cfg(feature = "tokio")]
//! # mod tests {
//! use timer_adapters::tokio;
//! use tokio::time::{Duration, Instant, sleep};
//!
//! #[tokio::test(start_paused = true)]
//! async fn an_hour_passes_at_once() {
//!     let begin = Instant::now();
//!     sleep(Duration::from_secs(3600)).await;
//!     assert_eq!(begin.elapsed(), Duration::from_secs(3600));
//! }
//! # }
//! ```
//!
//! The runtime uses tokio's own paused clock, and a manual timer that follows it to the nanosecond.
//! So time stands still as long as a socket is ready or a task of `spawn_blocking` runs,
//! `tokio::time::Instant` tells the same time as [`timer_core::time::now`], and code that still
//! uses tokio's timer takes part. Before 1.53.3 (and 1.51.6), tokio's paused clock moves on when a
//! socket wakes a spawned task, so a test with sockets needs one of these versions. While the clock
//! runs, as in a `#[tokio::test]` that does not pause it, the time of the manual timer runs too. To
//! stop and move the clock, use the functions of this module, because the manual timer notices
//! those of tokio only later.
//!
//! Tokio rounds deadlines up to whole milliseconds since the runtime was built, and so does this
//! runtime. After a [`pause`] between two milliseconds, a sleep of 5 ms takes 6 ms of virtual time,
//! and the first tick of an interval takes one.
//!
//! Durable timers take part, too. `DurableTimerBuilder::open_on` of `timer_durable` puts them on a
//! `VirtualClock` that follows the timer of the runtime, `Timer::current()`. Then a test of a
//! service with connections, retries and durable timeouts runs half a year in seconds, and the same
//! calls have the same runs.

#[cfg(feature = "tokio")]
mod clock;
#[cfg(feature = "tokio")]
mod follower;
#[cfg(feature = "tokio")]
pub mod runtime;
mod theirs;
pub mod time;

#[doc(no_inline)]
pub use ::tokio::*;
#[cfg(feature = "tokio")]
pub use clock::{advance, pause, resume};
#[cfg(feature = "tokio")]
pub use runtime::paused;
