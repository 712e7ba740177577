//! The handle of a timer, and the calls about one timeout.

use crate::TimeoutId;
use crate::answer::{CancelAnswer, ResetAnswer, ScheduleAnswer};
use crate::call::Call;
use crate::client::Client;
use crate::engine::handled_here;
use crate::error::Error;
use crate::message::{Answer, Request};
use crate::payload::{AsPayload, Payload};
use crate::schedule::{NewTimeout, Schedule, check_delay};
use crate::time::When;
use crate::topic::Topic;
use crate::traces::CallSpan;
use crate::transaction::Target;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A timer whose timeouts survive a restart.
///
/// A timeout is on disk when the [`Call`] of [`new_timeout`](Self::new_timeout) answers `Ok`. It
/// has a topic, whose handler the builder names, a payload, and optionally a key that is unique
/// among the pending timeouts of the topic. Its handler runs at least once, never before its due
/// time on the store's clock.
///
/// Each call is sent when it is made, and its [`Call`] is the answer, which comes when the store
/// has committed. Calls that are made at the same time share a commit. Clones are handles of the
/// same timer. When the last one is dropped, the timer stops without waiting for handlers.
///
/// # Examples
///
/// An order that is closed after half an hour, unless it is paid:
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{CancelAnswer, Due, DurableTimer, MemoryStore, Schedule, Topic};
///
/// const CLOSE: Topic<String> = Topic::new("order.close");
///
/// let builder = DurableTimer::builder().topic(CLOSE, |due: &Due<String>| {
///     println!("order {} was not paid in time", due.payload());
///     Ok(())
/// });
/// let (timer, mut driver) = builder.build_manual(MemoryStore::new())?;
///
/// let half_an_hour = Duration::from_secs(1800);
/// timer.schedule(CLOSE, Schedule::after(half_an_hour).key("17"), "17").wait()?;
/// timer.schedule(CLOSE, Schedule::after(half_an_hour).key("18"), "18").wait()?;
/// assert_eq!(timer.cancel(CLOSE, "17").wait()?, CancelAnswer::Cancelled);
/// assert_eq!(driver.advance(half_an_hour), 1);
/// # Ok::<(), timer_durable::Error>(())
/// ```
#[derive(Clone)]
pub struct DurableTimer {
    pub(crate) inner: Arc<Inner>,
}

/// A timer. It stops when the last handle drops it.
pub(crate) struct Inner {
    pub(crate) client: Arc<Client>,
    /// The keeper's thread, until `stop` has joined it. There is none on virtual time.
    pub(crate) thread: Mutex<Option<JoinHandle<()>>>,
}

impl DurableTimer {
    pub(crate) fn new(client: Client, thread: Option<JoinHandle<()>>) -> Self {
        Self { inner: Arc::new(Inner { client: Arc::new(client), thread: Mutex::new(thread) }) }
    }

