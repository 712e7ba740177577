//! The calls that schedule timeouts.

use crate::TimeoutId;
use crate::answer::ScheduleAnswer;
use crate::engine::handled_here;
use crate::error::{Error, MAX_KNOWN};
use crate::message::{Answer, Request};
use crate::new_timeout::{NewTimeout, after, check_length, check_name};
use crate::payload::{AsPayload, Payload};
use crate::time::{When, micros};
use crate::timer::DurableTimer;
use crate::topic::Topic;
use crate::traces::CallSpan;
use crate::transaction::IfPending;
use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

impl DurableTimer {
    /// Schedules a timeout. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// - [`Error::OutcomeUnknown`] if the commit may or may not have been executed.
    /// - [`Error::UnknownTopic`], [`Error::TooLong`], [`Error::NulCharacter`],
    ///   [`Error::DelayTooLong`] and [`Error::Payload`] for arguments that are not allowed.
    /// - [`Error::Store`], [`Error::Stopped`], and [`Error::OnKeeper`] on the keeper's own thread.
    ///   Nothing was scheduled.
    #[doc(alias = "offer")]
    #[doc(alias = "perform_in")]
    #[doc(alias = "enqueue_in")]
    pub fn new_timeout<P: Payload>(
        &self,
        topic: Topic<P>,
        delay: Duration,
        payload: &(impl AsPayload<P> + ?Sized),
    ) -> Result<TimeoutId, Error> {
        self.timeout_builder(topic, payload).after(delay).schedule().map(ScheduleAnswer::id)
    }

    /// The same as [`new_timeout`](Self::new_timeout), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`new_timeout`](Self::new_timeout).
    pub fn new_timeout_async<P: Payload, B: AsPayload<P> + ?Sized>(
        &self,
        topic: Topic<P>,
        delay: Duration,
        payload: &B,
    ) -> impl Future<Output = Result<TimeoutId, Error>> + Send + use<P, B> {
        let answer = self.timeout_builder(topic, payload).after(delay).schedule_async();
        async move { answer.await.map(ScheduleAnswer::id) }
    }

    /// Schedules a timeout whose key is unique among the pending timeouts of the topic.
    /// `if_pending` names the effect on a pending timeout with the same key.
    ///
    /// # Errors
    ///
    /// As for [`new_timeout`](Self::new_timeout), and [`Error::KeyTaken`] if [`IfPending::Refuse`]
    /// refuses.
    pub fn new_timeout_keyed<P: Payload>(
        &self,
        topic: Topic<P>,
        key: &str,
        delay: Duration,
        payload: &(impl AsPayload<P> + ?Sized),
        if_pending: IfPending,
    ) -> Result<ScheduleAnswer, Error> {
        self.timeout_builder(topic, payload).after(delay).key(key).if_pending(if_pending).schedule()
    }

    /// The same as [`new_timeout_keyed`](Self::new_timeout_keyed), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`new_timeout_keyed`](Self::new_timeout_keyed).
    pub fn new_timeout_keyed_async<P: Payload, B: AsPayload<P> + ?Sized>(
        &self,
        topic: Topic<P>,
        key: &str,
        delay: Duration,
        payload: &B,
        if_pending: IfPending,
    ) -> impl Future<Output = Result<ScheduleAnswer, Error>> + Send + use<P, B> {
        self.timeout_builder(topic, payload).after(delay).key(key).if_pending(if_pending).schedule_async()
    }

