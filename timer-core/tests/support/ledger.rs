//! The ledger: how often each task was run and told that it is cancelled, and when all of them are
//! gone.

use super::all_gone;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{ThreadId, current};
use timer_core::{Timeout, TimerTask};

/// What became of one task.
#[derive(Debug, Default)]
pub(crate) struct End {
    pub(crate) ran: AtomicU32,
    pub(crate) told: AtomicU32,
    /// On which thread it was dropped.
    pub(crate) dropped: Mutex<Option<ThreadId>>,
}

impl End {
    /// Runs, then cancellations.
    pub(crate) fn counts(&self) -> (u32, u32) {
        (self.ran.load(SeqCst), self.told.load(SeqCst))
    }

    pub(crate) fn dropped_on(&self) -> Option<ThreadId> {
        *self.dropped.lock().unwrap()
    }
}

/// A task that keeps the accounts.
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
        self.end.told.fetch_add(1, SeqCst);
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        *self.end.dropped.lock().unwrap() = Some(current().id());
    }
}

/// The accounts of many tasks.
pub(crate) struct Ledger {
    alive: Sender<()>,
    gone: Receiver<()>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        let (alive, gone) = channel();
        Self { alive, gone }
    }

    /// For a thread of its own.
    pub(crate) fn maker(&self) -> Maker {
        Maker(self.alive.clone())
    }

    /// A task, and what will become of it.
    pub(crate) fn probe(&self) -> (Probe, Arc<End>) {
        self.maker().probe()
    }

    /// Waits until every task is gone, wherever it was.
    #[track_caller]
    pub(crate) fn wait(self) {
        let Self { alive, gone } = self;
        drop(alive);
        all_gone(&gone);
    }
}

/// Makes tasks of one ledger.
#[derive(Clone)]
pub(crate) struct Maker(Sender<()>);

impl Maker {
    pub(crate) fn probe(&self) -> (Probe, Arc<End>) {
        let end = Arc::new(End::default());
        (Probe { end: end.clone(), _alive: self.0.clone() }, end)
    }
}
