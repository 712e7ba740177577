//! Running a keeper, and ending it.
//!
//! A keeper ends when the timer is stopped, or by a panic. In both cases it is dropped, and so its
//! store is closed, before the callers of `stop` get their answers.

use super::{Flow, Keeper, Running};
use crate::TimeoutId;
use crate::shutdown::DurableStopReport;
use crate::store::Store;
use crate::transaction::Operation;
use std::collections::HashMap;
use std::time::Instant;
use timer_executor::{PanicMessage, panics};

/// A stop that waits for handlers.
pub(super) struct Stopping {
    pub(super) until: Option<Instant>,
    replies: Vec<oneshot::Sender<DurableStopReport>>,
}

/// The end of a keeper, and the callers of `stop` that wait for it.
pub(crate) struct Ending {
    report: DurableStopReport,
    replies: Vec<oneshot::Sender<DurableStopReport>>,
}

impl<S: Store> Keeper<S> {
    /// Takes turns until the timer is stopped.
    pub(crate) fn run(mut self) {
        let take_turn = |keeper: &mut Self| {
            let message = keeper.wait();
            keeper.turn(message)
        };
        loop {
            if let Flow::End(ending) = self.guard(take_turn) {
                return self.close(ending);
            }
        }
    }

    /// Takes one turn without waiting.
    pub(crate) fn take_turn(&mut self) -> Flow {
        self.guard(|keeper| keeper.turn(None))
    }

    /// Calls `body`. If it panics, because of a fault in the store or in the keeper, the timer
    /// ends, because nobody knows the state of the memory.
    fn guard(&mut self, body: impl FnOnce(&mut Self) -> Flow) -> Flow {
        panics::catch(|| body(self)).unwrap_or_else(|panic| Flow::End(self.end_by(&panic)))
    }

    fn end_by(&mut self, panic: &PanicMessage) -> Ending {
        self.term.finish();
        let timer = &self.settings.name;
        // A subscriber that panics leaves no place to report to.
        let _ = panics::catch(|| tracing::error!(%timer, %panic, "the keeper panicked, which has ended the timer"));
        let replies = self.stopping.take().map_or_else(Vec::new, |stopping| stopping.replies);
        Ending { report: DurableStopReport { unfinished: self.running.len(), released: false }, replies }
    }

    /// Drops the keeper and answers the callers of `stop`.
    pub(crate) fn close(self, ending: Ending) {
        // Callers read it if they find the channel closed. The store is closed before the channel.
        let _first = self.shutdown.report.set(ending.report);
        // Handlers and the executor may own values of the user.
        panics::contain("a part of a timer panicked while it was dropped", || drop(self));
        for reply in ending.replies {
            let _received = reply.send(ending.report);
        }
    }

    /// Puts the timeouts back whose handlers have not started. Otherwise each stop of a busy timer
    /// would use up one of their attempts.
    fn put_back(&mut self) {
        let waiting = self.running.iter().filter(|(_, running)| !running.progress.has_started());
        let due = self.store.now();
        let retry = |(id, running): (&TimeoutId, &Running)| Operation::Retry {
            id: *id,
            attempt: running.attempt,
            due,
            forgive: true,
        };
        let batch: Vec<Operation> = waiting.map(retry).collect();
        if self.failures.must_rejoin() || batch.is_empty() {
            return;
        }
        if let Err(error) = self.store.write(&batch) {
            let (timer, store) = (&self.settings.name, self.store.describe());
            tracing::warn!(%timer, %store, %error, "the attempts of handlers that have not started count");
        }
    }

    pub(super) fn begin_stop(&mut self, until: Option<Instant>, reply: oneshot::Sender<DurableStopReport>) {
        // On virtual time nobody takes turns while the caller waits.
        let until = if self.failures.clock().is_virtual() { Some(self.present()) } else { until };
        let stopping = self.stopping.get_or_insert(Stopping { until, replies: Vec::new() });
        stopping.until = [stopping.until, until].into_iter().flatten().min();
        stopping.replies.push(reply);
        // Nothing begins any more, so that no timeout is late here.
        self.figures.set_oldest_due(HashMap::new());
    }

    /// Ends the keeper when all handlers have ended and their ends are written, or at the limit.
    pub(super) fn end_if_stopped(&mut self) -> Flow {
        let Some(stopping) = &self.stopping else { return Flow::Continue };
        let is_over = stopping.until.is_some_and(|until| until <= self.present());
        let is_quiet = self.running.is_empty() && self.unwritten.is_empty();
        if !is_quiet && !is_over {
            return Flow::Continue;
        }
        self.term.finish();
        self.put_back();
        let released = match self.store.leave() {
            Ok(()) => true,
            Err(error) => {
                let (timer, store) = (&self.settings.name, self.store.describe());
                tracing::warn!(%timer, %store, %error, "the store could not be handed back");
                false
            }
        };
        let replies = self.stopping.take().map_or_else(Vec::new, |stopping| stopping.replies);
        Flow::End(Ending { report: DurableStopReport { unfinished: self.running.len(), released }, replies })
    }
}
