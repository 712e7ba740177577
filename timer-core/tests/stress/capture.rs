//! What a timeout of a storm captures: it sees the runs, the hook and the end, and writes them into
//! the record.

use crate::ledger::{Kind, Ledger, Record, get};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use timer_core::Timeout;

thread_local! {
    /// This thread ends what `stop` has handed back.
    static TAKES_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Does `f` as the thread that ends what `stop` has handed back.
pub(crate) fn taking_back<R>(f: impl FnOnce() -> R) -> R {
    let before = TAKES_BACK.replace(true);
    let result = f();
    TAKES_BACK.set(before);
    result
}

/// Does `f` as any other thread would.
pub(crate) fn apart<R>(f: impl FnOnce() -> R) -> R {
    let before = TAKES_BACK.replace(false);
    let result = f();
    TAKES_BACK.set(before);
    result
}

/// What a timeout captures.
pub(crate) struct Capture {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) record: Arc<Record>,
    /// Cancelled when this is dropped: a guard.
    pub(crate) guards: Option<(Timeout, Arc<Record>)>,
}

impl Capture {
    /// At the beginning of a run; `false` if it is one that `stop` has handed back.
    pub(crate) fn begin(&self, timeout: &Timeout) -> bool {
        let (now, record, ledger) = (self.ledger.clock.at_most(), &*self.record, &*self.ledger);
        ledger.check(!record.in_run.swap(true, Ordering::AcqRel), "two runs overlap");
        ledger.check(record.freed.load(Ordering::Acquire) == 0, "a run after the end");
        if TAKES_BACK.get() {
            let before = record.handed_back.fetch_add(1, Ordering::AcqRel);
            ledger.check(before == 0 && timeout.is_cancelled(), "handed back twice, or not cancelled");
            return false;
        }
        if get(&record.cancelled) > 0 {
            // A periodic run may have won its right before that cancel, and have come no further
            // than to here.
            let before = record.late_runs.fetch_add(1, Ordering::AcqRel);
            ledger.check(record.kind == Kind::Periodic && before == 0, "a run after cancel had returned");
        }
        let runs = record.runs.fetch_add(1, Ordering::AcqRel);
        if !record.moved.load(Ordering::Acquire) {
            ledger.check(record.not_before.is_some_and(|then| now >= then), "a run before its time");
        }
        if record.kind != Kind::Periodic {
            ledger.check(runs == 0, "two runs");
            ledger.check(timeout.is_expired() && now >= timeout.deadline(), "a run before its deadline");
        }
        true
    }

    /// At the end of a run; `panics` if in a panic that the timer is to count.
    pub(crate) fn end(&self, panics: bool) {
        if panics {
            self.record.panicked.fetch_add(1, Ordering::AcqRel);
            self.ledger.panics.fetch_add(1, Ordering::AcqRel);
        }
        self.record.in_run.store(false, Ordering::Release);
    }

    pub(crate) fn told(&self, timeout: &Timeout) {
        let record = &*self.record;
        let ran = record.runs.load(Ordering::Acquire) > 0;
        self.ledger.check(!ran && timeout.is_cancelled(), "told though it has run");
        self.ledger.check(record.told.fetch_add(1, Ordering::AcqRel) == 0, "told twice");
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if let Some((timeout, record)) = self.guards.take() {
            self.ledger.cancel(&timeout, &record);
        }
        let record = &*self.record;
        if TAKES_BACK.get() && record.ends() == 0 {
            record.handed_back.fetch_add(1, Ordering::AcqRel);
        }
        self.ledger.check(record.freed.fetch_add(1, Ordering::AcqRel) == 0, "captures were dropped twice");
        self.ledger.close_one();
    }
}
