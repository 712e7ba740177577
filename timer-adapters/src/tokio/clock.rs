//! The clock of a runtime: stopping it, moving it, and letting it run.

use super::follower::{Follower, with_follower};
use ::tokio::task::yield_now;
use ::tokio::time;
use core::future::{Future, poll_fn};
use core::pin::pin;
use std::time::Duration;

/// Stops the clock, as `tokio::time::pause` does. Time moves to the next deadline when all tasks
/// wait.
///
/// # Panics
///
/// Panics outside of a runtime whose clock can be stopped, or if the clock is stopped already.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio::{pause, paused, resume};
///
/// paused(async {
///     resume();
///     pause();
/// });
/// ```
pub fn pause() {
    with_follower(Follower::pause).unwrap_or_else(time::pause);
}

/// Lets the clock run, as `tokio::time::resume` does.
///
/// # Panics
///
/// Panics outside of a runtime whose clock can be stopped, or if the clock is running.
///
/// # Examples
///
/// ```
/// use std::time::Instant;
/// use timer_adapters::tokio::{paused, resume};
/// use timer_core::time::{self, Duration};
///
/// paused(async {
///     resume();
///     let begin = Instant::now();
///     time::sleep(Duration::from_millis(5)).await;
///     assert!(begin.elapsed() >= Duration::from_millis(5));
/// });
/// ```
pub fn resume() {
    time::resume();
    with_follower(Follower::follow);
}

/// Moves the stopped clock on by `duration` and lets the tasks run that are due, as
/// `tokio::time::advance` does.
///
/// # Panics
///
/// Panics outside of a runtime whose clock can be stopped, or if the clock is running.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio::{advance, paused};
/// use timer_core::time::{self, Duration};
///
/// paused(async {
///     let task = tokio::spawn(time::sleep(Duration::from_secs(5)));
///     advance(Duration::from_secs(4)).await;
///     assert!(!task.is_finished());
///     advance(Duration::from_secs(1)).await;
///     assert!(task.is_finished());
/// });
/// ```
pub async fn advance(duration: Duration) {
    let mut advance = pin!(time::advance(duration));
    poll_fn(|cx| {
        let polled = advance.as_mut().poll(cx);
        // The clock has moved, and other tasks may run before the next poll.
        with_follower(Follower::follow);
        polled
    })
    .await;
    yield_now().await;
}
