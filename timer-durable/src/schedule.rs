//! The description of a timeout, and the checks of its parts.

use crate::TimeoutId;
use crate::error::{Error, MAX_DELAY};
use crate::payload::PayloadError;
use crate::time::{Micros, When, micros};
use crate::traces;
use crate::transaction::IfPending;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest topic, key and trace, in bytes.
const MAX_NAME: usize = 255;

/// The description of a timeout, that is, its time, its key and its rules. All calls that schedule
/// a timeout take it: those of a timer, of a transaction and of a driver, and
/// [`Done::then`](crate::Done::then).
///
/// A part that is not allowed, such as a delay that is too long, is an error of the call that the
/// schedule is given to.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{IfPending, Schedule};
///
/// let minute = Duration::from_secs(60);
/// let in_half_an_hour = Schedule::after(30 * minute).key("order-17");
/// let lease = Schedule::after(minute).key("node-7").if_pending(IfPending::Later);
/// let each_hour = Schedule::after(minute).every(60 * minute).max_lateness(10 * minute);
/// let after_the_last_change = Schedule::debounce(2 * minute).cap(10 * minute).key("document-7");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a schedule does nothing until it is given to a call"]
#[doc(alias = "TimeoutBuilder")]
#[non_exhaustive]
pub struct Schedule {
    /// The due time.
    pub due: DueTime,
    /// The key.
    pub key: Option<String>,
    /// The effect on a pending timeout with the same key.
    pub if_pending: IfPending,
    /// The longest time for which calls can put off a timeout that is debounced.
    pub cap: Option<Duration>,
    /// The id, for a call that may be repeated.
    pub id: Option<TimeoutId>,
    /// The period.
    pub period: Option<Duration>,
    /// The limit of lateness.
    pub max_lateness: Option<Duration>,
    /// The trace of the call, as a `traceparent` of the W3C.
    pub traceparent: Option<String>,
}

/// The due time of a [`Schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueTime {
    /// After this delay, which counts from the call.
    After(Duration),
    /// At this instant of the store's clock.
    At(SystemTime),
}

impl Schedule {
    /// Returns a schedule that is due `delay` after the call, on the store's clock. At most 290,000
    /// years are allowed.
    pub fn after(delay: Duration) -> Self {
        Self::new(DueTime::After(delay))
    }

    /// Returns a schedule that is due at an instant of the store's clock. An instant in the past
    /// is now.
    #[doc(alias = "new_timeout_at")]
    pub fn at(at: SystemTime) -> Self {
        Self::new(DueTime::At(at))
    }

    /// Returns a schedule that is due when no call with its key has come for `period`. The timeout
    /// has the payload of the newest call. This is [`after`](Self::after) with
    /// [`IfPending::Debounce`], and [`cap`](Self::cap) limits how long calls can put it off.
    ///
    /// Each call is a write. Once the timeout has begun, the next call with its key is
    /// [queued](crate::ScheduleAnswer::Queued), and is the next timeout of the key when the attempt
    /// has ended. So each version is followed by an attempt that has it or a later one.
    ///
    /// # Examples
    ///
    /// A search index that is written when a document has not changed for two seconds, and at the
    /// latest ten seconds after the first change:
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, MemoryStore, Schedule, Topic};
    ///
    /// const INDEX: Topic<String> = Topic::new("document.index");
    ///
    /// let builder = DurableTimer::builder().topic(INDEX, |due: &Due<String>| Ok(println!("{}", due.payload())));
    /// let (timer, mut driver) = builder.build_manual(MemoryStore::new())?;
    /// let second = Duration::from_secs(1);
    /// let mut ran = 0;
    /// for version in 1..=12 {
    ///     let schedule = Schedule::debounce(2 * second).cap(10 * second).key("document-7");
    ///     timer.schedule(INDEX, schedule, &version.to_string()).wait()?;
    ///     ran += driver.advance(second);
    /// }
    /// assert_eq!(ran, 1);
    /// assert_eq!(driver.advance(second), 1);
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    #[doc(alias = "coalesce")]
    pub fn debounce(period: Duration) -> Self {
        Self::after(period).if_pending(IfPending::Debounce)
    }

    fn new(due: DueTime) -> Self {
        Self {
            due,
            key: None,
            if_pending: IfPending::Keep,
            cap: None,
            id: None,
            period: None,
            max_lateness: None,
            traceparent: None,
        }
    }

    /// Makes a timeout that is [debounced](Self::debounce) due at the latest `max` after the call
    /// that has created it. With another [`IfPending`], the call returns [`Error::Setting`].
    ///
    /// Until the first attempt, the limit of lateness counts from the latest time, so it does not
    /// suit a debounced timeout, and neither does a period.
    pub fn cap(mut self, max: Duration) -> Self {
        self.cap = Some(max);
        self
    }

    /// Sets the key, of at most 255 bytes. It is unique among the pending timeouts of the topic.
    ///
    /// In a handler, a call with the key of its own timeout is about the next timeout of that key.
    /// It is created in the commit that ends the attempt, and not if the attempt fails, because the
    /// next attempt calls again. A periodic timeout keeps its key unless the call replaces it, so
    /// its handler calls as others do, whose calls are [queued](crate::ScheduleAnswer::Queued) while
    /// the attempt runs.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the effect on a pending timeout with the same key, also after its attempt if that runs.
    /// The default is to keep it.
    pub fn if_pending(mut self, if_pending: IfPending) -> Self {
        self.if_pending = if_pending;
        self
    }

    /// Sets the id, so that a call whose outcome is unknown can be repeated. The id must be one of
    /// [`TimeoutId::new`] or of [`Error::OutcomeUnknown`]. If the store has it already, nothing is
    /// changed.
    #[doc(alias = "new_timeout_with_id")]
    pub fn id(mut self, id: TimeoutId) -> Self {
        self.id = Some(id);
        self
    }

    /// Repeats the timeout at a fixed rate. The first run is at the due time. The next run is
    /// written in the commit that ends a run, so a crash loses none. Runs that were missed are
    /// skipped, and runs never overlap. A period of zero is [`Error::ZeroPeriod`].
    ///
    /// The next run counts from the time for which the run was planned. Neither a retry nor a wait
    /// for a handler shifts it. With a period of 10 s, a run that is due at 10 s and succeeds in a
    /// second attempt at 13 s is followed by one at 20 s. A reset begins a new phase.
    #[doc(alias = "schedule_at_fixed_rate")]
    pub fn every(mut self, period: Duration) -> Self {
        self.period = Some(period);
        self
    }

    /// Makes the timeout expire if it cannot begin within `limit` after its due time. The default
    /// is the limit of the [`Topic`](crate::Topic).
    ///
    /// The time for which a timeout waits because no program has a handler for its topic counts
    /// towards the limit. After a failed attempt, the limit counts from the time of the retry. A
    /// periodic timeout that expires goes on with its next run.
    pub fn max_lateness(mut self, limit: Duration) -> Self {
        self.max_lateness = Some(limit);
        self
    }

    /// Sets the trace to which the call belongs, as a `traceparent` of the
    /// [W3C](https://www.w3.org/TR/trace-context/#traceparent-header). It is kept with the timeout,
    /// and [`Due::traceparent`](crate::Due::traceparent) returns it to the handler. At most 255
    /// bytes are allowed. With the feature `opentelemetry`, each call has the trace of its own span
    /// unless this sets another one.
    ///
    /// A call that moves a pending timeout leaves its trace alone, unless it gives it another
    /// payload.
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

