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
    /// together. A jitter that is negative, infinite or not a number is 0. If `max` is less than
    /// `min`, all waits are `max`.
    pub fn new(timer: Timer, min: Duration, max: Duration, jitter: f64) -> Self {
        let jitter = if jitter.is_finite() { jitter.max(0.0) } else { 0.0 };
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
        let base = self.next.min(self.maker.max);
        self.next = base.saturating_mul(2);
        let extra = (base.as_secs_f64() * self.maker.jitter * random()).min(self.maker.max.as_secs_f64());
        let extra = Duration::try_from_secs_f64(extra).unwrap_or(Duration::ZERO);
        self.maker.timer.sleep(base.saturating_add(extra).min(self.maker.max))
    }
}

/// Returns a number from 0 to 1. Each `RandomState` has other keys.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}