    /// Returns the name of the timer.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.client.name
    }

    /// Returns the description of the store, such as `sqlite:timeouts.db`. It has no password.
    #[must_use]
    pub fn store(&self) -> &str {
        &self.inner.client.store
    }

    /// Schedules a timeout that is due `delay` from now. It is on disk when the call answers. This
    /// is the short form of [`schedule`](Self::schedule) with [`Schedule::after`].
    ///
    /// # Errors
    ///
    /// As for [`schedule`](Self::schedule).
    #[doc(alias = "offer")]
    #[doc(alias = "perform_in")]
    #[doc(alias = "enqueue_in")]
    pub fn new_timeout<P: Payload>(
        &self,
        topic: Topic<P>,
        delay: Duration,
        payload: &(impl AsPayload<P> + ?Sized),
    ) -> Call<TimeoutId> {
        self.insert(topic.with(Schedule::after(delay), payload), ScheduleAnswer::id)
    }

    /// Schedules a timeout as the schedule describes it. It is on disk when the call answers.
    ///
    /// # Errors
    ///
    /// - [`Error::OutcomeUnknown`] if the commit may or may not have been executed.
    /// - [`Error::KeyTaken`] if [`IfPending::Refuse`](crate::IfPending::Refuse) refuses, and [`Error::IdTooOld`] if the id was
    ///   made more than ten minutes ago and the store does not have it.
    /// - [`Error::UnknownTopic`], [`Error::TooLong`], [`Error::NulCharacter`],
    ///   [`Error::DelayTooLong`], [`Error::ZeroPeriod`], [`Error::Setting`] and [`Error::Payload`]
    ///   for arguments that are not allowed.
    /// - [`Error::QueueFull`] if too many calls wait for the store already.
    /// - [`Error::Store`] and [`Error::Stopped`].
    ///
    /// After all errors but the first one, nothing was scheduled.
    ///
    /// # Examples
    ///
    /// A call whose outcome is unknown is repeated with the id from its error, so that it makes no
    /// second timeout:
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, Error, Fault, IfPending, MemoryStore, Schedule, Topic};
    ///
    /// const CLOSE: Topic<String> = Topic::new("order.close");
    ///
    /// let store = MemoryStore::new();
    /// let builder = DurableTimer::builder().topic(CLOSE, |_: &Due<String>| Ok(()));
    /// let (timer, mut driver) = builder.build_manual(store.clone())?;
    /// let schedule = Schedule::after(Duration::from_secs(1800)).key("17").if_pending(IfPending::Replace);
    /// store.inject(Fault::LoseAnswer);
    /// let answer = match timer.schedule(CLOSE, schedule.clone(), "17").wait() {
    ///     Err(Error::OutcomeUnknown { id: Some(id), .. }) => timer.schedule(CLOSE, schedule.id(id), "17").wait()?,
    ///     result => result?,
    /// };
    /// # let _ = answer;
    /// assert_eq!(driver.advance(Duration::from_secs(1800)), 1);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn schedule<P: Payload>(
        &self,
        topic: Topic<P>,
        schedule: Schedule,
        payload: &(impl AsPayload<P> + ?Sized),
    ) -> Call<ScheduleAnswer> {
        self.insert(topic.with(schedule, payload), |answer| answer)
    }

    fn insert<T: 'static>(&self, new: NewTimeout, read: fn(ScheduleAnswer) -> T) -> Call<T> {
        let client = &self.inner.client;
        let call: Result<Call<T>, Error> = client.check(new).map(|mut new| {
            let key = new.key.as_deref();
            new.after = key.and_then(|key| handled_here(&client.keeper, &new.topic, key));
            let span = CallSpan::start(&new.topic, &mut new.traceparent);
            client.call(Request::Insert(Box::new(new)), move |answer| {
                let answer = answer.and_then(Answer::scheduled);
                span.end(answer.as_ref().map(|answer| answer.id()));
                answer.map(read)
            })
        });
        Call::from_result(call)
    }

    /// Cancels the pending timeout with this key, or the call that is
    /// [queued](ScheduleAnswer::Queued) beside its attempt.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`] if the commit may or may not have been executed. After
    /// [`Error::Store`], [`Error::QueueFull`] and [`Error::Stopped`], nothing was changed.
    pub fn cancel<P>(&self, topic: Topic<P>, key: &str) -> Call<CancelAnswer> {
        self.cancel_target(by_key(topic, key))
    }

    /// Cancels the pending timeout with this id, or the call that is queued under it or beside it.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel).
    pub fn cancel_by_id(&self, id: TimeoutId) -> Call<CancelAnswer> {
        self.cancel_target(Target::Id(id))
    }

    fn cancel_target(&self, target: Target) -> Call<CancelAnswer> {
        self.inner.client.call(Request::Cancel(target), |answer| answer.map(Answer::cancelled))
    }

    /// Moves the pending timeout with this key to `delay` from now, or the call that is
    /// [queued](ScheduleAnswer::Queued) beside its attempt.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel), and [`Error::DelayTooLong`].
    pub fn reset<P>(&self, topic: Topic<P>, key: &str, delay: Duration) -> Call<ResetAnswer> {
        self.reset_target(by_key(topic, key), delay)
    }

    /// Moves the pending timeout with this id to `delay` from now, or the call that is queued under
    /// it or beside it.
    ///
    /// # Errors
    ///
    /// As for [`reset`](Self::reset).
    pub fn reset_by_id(&self, id: TimeoutId, delay: Duration) -> Call<ResetAnswer> {
        self.reset_target(Target::Id(id), delay)
    }

    fn reset_target(&self, target: Target, delay: Duration) -> Call<ResetAnswer> {
        let call = check_delay(delay).map(|delay| {
            let request = Request::Reset(target, When::In(delay));
            self.inner.client.call(request, |answer| answer.map(Answer::reset))
        });
        Call::from_result(call)
    }
}

impl fmt::Debug for DurableTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableTimer").field("name", &self.name()).finish_non_exhaustive()
    }
}

pub(crate) fn by_key<P>(topic: Topic<P>, key: &str) -> Target {
    Target::Key { topic: topic.name.to_owned(), key: key.to_owned() }
}