    /// Returns a call that schedules a timeout with any combination of settings. It is due now
    /// unless a setting says otherwise.
    #[doc(alias = "new_timeout_at")]
    #[doc(alias = "new_timeout_with_id")]
    #[doc(alias = "schedule_at_fixed_rate")]
    pub fn timeout_builder<P: Payload>(
        &self,
        topic: Topic<P>,
        payload: &(impl AsPayload<P> + ?Sized),
    ) -> TimeoutBuilder<'_> {
        TimeoutBuilder { timer: self, timeout: self.new_call(topic, payload) }
    }

    fn new_call<P: Payload>(
        &self,
        topic: Topic<P>,
        payload: &(impl AsPayload<P> + ?Sized),
    ) -> Result<NewTimeout, Error> {
        let parts = &self.inner.parts;
        let Some(topic) = parts.topics.get(topic.name) else {
            let known = parts.topics.iter().take(MAX_KNOWN).map(ToString::to_string).collect();
            return Err(Error::UnknownTopic { given: topic.name.to_owned(), known });
        };
        check_name("topic", topic)?;
        let payload = payload.encode_as()?;
        check_length("payload", payload.len(), parts.max_payload)?;
        Ok(NewTimeout::new(topic.clone(), P::FORMAT, payload))
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
/// use timer_durable::{Due, DurableTimer, Error, Fault, IfPending, MemoryStore, Topic};
///
/// const CLOSE: Topic<String> = Topic::new("order.close");
///
/// let store = MemoryStore::new();
/// let builder = DurableTimer::builder().topic(CLOSE, |_: &Due<String>| Ok(()));
/// let (timer, mut driver) = builder.build_manual(store.clone())?;
/// let call = || {
///     let call = timer.timeout_builder(CLOSE, "17");
///     let call = call.after(Duration::from_secs(1800));
///     call.key("17").if_pending(IfPending::Replace).max_lateness(Duration::from_secs(3600))
/// };
/// store.inject(Fault::LoseAnswer);
/// let answer = match call().schedule() {
///     Err(Error::OutcomeUnknown { id: Some(id), .. }) => call().id(id).schedule()?,
///     result => result?,
/// };
/// # let _ = answer;
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
    pub(crate) fn into_timeout(self) -> Result<NewTimeout, Error> {
        self.timeout
    }

    /// Sets a part to a value if this and all before are allowed.
    fn set<V>(mut self, value: Result<V, Error>, set: impl FnOnce(&mut NewTimeout, V)) -> Self {
        match (&mut self.timeout, value) {
            (Ok(timeout), Ok(value)) => set(timeout, value),
            (Ok(_), Err(error)) => self.timeout = Err(error),
            (Err(_), _) => {}
        }
        self
    }

    /// Makes the timeout due `delay` from now.
    pub fn after(self, delay: Duration) -> Self {
        self.set(after(delay), |timeout, when| timeout.when = when)
    }

    /// Makes the timeout due at an instant of the store's clock.
    pub fn at(self, at: SystemTime) -> Self {
        let at = When::At(micros(at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)));
        self.set(Ok(at), |timeout, at| timeout.when = at)
    }

    /// Sets the key. It is unique among the pending timeouts of the topic.
    ///
    /// In a handler, a call with the key of its own timeout is about the next timeout of that key.
    /// It is created in the commit that ends the attempt, and not if the attempt fails, because the
    /// next attempt calls again. A periodic timeout keeps its key unless the call replaces it.
    pub fn key(self, key: &str) -> Self {
        let keeper = &self.timer.inner.parts.keeper;
        self.set(check_name("key", key), |timeout, ()| {
            timeout.after = handled_here(keeper, &timeout.topic, key);
            timeout.key = Some(key.to_owned());
        })
    }

    /// Sets the effect on a pending timeout with the same key. The default is to keep it.
    pub fn if_pending(self, if_pending: IfPending) -> Self {
        self.set(Ok(if_pending), |timeout, if_pending| timeout.if_pending = if_pending)
    }

    /// Makes the timeout due when no call with its key has come for the delay of
    /// [`after`](Self::after), but at the latest `max` after the call that has created it. It has
    /// the payload of the newest call. The key is set by [`key`](Self::key), and
    /// [`IfPending::Debounce`] alone has no latest time.
    ///
    /// Each call is a write. Once the timeout has begun, the next call with its key is kept out,
    /// as with every [`IfPending`]. Until the first attempt, the limit of lateness counts from the
    /// latest time, so it does not suit a debounced timeout, and neither does a period.
    ///
    /// # Examples
    ///
    /// A search index that is written when a document has not changed for two seconds, and at the
    /// latest ten seconds after the first change:
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, MemoryStore, Topic};
    ///
    /// const INDEX: Topic<String> = Topic::new("document.index");
    ///
    /// let builder = DurableTimer::builder().topic(INDEX, |due: &Due<String>| Ok(println!("{}", due.payload())));
    /// let (timer, mut driver) = builder.build_manual(MemoryStore::new())?;
    /// let second = Duration::from_secs(1);
    /// let mut ran = 0;
    /// for version in 1..=12 {
    ///     let call = timer.timeout_builder(INDEX, &version.to_string()).key("document-7");
    ///     call.after(2 * second).debounce(10 * second).schedule()?;
    ///     ran += driver.advance(second);
    /// }
    /// assert_eq!(ran, 1);
    /// assert_eq!(driver.advance(second), 1);
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    #[doc(alias = "coalesce")]
    pub fn debounce(self, max: Duration) -> Self {
        self.set(after(max).map(|_| micros(max)), |timeout, max| {
            (timeout.if_pending, timeout.max_delay) = (IfPending::Debounce, Some(max));
        })
    }

    /// Sets the id, so that the call can be repeated. The id must be one of [`TimeoutId::new`] or
    /// of [`Error::OutcomeUnknown`]. If the store has it already, nothing is changed.
    pub fn id(self, id: TimeoutId) -> Self {
        self.set(Ok(id), |timeout, id| timeout.id = Some(id))
    }

    /// Repeats the timeout at a fixed rate. The first run is at the due time. The next run is
    /// written in the commit that ends a run, so a crash loses none. Runs that were missed are
    /// skipped, and runs never overlap.
    ///
    /// The next run counts from the time for which the run was planned. Neither a retry nor a wait
    /// for a handler shifts it. With a period of 10 s, a run that is due at 10 s and succeeds in a
    /// second attempt at 13 s is followed by one at 20 s. A reset begins a new phase.
    pub fn every(self, period: Duration) -> Self {
        let period = if period.is_zero() { Err(Error::ZeroPeriod) } else { Ok(micros(period)) };
        self.set(period, |timeout, period| timeout.period = Some(period))
    }

    /// Makes the timeout expire if it cannot begin within `limit` after its due time. The
    /// default is the limit of the [`Topic`].
    ///
    /// The time for which a timeout waits because no program has a handler for its topic counts
    /// towards the limit. After a failed attempt, the limit counts from the time of the retry. A
    /// periodic timeout that expires goes on with its next run.
    pub fn max_lateness(self, limit: Duration) -> Self {
        self.set(Ok(limit), |timeout, limit| timeout.max_lateness = Some(micros(limit)))
    }

    /// Sets the trace to which the call belongs, as a `traceparent` of the
    /// [W3C](https://www.w3.org/TR/trace-context/#traceparent-header). It is kept with the timeout,
    /// and [`Due::traceparent`](crate::Due::traceparent) returns it to the handler. At most 255
    /// bytes are allowed. With the feature `opentelemetry`, each call has the trace of its own span
    /// unless this sets another one.
    ///
    /// A call that moves a pending timeout leaves its trace alone, unless it gives it another
    /// payload.
    pub fn traceparent(self, traceparent: &str) -> Self {
        let checked = check_name("traceparent", traceparent);
        self.set(checked, |timeout, ()| timeout.traceparent = Some(traceparent.to_owned()))
    }

    /// Schedules the timeout. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// As for [`new_timeout_keyed`](DurableTimer::new_timeout_keyed), [`Error::ZeroPeriod`], and
    /// [`Error::IdTooOld`] if the id was made more than ten minutes ago and the store does not have
    /// it.
    pub fn schedule(self) -> Result<ScheduleAnswer, Error> {
        let mut timeout = Box::new(self.timeout?);
        let span = CallSpan::start(&timeout.topic, &mut timeout.traceparent);
        let answer = self.timer.call(Request::Insert(timeout)).and_then(Answer::scheduled);
        span.end(answer.as_ref().map(|answer| answer.id()));
        answer
    }

    /// The same as [`schedule`](Self::schedule), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`schedule`](Self::schedule).
    pub fn schedule_async(self) -> impl Future<Output = Result<ScheduleAnswer, Error>> + Send + use<> {
        let call = self.timeout.map(|timeout| {
            let mut timeout = Box::new(timeout);
            let span = CallSpan::start(&timeout.topic, &mut timeout.traceparent);
            (self.timer.call_async(Request::Insert(timeout)), span)
        });
        async move {
            let (answer, span) = call?;
            let answer = answer.await.and_then(Answer::scheduled);
            span.end(answer.as_ref().map(|answer| answer.id()));
            answer
        }
    }
}
