//! The handle of a timer.

use crate::TimeoutId;
use crate::answer::{Cancelled, ResetAnswer, cancelled, reset};
use crate::engine::is_keeper;
use crate::error::{Error, MAX_DELAY, MAX_KNOWN};
use crate::manual::Shared;
use crate::message::{Answer, Message, NewTimeout, Reply, Request};
use crate::payload::Payload;
use crate::shutdown::Shutdown;
use crate::stats::Figures;
use crate::store::Store;
use crate::time::{When, micros};
use crate::transaction::{IfPending, Target};
use crossbeam_channel::Sender;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest topic and key, in bytes.
const MAX_NAME: usize = 255;

/// A caller that finds at least `CROWD` messages in the keeper's queue yields its CPU `YIELDS`
/// times before it sleeps. While many threads call, the keeper spends most of its time on waking
/// them, and a thread on a CPU that stays awake is woken quickly. With few callers, yielding would
/// only cost CPU time.
const CROWD: usize = 12;
const YIELDS: usize = 32;

/// A timer whose timeouts survive a restart.
///
/// A timeout is on disk when [`new_timeout`](Self::new_timeout) returns. It has a topic, whose
/// handler the builder names, a payload, and optionally a key that is unique among the pending
/// timeouts of the topic. Its handler runs at least once, never before its due time on the store's
/// clock.
///
/// Calls block until the store has committed. Many threads that call at the same time share a
/// commit. The methods whose names end in `_async` return futures instead. Clones are handles of
/// the same timer. When the last one is dropped, the timer stops without waiting for handlers.
///
/// # Examples
///
/// An order that is closed after half an hour, unless it is paid:
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Cancelled, Due, DurableTimer, IfPending, MemoryStore};
///
/// let builder = DurableTimer::builder().topic("order.close", |due: &Due<String>| {
///     println!("order {} was not paid in time", due.payload());
///     Ok(())
/// });
/// let (timer, mut driver) = builder.build_manual(MemoryStore::new())?;
///
/// let half_an_hour = Duration::from_secs(1800);
/// timer.new_timeout_keyed("order.close", "17", half_an_hour, &"17".to_owned(), IfPending::Keep)?;
/// timer.new_timeout_keyed("order.close", "18", half_an_hour, &"18".to_owned(), IfPending::Keep)?;
/// assert_eq!(timer.cancel("order.close", "17")?, Cancelled::Cancelled);
/// assert_eq!(driver.advance(half_an_hour), 1);
/// # Ok::<(), timer_durable::Error>(())
/// ```
#[derive(Clone)]
pub struct DurableTimer {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) parts: Parts,
    pub(crate) host: Host,
}

/// The parts of a timer that callers use.
pub(crate) struct Parts {
    pub(crate) name: String,
    pub(crate) store: String,
    pub(crate) keeper: Sender<Message>,
    pub(crate) figures: Arc<Figures>,
    pub(crate) shutdown: Arc<Shutdown>,
    pub(crate) topics: Vec<Arc<str>>,
    pub(crate) max_payload: usize,
}

/// The place where the keeper takes its turns.
pub(crate) enum Host {
    Thread(Mutex<Option<JoinHandle<()>>>),
    Manual(Shared),
}

impl DurableTimer {
    pub(crate) fn with_thread(parts: Parts, thread: JoinHandle<()>) -> Self {
        Self { inner: Arc::new(Inner { parts, host: Host::Thread(Mutex::new(Some(thread))) }) }
    }

    pub(crate) fn with_driver(parts: Parts, shared: Shared) -> Self {
        Self { inner: Arc::new(Inner { parts, host: Host::Manual(shared) }) }
    }

