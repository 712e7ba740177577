//! The engine, which is the keeper and the messages that reach it.
//!
//! Callers and handlers send messages to one thread, the [`keeper`]. It owns the store and the
//! memory, so neither has a lock. A caller waits for the answer on a channel of its own.

mod collect;
mod handler_mark;
mod head;
mod keeper;
mod pace;
mod reply;
mod term;

pub(crate) use handler_mark::{HandlerMark, is_in_handler};
pub(crate) use keeper::{Flow, Keeper, Settings};
pub(crate) use reply::Reply;
pub(crate) use term::{Progress, Term};

use crate::TimeoutId;
use crate::due::{CompleteError, Retry};
use crate::error::Error;
use crate::stop::StopReport;
use crate::store::{Micros, Store, Work};
use crate::transaction::{IfPending, Target};
use crossbeam_channel::Sender;
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A message to the keeper.
pub(crate) enum Message {
    Call(Request, Reply),
    /// An attempt has ended.
    Ended(AttemptEnd),
    /// An attempt is to be ended in a transaction of the user.
    Complete {
        id: TimeoutId,
        attempt: u32,
        work: Work,
        reply: Reply<(), CompleteError>,
    },
    /// Runs a function on the store between two batches.
    Visit(Visit),
    Stop {
        /// The keeper waits for handlers until then, or without a limit.
        until: Option<Instant>,
        reply: oneshot::Sender<StopReport>,
    },
}

/// A function that uses the store.
pub(crate) type Visit = Box<dyn FnOnce(&mut dyn Store) + Send>;

/// A call of the user that becomes a part of a batch.
pub(crate) enum Request {
    Insert(Box<NewTimeout>),
    Reset(Target, When),
    Cancel(Target),
    Requeue(TimeoutId),
    Purge(TimeoutId),
}

/// A due time, relative to the store's clock or absolute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    In(Micros),
    At(Micros),
}

impl When {
    /// Returns the due time. A time in the past is now, so that it sorts behind older timeouts.
    pub(crate) fn from(self, now: Micros) -> Micros {
        match self {
            Self::In(delay) => now.saturating_add(delay),
            Self::At(due) => due.max(now),
        }
    }
}

/// A timeout that a caller wants.
#[derive(Debug)]
pub(crate) struct NewTimeout {
    pub(crate) id: Option<TimeoutId>,
    pub(crate) when: When,
    pub(crate) topic: Arc<str>,
    pub(crate) key: Option<String>,
    pub(crate) if_pending: IfPending,
    pub(crate) format: i16,
    pub(crate) payload: Vec<u8>,
    pub(crate) period: Option<Micros>,
    pub(crate) max_lateness: Option<Micros>,
}

/// The answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Scheduled(TimeoutId),
    Changed,
    Running,
    Unknown,
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
    Done,
    Failed(Retry),
    /// The timeout was too late to begin.
    Expired,
    /// No handler has this topic, so the attempt does not count.
    NoHandler,
    /// The term was over before the handler could start, so the attempt does not count.
    NotStarted,
    /// The store has ended the attempt already.
    Completed,
}

impl AttemptResult {
    pub(crate) fn of(result: Result<(), Retry>) -> Self {
        result.map_or_else(Self::Failed, |()| Self::Done)
    }
}

/// The duty of a handler to report its result. If it is dropped without a report, the attempt has
/// failed.
pub(crate) struct Report {
    keeper: Sender<Message>,
    id: TimeoutId,
    attempt: u32,
    progress: Arc<Progress>,
    term: Term,
    is_pending: bool,
}

impl Report {
    pub(crate) fn new(link: &Link, term: Term, id: TimeoutId, attempt: u32) -> Self {
        let (keeper, progress) = (link.keeper.clone(), link.progress.clone());
        Self { keeper, id, attempt, progress, term, is_pending: true }
    }

    /// Returns the report if the handler may start. Otherwise reports that it has not started.
    pub(crate) fn start(self) -> Option<Self> {
        if !self.term.start(&self.progress) {
            self.end(AttemptResult::NotStarted);
            return None;
        }
        Some(self)
    }

    pub(crate) fn end(mut self, result: AttemptResult) {
        self.send(result);
    }

    fn send(&mut self, result: AttemptResult) {
        self.is_pending = false;
        let result = if self.progress.has_completed() { AttemptResult::Completed } else { result };
        // A keeper that has ended makes the attempt pending again at the next start.
        let _sent = self.keeper.send(Message::Ended(AttemptEnd { id: self.id, attempt: self.attempt, result }));
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if self.is_pending {
            self.send(AttemptResult::Failed(Retry::new("the executor or the runtime dropped the handler")));
        }
    }
}

/// A handler's connection to the keeper.
#[derive(Clone)]
pub(crate) struct Link {
    keeper: Sender<Message>,
    settle: Option<Settle>,
    progress: Arc<Progress>,
}

/// Takes the turns of a keeper that has no thread.
pub(crate) type Settle = Arc<dyn Fn() + Send + Sync>;

impl Link {
    pub(crate) fn new(keeper: Sender<Message>, settle: Option<Settle>) -> Self {
        Self { keeper, settle, progress: Arc::default() }
    }

    /// Returns the progress of the attempt, for the keeper.
    pub(crate) fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Returns a mark for the thread that runs the handler.
    pub(crate) fn handler_mark(&self) -> HandlerMark {
        HandlerMark(self.keeper.clone())
    }

    pub(crate) fn complete_in(&self, id: TimeoutId, attempt: u32, work: Work) -> Result<(), CompleteError> {
        if is_keeper() {
            return Err(CompleteError::Failed(Error::OnKeeper.to_string()));
        }
        let (reply, answer) = Reply::new();
        let stopped = |_| CompleteError::Failed(Error::Stopped.to_string());
        self.keeper.send(Message::Complete { id, attempt, work, reply }).map_err(|_| stopped(()))?;
        if let Some(settle) = &self.settle {
            settle();
        }
        answer.recv().map_err(|_| stopped(()))??;
        self.progress.complete();
        Ok(())
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Link")
    }
}

thread_local! {
    static IS_KEEPER: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` on the thread of a keeper, where a blocking call would wait for itself.
pub(crate) fn is_keeper() -> bool {
    IS_KEEPER.get()
}

/// Calls `body` on a thread that is a keeper meanwhile.
pub(crate) fn as_keeper<R>(body: impl FnOnce() -> R) -> R {
    let before = IS_KEEPER.replace(true);
    let result = body();
    IS_KEEPER.set(before);
    result
}

/// Returns a duration in microseconds, rounded up.
pub(crate) fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(Micros::MAX)
}
