//! The handle of a timer.

use crate::TimeoutId;
use crate::answer::{CancelAnswer, ResetAnswer};
use crate::engine::is_keeper;
use crate::error::Error;
use crate::figures::Figures;
use crate::manual::ManualKeeper;
use crate::message::{Answer, Message, Reply, Request};
use crate::new_timeout::after;
use crate::permits::{CallPermit, CallPermits};
use crate::reader_thread::ReaderThread;
use crate::shutdown::Shutdown;
use crate::store::Store;
use crate::timetable::Counted;
use crate::topic::Topic;
use crate::transaction::Target;
use crossbeam_channel::Sender;
use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

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
/// commit. A method whose name ends in `_async` returns a future instead. If the future is dropped,
/// its call takes no effect, unless the store writes it already. Clones are handles of the same
/// timer. When the last one is dropped, the timer stops without waiting for handlers.
///
/// # Examples
///
/// An order that is closed after half an hour, unless it is paid:
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{CancelAnswer, Due, DurableTimer, IfPending, MemoryStore, Topic};
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
/// timer.new_timeout_keyed(CLOSE, "17", half_an_hour, "17", IfPending::Keep)?;
/// timer.new_timeout_keyed(CLOSE, "18", half_an_hour, "18", IfPending::Keep)?;
/// assert_eq!(timer.cancel(CLOSE, "17")?, CancelAnswer::Cancelled);
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
    pub(crate) reader: ReaderThread,
    pub(crate) permits: Arc<CallPermits>,
    pub(crate) read_permits: Arc<CallPermits>,
    pub(crate) figures: Arc<Figures>,
    pub(crate) counted: Arc<Counted>,
    pub(crate) shutdown: Arc<Shutdown>,
    pub(crate) topics: HashSet<Arc<str>>,
    pub(crate) max_payload: usize,
}

/// The place where the keeper takes its turns.
pub(crate) enum Host {
    Thread(Mutex<Option<JoinHandle<()>>>),
    Manual(Arc<ManualKeeper>),
}

/// The receiver of the answer to a call.
pub(crate) type AnswerTo<T> = oneshot::Receiver<Result<T, Error>>;

impl DurableTimer {
    pub(crate) fn new(parts: Parts, host: Host) -> Self {
        Self { inner: Arc::new(Inner { parts, host }) }
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

    /// Cancels the pending timeout with this key.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`] if the commit may or may not have been executed. After
    /// [`Error::Store`], [`Error::Stopped`], and [`Error::OnKeeper`] on the keeper's own thread,
    /// nothing was changed.
    pub fn cancel<P>(&self, topic: Topic<P>, key: &str) -> Result<CancelAnswer, Error> {
        self.call(Request::Cancel(by_key(topic, key))).map(Answer::cancelled)
    }

    /// Cancels the pending timeout with this id.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel).
    pub fn cancel_by_id(&self, id: TimeoutId) -> Result<CancelAnswer, Error> {
        self.call(Request::Cancel(Target::Id(id))).map(Answer::cancelled)
    }

    /// Moves the pending timeout with this key to `delay` from now.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel), and [`Error::DelayTooLong`].
    pub fn reset<P>(&self, topic: Topic<P>, key: &str, delay: Duration) -> Result<ResetAnswer, Error> {
        self.call(Request::Reset(by_key(topic, key), after(delay)?)).map(Answer::reset)
    }

    /// Moves the pending timeout with this id to `delay` from now.
    ///
    /// # Errors
    ///
    /// As for [`reset`](Self::reset).
    pub fn reset_by_id(&self, id: TimeoutId, delay: Duration) -> Result<ResetAnswer, Error> {
        self.call(Request::Reset(Target::Id(id), after(delay)?)).map(Answer::reset)
    }

    pub(crate) fn call(&self, request: Request) -> Result<Answer, Error> {
        self.wait(self.start(|reply| Message::Call(request, reply))?)
    }

    /// Sends a call, once it has a permit.
    pub(crate) fn start<T>(&self, call: impl FnOnce(Reply<T>) -> Message) -> Result<AnswerTo<T>, Error> {
        if is_keeper() {
            return Err(Error::OnKeeper);
        }
        let parts = &self.inner.parts;
        let permit = parts.permits.take().or_else(|permit| permit.recv()).map_err(|_| Error::Stopped)?;
        send(&parts.keeper, self.manual(), call, permit)
    }

    /// Waits for the answer to a call.
    pub(crate) fn wait<T>(&self, answer: AnswerTo<T>) -> Result<T, Error> {
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
        self.start_async(|reply| Message::Call(request, reply))
    }

    /// Sends a call. Its future returns the answer.
    pub(crate) fn start_async<T, F>(&self, call: F) -> impl Future<Output = Result<T, Error>> + Send + use<T, F>
    where
        T: Send,
        F: FnOnce(Reply<T>) -> Message + Send,
    {
        let (keeper, manual) = (self.inner.parts.keeper.clone(), self.manual().cloned());
        let sent = match self.inner.parts.permits.take() {
            Ok(permit) => Ok(send(&keeper, manual.as_ref(), call, permit)),
            Err(permit) => Err((permit, call)),
        };
        async move {
            let answer = match sent {
                Ok(answer) => answer,
                Err((permit, call)) => {
                    let permit = permit.await.map_err(|_| Error::Stopped)?;
                    send(&keeper, manual.as_ref(), call, permit)
                }
            };
            answer?.await.unwrap_or(Err(Error::Stopped))
        }
    }

    /// Runs a function on the store, between two batches.
    pub(crate) fn use_store<R: Send + 'static>(
        &self,
        function: impl FnOnce(&mut dyn Store) -> Result<R, crate::store::StoreError> + Send + 'static,
    ) -> Result<R, Error> {
        if is_keeper() {
            return Err(Error::OnKeeper);
        }
        self.start_use_store(function).recv().unwrap_or(Err(Error::Stopped))
    }

