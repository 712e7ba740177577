//! The capture of a storm's timeout, which records the runs, the hook and the end.

use crate::ledger::{Kind, Ledger, Record, get};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use timer_core::Timeout;

thread_local! {
    /// Whether this thread ends timeouts that `stop` has handed back.
    static TAKES_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f` as the thread that ends timeouts which `stop` has handed back.
pub(crate) fn taking_back<R>(f: impl FnOnce() -> R) -> R {
    let before = TAKES_BACK.replace(true);
    let result = f();
    TAKES_BACK.set(before);
    result
}

/// Runs `f` as any other thread.
pub(crate) fn not_taking_back<R>(f: impl FnOnce() -> R) -> R {
    let before = TAKES_BACK.replace(false);
    let result = f();
    TAKES_BACK.set(before);
    result
}

/// The capture of a timeout.
pub(crate) struct Capture {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) record: Arc<Record>,
    /// A guarded timeout, which is cancelled when this is dropped.
    pub(crate) guards: Option<(Timeout, Arc<Record>)>,
}

impl Capture {
    /// Records the start of a run. Returns `false` if `stop` has handed the timeout back.
    pub(crate) fn begin(&self, timeout: &Timeout) -> bool {
        let (now, record, ledger) = (self.ledger.clock.latest(), &*self.record, &*self.ledger);
        ledger.check(!record.in_run.swap(true, Ordering::AcqRel), "two runs overlap");
        ledger.check(record.freed.load(Ordering::Acquire) == 0, "a run after the end");
        if TAKES_BACK.get() {
            let before = record.handed_back.fetch_add(1, Ordering::AcqRel);
            ledger.check(before == 0 && timeout.is_cancelled(), "handed back twice, or not cancelled");
            return false;
        }
        if get(&record.cancelled) > 0 {
            // A periodic run may have won its right before that cancel and be no further than here.
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

    /// Records the end of a run. `panics` is set if the run ends in a panic that the timer counts.
    pub(crate) fn end(&self, panics: bool) {
        if panics {
            self.record.panicked.fetch_add(1, Ordering::AcqRel);
            self.ledger.panics.fetch_add(1, Ordering::AcqRel);
        }
        self.record.in_run.store(false, Ordering::Release);
    }

    pub(crate) fn hook_called(&self, timeout: &Timeout) {
        let record = &*self.record;
        let ran = record.runs.load(Ordering::Acquire) > 0;
        self.ledger.check(!ran && timeout.is_cancelled(), "the hook was called after a run");
        self.ledger.check(record.hook_calls.fetch_add(1, Ordering::AcqRel) == 0, "the hook was called twice");
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
