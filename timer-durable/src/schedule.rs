//! The time and the rules of a timeout, as a value.

use crate::TimeoutId;
use crate::time::{Micros, When, micros};
use crate::traces;
use crate::transaction::IfPending;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time of a new timeout, with its key and its rules. The calls in the user's own transaction
/// take it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{IfPending, Schedule};
///
/// let in_half_an_hour = Schedule::after(Duration::from_secs(1800));
/// let quiet_for_a_minute = Schedule::after(Duration::from_secs(60)).key("17").if_pending(IfPending::Later);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a schedule does nothing until it is given to a call"]
#[non_exhaustive]
pub struct Schedule {
    /// The due time.
    pub when: When,
    /// The key.
    pub key: Option<String>,
    /// The effect on a pending timeout with the same key.
    pub if_pending: IfPending,
    /// The id, for a call that may be repeated.
    pub id: Option<TimeoutId>,
    /// The period in microseconds.
    pub period: Option<Micros>,
    /// The limit of lateness in microseconds.
    pub max_lateness: Option<Micros>,
    /// The trace of the call, as a `traceparent` of the W3C.
    pub traceparent: Option<String>,
}

impl Schedule {
    /// Returns a schedule that is due `delay` after the call, on the store's clock.
    pub fn after(delay: Duration) -> Self {
        Self::new(When::In(micros(delay)))
    }

    /// Returns a schedule that is due at an instant of the store's clock.
    pub fn at(at: SystemTime) -> Self {
        Self::new(When::At(micros(at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))))
    }

    fn new(when: When) -> Self {
        Self {
            when,
            key: None,
            if_pending: IfPending::Keep,
            id: None,
            period: None,
            max_lateness: None,
            traceparent: None,
        }
    }

    /// Sets the key. It is unique among the pending timeouts of the topic.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the effect on a pending timeout with the same key. The default is to keep it.
    pub fn if_pending(mut self, if_pending: IfPending) -> Self {
        self.if_pending = if_pending;
        self
    }

    /// Sets the id, so that a transaction whose outcome is unknown can be repeated. If the store
    /// has it already, nothing is changed.
    pub fn id(mut self, id: TimeoutId) -> Self {
        self.id = Some(id);
        self
    }

    /// Repeats the timeout at a fixed rate, as
    /// [`TimeoutBuilder::every`](crate::TimeoutBuilder::every) does.
    pub fn every(mut self, period: Duration) -> Self {
        self.period = Some(micros(period));
        self
    }

    /// Makes the timeout expire if it cannot begin within `limit` after its due time. The default
    /// is the limit of the [`Topic`](crate::Topic).
    pub fn max_lateness(mut self, limit: Duration) -> Self {
        self.max_lateness = Some(micros(limit));
        self
    }

    /// Sets the trace of the call, as
    /// [`TimeoutBuilder::traceparent`](crate::TimeoutBuilder::traceparent) does.
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.traceparent = Some(traceparent.into());
        self
    }

    /// Sets the trace of the current span of OpenTelemetry, if there is one and the schedule has no
    /// trace. A crate that schedules a timeout of `topic` by itself calls this.
    pub fn traced(mut self, topic: &str) -> Self {
        self.traceparent = self.traceparent.or_else(|| traces::created(topic));
        self
    }
}
