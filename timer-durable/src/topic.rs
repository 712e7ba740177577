//! Topics, which name handlers and have the rules of their timeouts.

use std::sync::Arc;
use std::time::Duration;

/// The rules of a topic.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, Topic};
///
/// let remind = Topic::new("invoice.remind")
///     .attempts(20)
///     .backoff(Duration::from_secs(5), Duration::from_secs(3600))
///     .max_lateness(Duration::from_secs(2 * 86_400));
/// let builder = DurableTimer::builder().topic(remind, |due: &Due<String>| {
///     println!("reminding {}", due.payload());
///     Ok(())
/// });
/// ```
#[derive(Clone, Debug)]
pub struct Topic {
    pub(crate) name: Arc<str>,
    pub(crate) attempts: u32,
    pub(crate) backoff: (Duration, Duration),
    pub(crate) max_lateness: Option<Duration>,
}

impl Topic {
    /// Returns a topic with 10 attempts, a backoff of 1 s to 1 h, and no limit of lateness.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        let backoff = (Duration::from_secs(1), Duration::from_secs(3600));
        Self { name: name.into(), attempts: 10, backoff, max_lateness: None }
    }

    /// Sets the number of attempts after which a timeout becomes a dead letter, at least 1.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// Sets the delay after the first failed attempt, which doubles with each further one up to
    /// `max`.
    #[must_use]
    pub fn backoff(mut self, first: Duration, max: Duration) -> Self {
        self.backoff = (first, max);
        self
    }

    /// Makes a timeout expire if it is more than `limit` late when it could begin. It ends without
    /// a run and is counted in [`Stats::expired`](crate::Stats::expired). The lateness is measured
    /// as for [`TimeoutBuilder::max_lateness`](crate::TimeoutBuilder::max_lateness).
    #[must_use]
    pub fn max_lateness(mut self, limit: Duration) -> Self {
        self.max_lateness = Some(limit);
        self
    }

    /// Returns the delay after the failed attempt with the number `tries`.
    pub(crate) fn delay_after(&self, tries: u32) -> Duration {
        let (first, max) = self.backoff;
        first.saturating_mul(1 << tries.saturating_sub(1).min(30)).min(max)
    }
}

impl From<&str> for Topic {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for Topic {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_doubles_up_to_its_limit() {
        let topic = Topic::new("t").backoff(Duration::from_secs(1), Duration::from_secs(5));
        assert_eq!([1, 2, 3, 4, 99].map(|tries| topic.delay_after(tries).as_secs()), [1, 2, 4, 5, 5]);
    }
}