    /// Runs a function on the store, between two batches. The future returns its result.
    pub(crate) fn use_store_async<R, F>(&self, function: F) -> impl Future<Output = Result<R, Error>> + Send + use<R, F>
    where
        R: Send + 'static,
        F: FnOnce(&mut dyn Store) -> Result<R, crate::store::StoreError> + Send + 'static,
    {
        let answer = self.start_use_store(function);
        async move { answer.await.unwrap_or(Err(Error::Stopped)) }
    }

    fn start_use_store<R: Send + 'static>(
        &self,
        function: impl FnOnce(&mut dyn Store) -> Result<R, crate::store::StoreError> + Send + 'static,
    ) -> oneshot::Receiver<Result<R, Error>> {
        let (reply, answer) = Reply::new();
        let call = move |store: &mut dyn Store| reply.send(function(store).map_err(Error::from));
        // A keeper that has ended drops the message, and with it the reply.
        let _sent = self.inner.parts.keeper.send(Message::UseStore(Box::new(call)));
        self.settle();
        answer
    }

    /// Takes the turns of a manual timer. Does nothing for a timer with a thread.
    pub(crate) fn settle(&self) {
        self.manual().into_iter().for_each(|keeper| keeper.settle());
    }

    /// Returns the keeper of a manual timer.
    pub(crate) fn manual(&self) -> Option<&Arc<ManualKeeper>> {
        if let Host::Manual(keeper) = &self.inner.host { Some(keeper) } else { None }
    }
}

impl fmt::Debug for DurableTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableTimer").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Sends a call to the keeper, and takes its turns if it has no thread.
fn send<T>(
    keeper: &Sender<Message>,
    manual: Option<&Arc<ManualKeeper>>,
    call: impl FnOnce(Reply<T>) -> Message,
    permit: CallPermit,
) -> Result<AnswerTo<T>, Error> {
    let (reply, answer) = Reply::new();
    keeper.send(call(reply.holding(permit))).map_err(|_| Error::Stopped)?;
    manual.into_iter().for_each(|keeper| keeper.settle());
    Ok(answer)
}

pub(crate) fn by_key<P>(topic: Topic<P>, key: &str) -> Target {
    Target::Key { topic: topic.name.to_owned(), key: key.to_owned() }
}
