//! A call that schedules a timeout with all of its settings.

use crate::TimeoutId;
use crate::error::Error;
use crate::message::{NewTimeout, Request};
use crate::payload::Payload;
use crate::time::{When, micros};
use crate::timer::{DurableTimer, after, check_key, scheduled};
use crate::transaction::IfPending;
use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

impl DurableTimer {
    /// Returns a call that schedules a timeout, due now unless a setting says otherwise. It takes
    /// the settings of all calls of the family `new_timeout`, in any combination.
    pub fn timeout_builder<P: Payload>(&self, topic: &str, payload: &P) -> TimeoutBuilder<'_> {
        TimeoutBuilder { timer: self, timeout: self.build(topic, When::In(0), payload) }
    }
}

/// A call that schedules a timeout. [`schedule`](Self::schedule) reports an argument that is not
/// allowed.
///
/// # Examples
///
/// A keyed call whose outcome is unknown is repeated with the id from its error, so that it makes
/// no second timeout:
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, Error, Fault, IfPending, MemoryStore, TimeoutBuilder};
///
/// let store = MemoryStore::new();
/// let builder = DurableTimer::builder().topic("order.close", |_: &Due<String>| Ok(()));
/// let (timer, mut driver) = builder.build_manual(store.clone())?;
/// let call = || {
///     let call = timer.timeout_builder("order.close", &"17".to_owned());
///     let call = call.after(Duration::from_secs(1800));
///     call.key("17").if_pending(IfPending::Replace).max_lateness(Duration::from_secs(3600))
/// };
/// store.inject(Fault::LoseAnswer);
/// let id = match call().schedule() {
///     Err(Error::OutcomeUnknown { id: Some(id), .. }) => call().id(id).schedule()?,
///     result => result?,
/// };
/// # let _ = id;
/// assert_eq!(driver.advance(Duration::from_secs(1800)), 1);
/// # Ok::<(), Error>(())
/// ```
#[must_use = "nothing is scheduled before `schedule` or `schedule_async`"]
#[derive(Debug)]
pub struct TimeoutBuilder<'t> {
    timer: &'t DurableTimer,
    timeout: Result<NewTimeout, Error>,
}

impl TimeoutBuilder<'_> {
    fn set(mut self, set: impl FnOnce(&mut NewTimeout) -> Result<(), Error>) -> Self {
        self.timeout = self.timeout.and_then(|mut timeout| set(&mut timeout).map(|()| timeout));
        self
    }

    /// Makes the timeout due `delay` from now.
    pub fn after(self, delay: Duration) -> Self {
        self.set(|timeout| {
            timeout.when = after(delay)?;
            Ok(())
        })
    }

    /// Makes the timeout due at an instant of the store's clock.
    pub fn at(self, at: SystemTime) -> Self {
        self.set(|timeout| {
            timeout.when = When::At(micros(at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)));
            Ok(())
        })
    }

    /// Sets the key, which is unique among the pending timeouts of the topic.
    pub fn key(self, key: &str) -> Self {
        self.set(|timeout| {
            check_key(key)?;
            timeout.key = Some(key.to_owned());
            Ok(())
        })
    }

    /// Sets the effect on a pending timeout with the same key. The default is to keep it.
    pub fn if_pending(self, if_pending: IfPending) -> Self {
        self.set(|timeout| {
            timeout.if_pending = if_pending;
            Ok(())
        })
    }

    /// Sets the id, so that the call can be repeated. If the store has the id already, nothing is
    /// changed.
    pub fn id(self, id: TimeoutId) -> Self {
        self.set(|timeout| {
            timeout.id = Some(id);
            Ok(())
        })
    }

    /// Repeats the timeout at a fixed rate, as
    /// [`schedule_at_fixed_rate`](DurableTimer::schedule_at_fixed_rate) does. The first run is at
    /// the due time.
    pub fn every(self, period: Duration) -> Self {
        self.set(|timeout| {
            if period.is_zero() {
                return Err(Error::ZeroPeriod);
            }
            timeout.period = Some(micros(period));
            Ok(())
        })
    }

    /// Makes the timeout expire if it cannot begin within `limit` after its due time. The
    /// default is the limit of the [`Topic`](crate::Topic).
    ///
    /// The time for which a timeout waits because no program has a handler for its topic counts
    /// towards the limit. After a failed attempt, the limit counts from the time of the retry. A
    /// periodic timeout that expires goes on with its next run.
    pub fn max_lateness(self, limit: Duration) -> Self {
        self.set(|timeout| {
            timeout.max_lateness = Some(micros(limit));
            Ok(())
        })
    }

    /// Schedules the timeout. It is on disk when this returns. Returns the id of the timeout that
    /// is pending afterwards.
    ///
    /// # Errors
    ///
    /// As for [`new_timeout`](DurableTimer::new_timeout),
    /// [`new_timeout_keyed`](DurableTimer::new_timeout_keyed) and
    /// [`schedule_at_fixed_rate`](DurableTimer::schedule_at_fixed_rate), and [`Error::IdTooOld`].
    pub fn schedule(self) -> Result<TimeoutId, Error> {
        let timeout = Box::new(self.timeout?);
        self.timer.call(Request::Insert(timeout)).and_then(scheduled)
    }

    /// The same as [`schedule`](Self::schedule), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`schedule`](Self::schedule). The call takes effect even if the future is dropped.
    pub fn schedule_async(self) -> impl Future<Output = Result<TimeoutId, Error>> + Send + use<> {
        let answer = self.timeout.map(|timeout| self.timer.call_async(Request::Insert(Box::new(timeout))));
        async move { answer?.await.and_then(scheduled) }
    }
}
