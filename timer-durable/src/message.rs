//! The messages from callers and handlers to the keeper, and its answers.

use crate::TimeoutId;
use crate::answer::{CancelAnswer, RequeueAnswer, ResetAnswer, ScheduleAnswer};
use crate::done::Done;
use crate::error::Error;
use crate::permits::CallPermit;
use crate::retry::{How, Retry};
use crate::schedule::CheckedTimeout;
use crate::shutdown::DurableStopReport;
use crate::store::{Store, StoreError};
use crate::time::When;
use crate::transaction::Target;
use crate::work::Work;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;
use timer_executor::panics;

/// A message to the keeper.
pub(crate) enum Message {
    Call(Request, Reply),
    /// Schedules all of these timeouts or none.
    ScheduleMany(Vec<CheckedTimeout>, Reply<Vec<ScheduleAnswer>>),
    /// An attempt has ended.
    Ended(AttemptEnd),
    /// Pauses or resumes a topic.
    Pause {
        topic: Arc<str>,
        is_paused: bool,
        reply: Reply<()>,
    },
    /// Runs a function on the store between two batches.
    UseStore(UseStore),
    Stop {
        /// The keeper waits for handlers until then, or without a limit.
        until: Option<Instant>,
        reply: oneshot::Sender<DurableStopReport>,
    },
}

impl Message {
    /// Returns `true` if the message has a transaction of its own.
    pub(crate) fn may_take_long(&self) -> bool {
        matches!(
            self,
            Self::UseStore(_) | Self::ScheduleMany(..) | Self::Call(Request::Transact(..), _) | Self::Pause { .. }
        )
    }

    /// Returns the time since which a call waits for the store, which is now if it has not waited.
    /// Returns `None` for other messages.
    pub(crate) fn waits_since(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Call(_, reply) => Some(reply.waits_since(now)),
            Self::ScheduleMany(_, reply) => Some(reply.waits_since(now)),
            Self::Pause { reply, .. } => Some(reply.waits_since(now)),
            Self::Ended(_) | Self::UseStore(_) | Self::Stop { .. } => None,
        }
    }

    /// Fails a call.
    pub(crate) fn fail(self, error: &StoreError) {
        match self {
            Self::Call(_, reply) => reply.fail(error),
            Self::ScheduleMany(_, reply) => reply.fail(error),
            Self::Pause { reply, .. } => reply.fail(error),
            Self::Ended(_) | Self::UseStore(_) | Self::Stop { .. } => {}
        }
    }
}

/// A function that uses the store.
pub(crate) type UseStore = Box<dyn FnOnce(&mut dyn Store) + Send>;

/// A call of the user that becomes a part of a batch.
pub(crate) enum Request {
    Insert(Box<CheckedTimeout>),
    Reset(Target, When),
    Cancel(Target),
    Requeue {
        id: TimeoutId,
        without_key: bool,
    },
    Purge(TimeoutId),
    /// Work in a transaction, which ends an attempt first if one is given.
    Transact(Option<(TimeoutId, u32)>, Work),
}

/// The answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Scheduled(ScheduleAnswer),
    Changed,
    /// The call that is queued beside an attempt was changed.
    QueuedChanged,
    Running,
    Unknown,
}

impl Answer {
    pub(crate) fn scheduled(self) -> Result<ScheduleAnswer, Error> {
        match self {
            Self::Scheduled(answer) => Ok(answer),
            _ => Err(Error::Stopped),
        }
    }

    pub(crate) fn cancelled(self) -> CancelAnswer {
        match self {
            Self::Changed | Self::Scheduled(_) => CancelAnswer::Cancelled,
            Self::QueuedChanged => CancelAnswer::QueuedCancelled,
            Self::Running => CancelAnswer::Running,
            Self::Unknown => CancelAnswer::Unknown,
        }
    }

    pub(crate) fn reset(self) -> ResetAnswer {
        match self {
            Self::Changed | Self::Scheduled(_) => ResetAnswer::Reset,
            Self::QueuedChanged => ResetAnswer::QueuedReset,
            Self::Running => ResetAnswer::Running,
            Self::Unknown => ResetAnswer::Unknown,
        }
    }

