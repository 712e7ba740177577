//! A timeout that a caller or a handler wants, and the checks of its parts.

use crate::TimeoutId;
use crate::error::{Error, MAX_DELAY};
use crate::time::{Micros, When, micros};
use crate::transaction::IfPending;
use std::sync::Arc;
use std::time::Duration;

/// The longest topic and key, in bytes.
const MAX_NAME: usize = 255;

/// A timeout that a caller wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewTimeout {
    /// The attempt whose handler schedules its key. The timeout is created when the attempt ends.
    pub(crate) after: Option<TimeoutId>,
    pub(crate) id: Option<TimeoutId>,
    pub(crate) when: When,
    pub(crate) topic: Arc<str>,
    pub(crate) key: Option<String>,
    pub(crate) if_pending: IfPending,
    /// The longest time from the first call of a timeout that is debounced until it is due.
    pub(crate) max_delay: Option<Micros>,
    pub(crate) format: i16,
    pub(crate) payload: Vec<u8>,
    pub(crate) period: Option<Micros>,
    pub(crate) max_lateness: Option<Micros>,
    pub(crate) traceparent: Option<String>,
}

impl NewTimeout {
    /// Returns the due time and the latest due time.
    pub(crate) fn times(&self, now: Micros) -> (Micros, Option<Micros>) {
        let cap = self.max_delay.map(|delay| now.saturating_add(delay));
        let due = self.when.from(now);
        (cap.map_or(due, |cap| due.min(cap)), cap)
    }

    /// Returns a timeout that is due now, without key, period and limit of lateness.
    pub(crate) fn new(topic: Arc<str>, format: i16, payload: Vec<u8>) -> Self {
        Self {
            after: None,
            id: None,
            when: When::In(0),
            topic,
            key: None,
            if_pending: IfPending::Keep,
            max_delay: None,
            format,
            payload,
            period: None,
            max_lateness: None,
            traceparent: None,
        }
    }
}

pub(crate) fn after(delay: Duration) -> Result<When, Error> {
    if delay > MAX_DELAY { Err(Error::DelayTooLong { given: delay }) } else { Ok(When::In(micros(delay))) }
}

pub(crate) fn check_name(part: &'static str, name: &str) -> Result<(), Error> {
    if name.contains('\0') {
        return Err(Error::NulCharacter { part });
    }
    check_length(part, name.len(), MAX_NAME)
}

pub(crate) fn check_length(part: &'static str, given: usize, allowed: usize) -> Result<(), Error> {
    if given > allowed { Err(Error::TooLong { part, given, allowed }) } else { Ok(()) }
}
