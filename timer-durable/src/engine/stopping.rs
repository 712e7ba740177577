//! The stop of a keeper, and its end.
//!
//! A keeper ends when the timer is stopped, or by a panic. In both cases it is dropped, and so its
//! store is closed, before the callers of `stop` get their answers.

use crate::shutdown::{DurableStopReport, Shutdown};
use std::sync::Arc;
use std::time::Instant;
use timer_executor::panics;

/// The callers of `stop` that wait for a keeper.
type Replies = Vec<oneshot::Sender<DurableStopReport>>;

/// A stop that waits for handlers, once it has begun.
pub(super) struct Stopping {
    shutdown: Arc<Shutdown>,
    until: Option<Instant>,
    replies: Replies,
}

impl Stopping {
    pub(super) fn new(shutdown: Arc<Shutdown>) -> Self {
        Self { shutdown, until: None, replies: Vec::new() }
    }

    /// Returns `true` if the timer is to stop, although the message may not have arrived yet.
    pub(super) fn is_requested(&self) -> bool {
        self.shutdown.is_requested()
    }

    /// Returns `true` if nothing begins any more.
    pub(super) fn has_begun(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Returns the instant at which the stop no longer waits for handlers.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Notes a call of `stop`. The earliest limit of all calls counts.
    pub(super) fn begin(&mut self, until: Option<Instant>, reply: oneshot::Sender<DurableStopReport>) {
        self.until = [self.until, until].into_iter().flatten().min();
        self.replies.push(reply);
    }

    /// Returns the end of a keeper whose `unfinished` handlers have not ended.
    pub(super) fn end(&mut self, unfinished: usize, released: bool) -> Ending {
        let report = DurableStopReport { unfinished, released };
        Ending { shutdown: self.shutdown.clone(), report, replies: std::mem::take(&mut self.replies) }
    }
}

/// The end of a keeper, and the callers of `stop` that wait for it.
pub(crate) struct Ending {
    shutdown: Arc<Shutdown>,
    report: DurableStopReport,
    replies: Replies,
}

impl Ending {
    /// Drops the keeper and answers the callers of `stop`.
    pub(super) fn close<K>(self, keeper: K) {
        // Callers read it if they find the channel closed. The store is closed before the channel.
        let _first = self.shutdown.report.set(self.report);
        // Handlers and the executor may own values of the user.
        panics::contain("a part of a timer panicked while it was dropped", || drop(keeper));
        for reply in self.replies {
            let _received = reply.send(self.report);
        }
    }
}