    /// Returns the name of the timer.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.parts.name
    }

    /// Returns the description of the store, such as `sqlite:timeouts.db`. It has no password.
    #[must_use]
    pub fn store(&self) -> &str {
        &self.inner.parts.store
    }

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
    pub fn new_timeout<P: Payload>(&self, topic: &str, delay: Duration, payload: &P) -> Result<TimeoutId, Error> {
        self.schedule(self.build(topic, after(delay)?, payload)?)
    }

    /// Schedules a timeout with an id of the caller, so that the call can be repeated. The id must
    /// be one of [`TimeoutId::new`] or of [`Error::OutcomeUnknown`]. If the store has it already,
    /// nothing is changed. A call with a key is repeated by
    /// [`timeout_builder`](Self::timeout_builder), because this one takes no key.
    ///
    /// # Errors
    ///
    /// As for [`new_timeout`](Self::new_timeout), and [`Error::IdTooOld`] if the id was made more
    /// than ten minutes ago and the store does not have it.
    pub fn new_timeout_with_id<P: Payload>(
        &self,
        id: TimeoutId,
        topic: &str,
        delay: Duration,
        payload: &P,
    ) -> Result<TimeoutId, Error> {
        self.schedule(NewTimeout { id: Some(id), ..self.build(topic, after(delay)?, payload)? })
    }

    /// Schedules a timeout at an instant of the store's clock.
    ///
    /// # Errors
    ///
    /// As for [`new_timeout`](Self::new_timeout).
    #[doc(alias = "perform_at")]
    pub fn new_timeout_at<P: Payload>(&self, topic: &str, at: SystemTime, payload: &P) -> Result<TimeoutId, Error> {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        self.schedule(self.build(topic, When::At(micros(since)), payload)?)
    }

    /// Schedules a timeout whose key is unique among the pending timeouts of the topic.
    /// `if_pending` names the effect on a pending timeout with the same key. Returns the id of the
    /// timeout that is pending afterwards.
    ///
    /// # Errors
    ///
    /// As for [`new_timeout`](Self::new_timeout), and [`Error::KeyTaken`] if [`IfPending::Refuse`]
    /// refuses.
    pub fn new_timeout_keyed<P: Payload>(
        &self,
        topic: &str,
        key: &str,
        delay: Duration,
        payload: &P,
        if_pending: IfPending,
    ) -> Result<TimeoutId, Error> {
        self.schedule(self.keyed(topic, key, delay, payload, if_pending)?)
    }

    /// Schedules a timeout that runs first after `period` and then at a fixed rate. The next run is
    /// written in the commit that ends a run, so a crash loses none. Runs that were missed are
    /// skipped, and runs never overlap. A pending timeout with the same key is kept.
    ///
    /// The next run counts from the time for which the run was planned. Neither a retry nor a wait
    /// for a handler shifts it. With a period of 10 s, a run that is due at 10 s and succeeds in a
    /// second attempt at 13 s is followed by one at 20 s. A reset begins a new phase.
    ///
    /// # Errors
    ///
    /// As for [`new_timeout`](Self::new_timeout), and [`Error::ZeroPeriod`].
    pub fn schedule_at_fixed_rate<P: Payload>(
        &self,
        topic: &str,
        key: &str,
        period: Duration,
        payload: &P,
    ) -> Result<TimeoutId, Error> {
        if period.is_zero() {
            return Err(Error::ZeroPeriod);
        }
        let timeout = self.keyed(topic, key, period, payload, IfPending::Keep)?;
        self.schedule(NewTimeout { period: Some(micros(period)), ..timeout })
    }

    /// Cancels the pending timeout with this key.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`] if the commit may or may not have been executed. After
    /// [`Error::Store`], [`Error::Stopped`], and [`Error::OnKeeper`] on the keeper's own thread,
    /// nothing was changed.
    pub fn cancel(&self, topic: &str, key: &str) -> Result<Cancelled, Error> {
        self.call(Request::Cancel(by_key(topic, key))).map(cancelled)
    }

    /// Cancels the pending timeout with this id.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel).
    pub fn cancel_by_id(&self, id: TimeoutId) -> Result<Cancelled, Error> {
        self.call(Request::Cancel(Target::Id(id))).map(cancelled)
    }

    /// Moves the pending timeout with this key to `delay` from now.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel), and [`Error::DelayTooLong`].
    pub fn reset(&self, topic: &str, key: &str, delay: Duration) -> Result<ResetAnswer, Error> {
        self.call(Request::Reset(by_key(topic, key), after(delay)?)).map(reset)
    }

    /// Moves the pending timeout with this id to `delay` from now.
    ///
    /// # Errors
    ///
    /// As for [`reset`](Self::reset).
    pub fn reset_by_id(&self, id: TimeoutId, delay: Duration) -> Result<ResetAnswer, Error> {
        self.call(Request::Reset(Target::Id(id), after(delay)?)).map(reset)
    }

    pub(crate) fn build<P: Payload>(&self, topic: &str, when: When, payload: &P) -> Result<NewTimeout, Error> {
        let parts = &self.inner.parts;
        let Some(topic) = parts.topics.iter().find(|known| &***known == topic) else {
            let known = parts.topics.iter().take(MAX_KNOWN).map(ToString::to_string).collect();
            return Err(Error::UnknownTopic { given: topic.to_owned(), known });
        };
        check_name("topic", topic)?;
        let bytes = payload.encode()?;
        check_length("payload", bytes.len(), parts.max_payload)?;
        Ok(NewTimeout {
            id: None,
            when,
            topic: topic.clone(),
            key: None,
            if_pending: IfPending::Keep,
            format: P::FORMAT,
            payload: bytes,
            period: None,
            max_lateness: None,
        })
    }

    pub(crate) fn keyed<P: Payload>(
        &self,
        topic: &str,
        key: &str,
        delay: Duration,
        payload: &P,
        if_pending: IfPending,
    ) -> Result<NewTimeout, Error> {
        check_key(key)?;
        let timeout = self.build(topic, after(delay)?, payload)?;
        Ok(NewTimeout { key: Some(key.to_owned()), if_pending, ..timeout })
    }

    fn schedule(&self, timeout: NewTimeout) -> Result<TimeoutId, Error> {
        self.call(Request::Insert(Box::new(timeout))).and_then(scheduled)
    }

    fn send(&self, request: Request) -> Result<oneshot::Receiver<Result<Answer, Error>>, Error> {
        let (reply, answer) = Reply::new();
        self.inner.parts.keeper.send(Message::Call(request, reply)).map_err(|_| Error::Stopped)?;
        self.settle();
        Ok(answer)
    }

    pub(crate) fn call(&self, request: Request) -> Result<Answer, Error> {
        if is_keeper() {
            return Err(Error::OnKeeper);
        }
        let answer = self.send(request)?;
        let yields = if self.inner.parts.keeper.len() < CROWD { 0 } else { YIELDS };
        for _ in 0..yields {
            match answer.try_recv() {
                Err(oneshot::TryRecvError::Empty) => std::thread::yield_now(),
                answered => return answered.unwrap_or(Err(Error::Stopped)),
            }
        }
        answer.recv().unwrap_or(Err(Error::Stopped))
    }

    pub(crate) fn call_async(&self, request: Request) -> impl Future<Output = Result<Answer, Error>> + Send + use<> {
        let answer = self.send(request);
        async move { answer?.await.unwrap_or(Err(Error::Stopped)) }
    }

    /// Runs a function on the store, between two batches.
    pub(crate) fn use_store<R: Send + 'static>(
        &self,
        function: impl FnOnce(&mut dyn Store) -> Result<R, crate::store::StoreError> + Send + 'static,
    ) -> Result<R, Error> {
        if is_keeper() {
            return Err(Error::OnKeeper);
        }
        let (reply, answer) = Reply::new();
        let call = move |store: &mut dyn Store| reply.send(function(store).map_err(Error::from));
        self.inner.parts.keeper.send(Message::UseStore(Box::new(call))).map_err(|_| Error::Stopped)?;
        self.settle();
        answer.recv().unwrap_or(Err(Error::Stopped))
    }

    /// Takes the turns of a manual timer. Does nothing for a timer with a thread.
    pub(crate) fn settle(&self) {
        if let Host::Manual(shared) = &self.inner.host {
            shared.settle();
        }
    }
}

impl fmt::Debug for DurableTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableTimer").field("name", &self.name()).finish_non_exhaustive()
    }
}

pub(crate) fn by_key(topic: &str, key: &str) -> Target {
    Target::Key { topic: topic.to_owned(), key: key.to_owned() }
}

pub(crate) fn after(delay: Duration) -> Result<When, Error> {
    if delay > MAX_DELAY { Err(Error::DelayTooLong { given: delay }) } else { Ok(When::In(micros(delay))) }
}

pub(crate) fn check_key(key: &str) -> Result<(), Error> {
    check_name("key", key)
}

fn check_name(part: &'static str, name: &str) -> Result<(), Error> {
    if name.contains('\0') {
        return Err(Error::NulCharacter { part });
    }
    check_length(part, name.len(), MAX_NAME)
}

fn check_length(part: &'static str, given: usize, allowed: usize) -> Result<(), Error> {
    if given > allowed { Err(Error::TooLong { part, given, allowed }) } else { Ok(()) }
}

pub(crate) fn scheduled(answer: Answer) -> Result<TimeoutId, Error> {
    match answer {
        Answer::Scheduled(id) => Ok(id),
        _ => Err(Error::Stopped),
    }
}
