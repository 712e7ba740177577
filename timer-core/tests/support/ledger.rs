//! A ledger of tasks, which records how often each task ran and was cancelled, and when all are
//! gone.

use super::all_gone;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{ThreadId, current};
use timer_core::{Timeout, TimerTask};

/// The end of one task.
#[derive(Debug, Default)]
pub(crate) struct End {
    pub(crate) ran: AtomicU32,
    pub(crate) cancelled: AtomicU32,
    /// The thread that dropped the task.
    pub(crate) dropped: Mutex<Option<ThreadId>>,
}

impl End {
    /// Returns the number of runs and the number of cancellations.
    pub(crate) fn counts(&self) -> (u32, u32) {
        (self.ran.load(SeqCst), self.cancelled.load(SeqCst))
    }

    pub(crate) fn dropped_on(&self) -> Option<ThreadId> {
        *self.dropped.lock().unwrap()
    }
}

/// A task that records its end.
pub(crate) struct Probe {
    end: Arc<End>,
    _alive: Sender<()>,
}

impl TimerTask for Probe {
    fn run(self, timeout: &Timeout) {
        assert!(timeout.is_expired() != timeout.is_cancelled());
        self.end.ran.fetch_add(1, SeqCst);
    }

    fn cancelled(self, timeout: &Timeout) {
        assert!(timeout.is_cancelled() && !timeout.is_expired());
        self.end.cancelled.fetch_add(1, SeqCst);
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        *self.end.dropped.lock().unwrap() = Some(current().id());
    }
}

/// A ledger of many tasks.
pub(crate) struct Ledger {
    alive: Sender<()>,
    gone: Receiver<()>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        let (alive, gone) = channel();
        Self { alive, gone }
    }

    /// Returns a maker for another thread.
    pub(crate) fn maker(&self) -> Maker {
        Maker(self.alive.clone())
    }

    /// Returns a task and the record of its end.
    pub(crate) fn probe(&self) -> (Probe, Arc<End>) {
        self.maker().probe()
    }

    /// Waits until every task is gone.
    #[track_caller]
    pub(crate) fn wait(self) {
        let Self { alive, gone } = self;
        drop(alive);
        all_gone(&gone);
    }
}

/// A maker of tasks that one ledger records.
#[derive(Clone)]
pub(crate) struct Maker(Sender<()>);

impl Maker {
    pub(crate) fn probe(&self) -> (Probe, Arc<End>) {
        let end = Arc::new(End::default());
        (Probe { end: end.clone(), _alive: self.0.clone() }, end)
    }
}