    pub(crate) fn requeued(self) -> RequeueAnswer {
        match self {
            Self::Changed => RequeueAnswer::Requeued,
            Self::Scheduled(holder) => RequeueAnswer::KeyTaken(holder.id()),
            Self::Running | Self::QueuedChanged | Self::Unknown => RequeueAnswer::Unknown,
        }
    }
}

/// The end of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct AttemptEnd {
    pub(crate) id: TimeoutId,
    pub(crate) attempt: u32,
    pub(crate) result: AttemptResult,
}

/// The result of an attempt.
#[derive(Clone, Debug)]
pub(crate) enum AttemptResult {
    Done(Done),
    Failed(Retry),
    /// The keeper has cut off the attempt, so the answer of its handler has no effect.
    CutOff(Retry),
    /// The timeout was too late to begin.
    Expired,
    /// No handler has this topic, so the attempt does not count.
    NoHandler,
    /// The term was over before the handler could start, so the attempt does not count.
    NotStarted,
}

impl AttemptResult {
    pub(crate) fn of(result: Result<impl Into<Done>, Retry>) -> Self {
        result.map_or_else(Self::Failed, |done| Self::Done(done.into()))
    }

    /// Returns the reason if the attempt of a handler has failed. One that is postponed has not.
    pub(crate) fn failure(&self) -> Option<&str> {
        match self {
            Self::Failed(Retry { how: How::Later(_), .. }) => None,
            Self::Failed(failure) => Some(&failure.reason),
            Self::NotStarted => Some("the attempt was cut off"),
            _ => None,
        }
    }
}

/// The channel for the answer to a call.
///
/// A caller whose reply is dropped finds the timer stopped, because the keeper drops only calls
/// that it has not executed. If the keeper panics while it executes a call, the caller learns that
/// the outcome is unknown.
pub(crate) struct Reply<T = Answer> {
    sender: Option<oneshot::Sender<Result<T, Error>>>,
    id: Option<TimeoutId>,
    /// The permit of a call. Dropping the reply gives it back.
    permit: Option<CallPermit>,
    /// The time since which the call waits for the store.
    since: Cell<Option<Instant>>,
}

impl<T> Reply<T> {
    pub(crate) fn new() -> (Self, oneshot::Receiver<Result<T, Error>>) {
        let (sender, answer) = oneshot::channel();
        (Self { sender: Some(sender), id: None, permit: None, since: Cell::default() }, answer)
    }

    /// Keeps the permit of the call, if it has one, until it is answered.
    pub(crate) fn holding(mut self, permit: Option<CallPermit>) -> Self {
        self.permit = permit;
        self
    }

    /// Returns `true` if nobody waits for the answer.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.sender.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    /// Returns the time since which the call waits for the store, which is now if it has not
    /// waited.
    pub(crate) fn waits_since(&self, now: Instant) -> Instant {
        let since = self.since.get().unwrap_or(now);
        self.since.set(Some(since));
        since
    }

    /// Notes the id of the timeout that the call creates.
    pub(crate) fn about(mut self, id: Option<TimeoutId>) -> Self {
        self.id = id;
        self
    }

    /// Tells the caller that the commit has failed.
    pub(crate) fn fail(self, error: &StoreError) {
        let error = match error {
            StoreError::InDoubt(why) => Error::OutcomeUnknown { id: self.id, why: why.clone() },
            error => Error::Store(error.clone()),
        };
        self.send(Err(error));
    }

    pub(crate) fn send(mut self, answer: Result<T, Error>) {
        // The caller may make its next call at once.
        drop(self.permit.take());
        if let Some(sender) = self.sender.take() {
            send(sender, answer);
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        let Some(sender) = self.sender.take() else { return };
        if std::thread::panicking() {
            let why = "the thread of the call has panicked".to_owned();
            send(sender, Err(Error::OutcomeUnknown { id: self.id, why }));
        } else {
            contain(|| drop(sender));
        }
    }
}

fn send<T>(sender: oneshot::Sender<Result<T, Error>>, answer: Result<T, Error>) {
    // A caller that is gone does not need the answer.
    contain(|| _ = sender.send(answer));
}

/// Calls a function that wakes a caller, whose waker is code of the user.
fn contain(wake: impl FnOnce()) {
    panics::contain("the waker of a caller panicked", wake);
}
