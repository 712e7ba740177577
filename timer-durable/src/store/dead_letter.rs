//! Timeouts that have failed for good.

use crate::TimeoutId;
use crate::time::Micros;

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