/// A timeout that [`schedule_many`](crate::DurableTimer::schedule_many) is to create.
/// [`Topic::with`](crate::Topic::with) makes it.
#[derive(Debug)]
#[must_use = "a timeout is not scheduled until it is given to a call"]
pub struct NewTimeout {
    pub(crate) topic: &'static str,
    pub(crate) schedule: Schedule,
    pub(crate) format: i16,
    pub(crate) payload: Result<Vec<u8>, PayloadError>,
}

impl NewTimeout {
    /// Checks the parts. A payload may have up to `max_payload` bytes.
    pub(crate) fn check(self, max_payload: usize) -> Result<CheckedTimeout, Error> {
        let Schedule { due, key, if_pending, cap, id, period, max_lateness, traceparent } = self.schedule;
        let names = [("topic", Some(self.topic)), ("key", key.as_deref()), ("traceparent", traceparent.as_deref())];
        names.into_iter().try_for_each(|(part, name)| check_name(part, name.unwrap_or_default()))?;
        if period == Some(Duration::ZERO) {
            return Err(Error::ZeroPeriod);
        }
        if cap.is_some() && if_pending != IfPending::Debounce {
            let given = format!("one with IfPending::{if_pending:?}");
            return Err(Error::Setting { name: "cap", given, allowed: "one with IfPending::Debounce" });
        }
        let when = match due {
            DueTime::After(delay) => When::In(check_delay(delay)?),
            DueTime::At(at) => When::At(micros(at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))),
        };
        let payload = self.payload?;
        check_length("payload", payload.len(), max_payload)?;
        Ok(CheckedTimeout {
            after: None,
            id,
            when,
            topic: self.topic.into(),
            key,
            if_pending,
            max_delay: cap.map(check_delay).transpose()?,
            format: self.format,
            payload,
            period: period.map(micros),
            max_lateness: max_lateness.map(micros),
            traceparent,
        })
    }
}

/// A new timeout whose parts are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckedTimeout {
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

impl CheckedTimeout {
    /// Returns the due time and the latest due time.
    pub(crate) fn times(&self, now: Micros) -> (Micros, Option<Micros>) {
        let cap = self.max_delay.map(|delay| now.saturating_add(delay));
        let due = self.when.from(now);
        (cap.map_or(due, |cap| due.min(cap)), cap)
    }
}

/// Returns a delay in microseconds, unless it is too long.
pub(crate) fn check_delay(delay: Duration) -> Result<Micros, Error> {
    if delay > MAX_DELAY { Err(Error::DelayTooLong { given: delay }) } else { Ok(micros(delay)) }
}

fn check_name(part: &'static str, name: &str) -> Result<(), Error> {
    if name.contains('\0') {
        return Err(Error::NulCharacter { part });
    }
    check_length(part, name.len(), MAX_NAME)
}

pub(crate) fn check_length(part: &'static str, given: usize, allowed: usize) -> Result<(), Error> {
    if given > allowed { Err(Error::TooLong { part, given, allowed }) } else { Ok(()) }
}
