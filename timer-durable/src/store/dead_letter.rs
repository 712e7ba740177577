//! Timeouts that have failed for good.

use super::pending::range;
use crate::TimeoutId;
use crate::time::Micros;
use std::ops::{Range, RangeBounds};
use std::time::SystemTime;

/// A timeout that has failed for good.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DeadLetter {
    /// The id of the timeout.
    pub id: TimeoutId,
    /// Its due time.
    pub due: Micros,
    /// Its topic.
    pub topic: String,
    /// Its key.
    pub key: Option<String>,
    /// The number of its last attempt.
    pub attempt: u32,
    /// The format of the payload.
    pub format: i16,
    /// The payload, as it was written.
    pub payload: Vec<u8>,
    /// The reason for the failure.
    pub reason: String,
    /// The time at which it was buried.
    pub died: Micros,
}

impl DeadLetter {
    /// Returns a dead letter without key, with an empty payload.
    #[must_use]
    pub fn new(id: TimeoutId, due: Micros, topic: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            id,
            due,
            topic: topic.into(),
            key: None,
            attempt: 0,
            format: 0,
            payload: Vec::new(),
            reason: reason.into(),
            died: 0,
        }
    }
}

/// The dead letters that a call is about. The default is all of them.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use timer_durable::DeadFilter;
///
/// let last_week = SystemTime::now() - Duration::from_secs(7 * 86_400);
/// let filter = DeadFilter::new().topic("mail.send").key_prefix("customer-7/").died(..last_week);
/// assert_eq!(filter.key_prefix.as_deref(), Some("customer-7/"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadFilter {
    /// The topic.
    pub topic: Option<String>,
    /// The beginning of the key.
    pub key_prefix: Option<String>,
    /// The times at which the dead letters were buried, on the store's clock.
    pub died: Range<Micros>,
}

impl DeadFilter {
    /// Returns a filter that shows all dead letters.
    #[must_use]
    pub const fn new() -> Self {
        Self { topic: None, key_prefix: None, died: Micros::MIN..Micros::MAX }
    }

    /// Shows this topic only.
    #[must_use]
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// Shows only dead letters whose key begins with `prefix`.
    #[must_use]
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.key_prefix = Some(prefix.into());
        self
    }

    /// Shows only dead letters that were buried in this range, to the microsecond.
    #[must_use]
    pub fn died(mut self, times: impl RangeBounds<SystemTime>) -> Self {
        self.died = range(times);
        self
    }

    /// Returns `true` if the filter shows the dead letter.
    #[must_use]
    pub fn shows(&self, letter: &DeadLetter) -> bool {
        let prefix = self.key_prefix.as_deref();
        self.topic.as_deref().is_none_or(|topic| letter.topic == topic)
            && prefix.is_none_or(|prefix| letter.key.as_deref().is_some_and(|key| key.starts_with(prefix)))
            && self.died.contains(&letter.died)
    }
}

impl Default for DeadFilter {
    fn default() -> Self {
        Self::new()
    }
}
