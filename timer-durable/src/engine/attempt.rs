//! An attempt's connection to the keeper.

use super::handler_mark::HandlerMark;
use super::term::{Progress, Term};
use crate::TimeoutId;
use crate::error::Error;
use crate::figures::Figures;
use crate::lateness::{DurableLateCause, DurableLateness};
use crate::message::{Answer, AttemptEnd, AttemptResult, Message, Reply, Request};
use crate::retry::Retry;
use crate::store::Micros;
use crate::topic::Rules;
use crate::traces::AttemptSpan;
use crate::transaction::Attempt;
use crate::work::Work;
use crossbeam_channel::Sender;
use std::sync::Arc;
use std::time::{Duration, Instant};
use timer_executor::TaskExecutor;

/// The facts about an attempt, which do not depend on the type of its payload.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) id: TimeoutId,
    /// The attempt as the store has begun it. Its handler takes the payload.
    pub(crate) attempt: Attempt,
    pub(crate) begun: Micros,
    pub(crate) keeper: KeeperHandle,
    pub(crate) late: Late,
}

impl Started {
    pub(crate) fn progress(&self) -> &Arc<Progress> {
        &self.keeper.progress
    }

    /// Starts the span of the handler.
    pub(crate) fn span(&self) -> AttemptSpan {
        let Attempt { attempt, due, topic, traceparent, .. } = &self.attempt;
        let lag = self.begun.saturating_sub(*due).max(0);
        AttemptSpan::start(self.id, topic, *attempt, lag, traceparent.as_deref())
    }

    /// Returns a mark for the thread that runs the handler.
    pub(crate) fn handler_mark(&self) -> HandlerMark {
        let name = Arc::new((self.attempt.topic.clone(), self.attempt.key.clone()));
        HandlerMark { keeper: self.keeper.keeper.clone(), id: self.id, name }
    }

    /// Counts the lateness of the attempt, whose handler has just started.
    pub(crate) fn record_start(&self) {
        let Late { figures, since, .. } = &self.late;
        let mut lateness = self.late.lateness;
        // On virtual time, an attempt starts when it begins.
        if self.keeper.settle.is_none() {
            lateness.add(DurableLateCause::Executor, since.elapsed());
        }
        let Attempt { attempt, topic, key, .. } = &self.attempt;
        figures.record_late(self.id, (topic, key.as_deref()), *attempt, &lateness);
    }
}

/// The lateness of an attempt that has begun, up to the instant `since`.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    pub(crate) figures: Arc<Figures>,
    pub(crate) lateness: DurableLateness,
    pub(crate) since: Instant,
}

/// The settings of a topic.
pub(crate) struct TopicSettings {
    pub(crate) rules: Rules,
    pub(crate) handler: Handler,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) executor: Option<Arc<dyn TaskExecutor>>,
    pub(crate) max_running: Option<usize>,
    /// The number of attempts in a period.
    pub(crate) rate: Option<(u32, Duration)>,
    /// Whether all nodes share the rate.
    pub(crate) shares_rate: bool,
}

/// A handler of any payload, which reports its result once.
pub(crate) type Handler = Arc<dyn Fn(Started, Report) + Send + Sync>;

/// The duty of a handler to report its result. If it is dropped without a report, the attempt has
/// failed.
pub(crate) struct Report {
    keeper: Sender<Message>,
    id: TimeoutId,
    attempt: u32,
    progress: Arc<Progress>,
    term: Term,
    settle: Option<Settle>,
    is_pending: bool,
}

impl Report {
    pub(crate) fn new(link: &KeeperHandle, term: Term, id: TimeoutId, attempt: u32) -> Self {
        let KeeperHandle { keeper, settle, progress } = link.clone();
        Self { keeper, id, attempt, progress, term, settle, is_pending: true }
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
        self.progress.finish();
        // A keeper that has ended makes the attempt pending again at the next start.
        let _sent = self.keeper.send(Message::Ended(AttemptEnd { id: self.id, attempt: self.attempt, result }));
        if let Some(settle) = &self.settle {
            settle();
        }
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
pub(crate) struct KeeperHandle {
    keeper: Sender<Message>,
    settle: Option<Settle>,
    progress: Arc<Progress>,
}

/// Takes the turns of a keeper that has no thread.
pub(crate) type Settle = Arc<dyn Fn() + Send + Sync>;

impl KeeperHandle {
    pub(crate) fn new(keeper: Sender<Message>, settle: Option<Settle>) -> Self {
        Self { keeper, settle, progress: Arc::default() }
    }

    /// Returns the progress of the attempt, for the keeper.
    pub(crate) fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Notes that a transaction of the user ends the attempt, if it is committed.
    pub(crate) fn end_in_transaction(&self) {
        self.progress.end_in_transaction();
    }

    /// Sends a transaction that ends the attempt. Its answer arrives in the channel.
    pub(crate) fn transact(&self, id: TimeoutId, attempt: u32, work: Work) -> oneshot::Receiver<Result<Answer, Error>> {
        let (reply, answer) = Reply::new();
        // A keeper that has ended drops the message, and with it the reply.
        let _sent = self.keeper.send(Message::Call(Request::Transact(Some((id, attempt)), work), reply));
        if let Some(settle) = &self.settle {
            settle();
        }
        answer
    }
}

impl std::fmt::Debug for KeeperHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeeperHandle")
    }
}
