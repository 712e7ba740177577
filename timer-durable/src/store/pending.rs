//! Timeouts that were read back, and the filter of a list.

use super::position::Position;
use crate::TimeoutId;
use crate::payload::{Payload, PayloadError};
use crate::time::Micros;
use std::ops::{Bound, Range, RangeBounds};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The state of a timeout that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum TimeoutState {
    /// It waits for its due time, or for a handler.
    Pending,
    /// An attempt has begun and has not ended. After a crash that is so until another process or
    /// the next start takes the timeout over.
    Running,
    /// An attempt has failed, and the timeout waits for the next one.
    Retrying,
    /// It is a call that waits until the running attempt of its key has ended, see
    /// [`ScheduleAnswer::Queued`](crate::ScheduleAnswer::Queued).
    Queued,
}

/// A timeout that has not ended, as it was read back.
///
/// [`DurableTimer::get`](crate::DurableTimer::get) returns it with its payload, and
/// [`DurableTimer::list`](crate::DurableTimer::list) without.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Pending<P> {
    /// The id.
    pub id: TimeoutId,
    /// The topic.
    pub topic: String,
    /// The key.
    pub key: Option<String>,
    /// The due time, of the next attempt or of the one that runs. That of a queued call is the one
    /// that it will give to the timeout of its key.
    pub due: Micros,
    /// The state.
    pub state: TimeoutState,
    /// The time at which the attempt began that runs.
    pub running_since: Option<Micros>,
    /// The number of attempts that have begun.
    pub attempt: u32,
    /// The period of a periodic timeout.
    pub period: Option<Micros>,
    /// The payload.
    pub payload: P,
}

/// A row of a list, a timeout without its payload.
pub type PendingRow = Pending<()>;

/// A timeout with the format and the bytes of its payload, as a store returns it.
pub type StoredPending = Pending<(i16, Vec<u8>)>;

impl<P> Pending<P> {
    /// Returns a pending timeout without key and period.
    #[must_use]
    pub fn new(id: TimeoutId, due: Micros, topic: impl Into<String>, payload: P) -> Self {
        Self {
            id,
            topic: topic.into(),
            key: None,
            due,
            state: TimeoutState::Pending,
            running_since: None,
            attempt: 0,
            period: None,
            payload,
        }
    }

    /// Returns the due time as a time of the system, by the store's clock.
    #[must_use]
    pub fn deadline(&self) -> SystemTime {
        system_time(self.due)
    }

    /// Returns the position in the order of due times.
    #[must_use]
    pub fn position(&self) -> Position {
        Position { due: self.due, id: self.id }
    }

    /// Replaces the payload.
    pub(crate) fn with_payload<Q>(self, payload: Q) -> (P, Pending<Q>) {
        let Self { id, topic, key, due, state, running_since, attempt, period, payload: old } = self;
        (old, Pending { id, topic, key, due, state, running_since, attempt, period, payload })
    }
}

impl StoredPending {
    /// Reads the payload.
    pub(crate) fn decode<P: Payload>(self) -> Result<Pending<P>, PayloadError> {
        let ((format, bytes), row) = self.with_payload(());
        Ok(row.with_payload(P::decode(bytes, format)?).1)
    }
}

/// The timeouts that a list shows. The default shows all.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use timer_durable::{Filter, TimeoutState};
///
/// let soon = SystemTime::now() + Duration::from_secs(60);
/// let filter = Filter::new().topic("order.close").key_prefix("customer-7/").due(..soon).state(TimeoutState::Pending);
/// assert_eq!(filter.key_prefix.as_deref(), Some("customer-7/"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// The topic. Other topics are read and skipped unless there is a prefix.
    pub topic: Option<String>,
    /// The beginning of the key, which needs a topic. An index finds it.
    pub key_prefix: Option<String>,
    /// The due times.
    pub due: Range<Micros>,
    /// The state. Timeouts in other states are read and skipped.
    pub state: Option<TimeoutState>,
}

impl Filter {
    /// Returns a filter that shows all timeouts.
    #[must_use]
    pub const fn new() -> Self {
        Self { topic: None, key_prefix: None, due: Micros::MIN..Micros::MAX, state: None }
    }

    /// Shows this topic only.
    #[must_use]
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// Shows only timeouts whose key begins with `prefix`.
    #[must_use]
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.key_prefix = Some(prefix.into());
        self
    }

    /// Shows only timeouts that are due in this range, to the microsecond.
    #[must_use]
    pub fn due(mut self, times: impl RangeBounds<SystemTime>) -> Self {
        self.due = range(times);
        self
    }

    /// Shows only timeouts in this state.
    #[must_use]
    pub const fn state(mut self, state: TimeoutState) -> Self {
        self.state = Some(state);
        self
    }

    /// Returns the range of the keys with the prefix, for a store that searches an index of keys in
    /// the order of their bytes. `None` is behind all keys.
    #[must_use]
    pub fn keys(&self) -> Option<(&str, Option<String>)> {
        let prefix = self.key_prefix.as_deref()?;
        let mut end = prefix.to_owned();
        while let Some(last) = end.pop() {
            // The next character. It is never a surrogate.
            let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
            if let Some(next) = next {
                end.push(next);
                return Some((prefix, Some(end)));
            }
        }
        Some((prefix, None))
    }

    /// Returns `true` if the filter shows the row, for a store that reads all of them.
    #[must_use]
    pub fn shows(&self, row: &PendingRow) -> bool {
        let prefix = self.key_prefix.as_deref();
        self.topic.as_deref().is_none_or(|topic| row.topic == topic)
            && prefix.is_none_or(|prefix| row.key.as_deref().is_some_and(|key| key.starts_with(prefix)))
            && self.due.contains(&row.due)
            && self.state.is_none_or(|state| row.state == state)
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the microseconds of a range of times.
pub(super) fn range(times: impl RangeBounds<SystemTime>) -> Range<Micros> {
    let after = |time: &SystemTime| micros(*time).saturating_add(1);
    let start = match times.start_bound() {
        Bound::Included(time) => micros(*time),
        Bound::Excluded(time) => after(time),
        Bound::Unbounded => Micros::MIN,
    };
    let end = match times.end_bound() {
        Bound::Included(time) => after(time),
        Bound::Excluded(time) => micros(*time),
        Bound::Unbounded => Micros::MAX,
    };
    start..end
}

fn system_time(time: Micros) -> SystemTime {
    let distance = Duration::from_micros(time.unsigned_abs());
    let time = if time < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    time.unwrap_or(UNIX_EPOCH)
}

fn micros(time: SystemTime) -> Micros {
    let micros = |length: Duration| Micros::try_from(length.as_micros()).unwrap_or(Micros::MAX);
    time.duration_since(UNIX_EPOCH).map_or_else(|before| -micros(before.duration()), micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_prefix_end_at_the_next_character() {
        let end = |prefix: &str| Filter::new().key_prefix(prefix).keys().unwrap().1;
        assert_eq!(end("a/").as_deref(), Some("a0"));
        assert_eq!(end("a\u{d7ff}").as_deref(), Some("a\u{e000}"));
        assert_eq!(end("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!((end(""), end("\u{10ffff}")), (None, None));
    }

    #[test]
    fn a_range_of_times_is_one_of_microseconds() {
        let time = UNIX_EPOCH + Duration::from_micros(7);
        assert_eq!(Filter::new().due(time..=time).due, 7..8);
        assert_eq!(Filter::new().due(..time).due, Micros::MIN..7);
        assert_eq!(system_time(micros(time)), time);
    }
}
