//! Exponential backoff between retries.

use core::hash::{BuildHasher, Hasher};
use std::collections::hash_map::RandomState;
use std::time::Duration;
use timer_core::{Sleep, Timer};
use tower::retry::backoff::{Backoff, MakeBackoff};

/// A maker of backoffs for a `tower::retry` policy, like
/// `tower::retry::backoff::ExponentialBackoffMaker` but on a timer of this workspace.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_adapters::tower::ExponentialBackoffMaker;
/// use timer_core::Timer;
/// use tower::retry::backoff::{Backoff, MakeBackoff};
///
/// # futures::executor::block_on(async {
/// let (min, max) = (Duration::from_millis(1), Duration::from_secs(10));
/// let mut maker = ExponentialBackoffMaker::new(Timer::current(), min, max, 0.5);
/// let mut backoff = maker.make_backoff();
/// backoff.next_backoff().await; // 1 to 1.5 ms
/// backoff.next_backoff().await; // 2 to 3 ms
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct ExponentialBackoffMaker {
    timer: Timer,
    min: Duration,
    max: Duration,
    jitter: f64,
}

impl ExponentialBackoffMaker {
    /// Creates a maker of backoffs that wait `min` at first and twice as long each time, but never
    /// longer than `max`.
    ///
    /// A random part of up to `jitter` times the wait is added, so that clients do not retry
    /// together. Where the sum could exceed `max`, the wait is random from `max / (1 + jitter)` to
    /// `max`, so clients do not meet at the longest wait either. A jitter that is negative,
    /// infinite or not a number is 0.
    ///
    /// A `min` of zero is one millisecond, because twice as long as zero would be zero again. If
    /// `max` is less than `min`, all waits are those for `max`.
    pub fn new(timer: Timer, min: Duration, max: Duration, jitter: f64) -> Self {
        let jitter = if jitter.is_finite() { jitter.max(0.0) } else { 0.0 };
        let min = if min.is_zero() { Duration::from_millis(1) } else { min };
        Self { timer, min, max, jitter }
    }
}

impl MakeBackoff for ExponentialBackoffMaker {
    type Backoff = ExponentialBackoff;

    fn make_backoff(&mut self) -> ExponentialBackoff {
        ExponentialBackoff { maker: self.clone(), next: self.min }
    }
}

/// The waits of one request. [`ExponentialBackoffMaker`] makes it.
#[derive(Debug, Clone)]
pub struct ExponentialBackoff {
    maker: ExponentialBackoffMaker,
    next: Duration,
}

impl Backoff for ExponentialBackoff {
    type Future = Sleep;

    fn next_backoff(&mut self) -> Sleep {
        let ExponentialBackoffMaker { timer, max, jitter, .. } = &self.maker;
        let base = self.next.min(*max);
        self.next = base.saturating_mul(2);
        let longest = (base.as_secs_f64() * (1.0 + jitter)).min(max.as_secs_f64());
        let wait = longest * ((1.0 + jitter * random()) / (1.0 + jitter));
        timer.sleep(Duration::try_from_secs_f64(wait).map_or(*max, |wait| wait.min(*max)))
    }
}

/// Returns a number from 0 to 1. Each `RandomState` has other keys.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}
