//! The ledger of a round. Each timeout has a record, which every involved thread writes.
//!
//! The ledger keeps the faults that tasks notice, because the timer would catch their panics.

use crate::support::{MAX_WAIT, wait_until};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer, TimerStats};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Whether this thread ends timeouts that `stop` has handed back.
    static TAKES_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f` as a thread that ends timeouts which `stop` has handed back, or as any other one.
pub(crate) fn taking_back<R>(takes_back: bool, f: impl FnOnce() -> R) -> R {
    let before = TAKES_BACK.replace(takes_back);
    let result = f();
    TAKES_BACK.set(before);
    result
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Closure,
    /// A task with a hook.
    Task,
    Periodic,
}

/// The record of one timeout.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    /// The earliest first run of a timeout that is not moved, or `None` if it never comes.
    pub(crate) not_before: Option<Instant>,
    moved: AtomicBool,
    /// The handle of a timeout that was moved. Only the handle shows its end then.
    handle: OnceLock<Timeout>,
    in_run: AtomicBool,
    /// Runs that began after a cancel had returned, as far as the record can show.
    late_runs: AtomicU64,
    pub(crate) runs: AtomicU64,
    /// Calls of `cancel` that won.
    cancelled: AtomicU64,
    pub(crate) rejected: AtomicU64,
    handed_back: AtomicU64,
    /// Calls of the hook.
    hook_calls: AtomicU64,
    /// Runs that panicked.
    panicked: AtomicU64,
    /// Drops of the captures.
    pub(crate) freed: AtomicU64,
}

impl Record {
    /// Counts the ends that a thread of the test knows. A cancel may come before the panic of a run
    /// that it could not stop.
    fn ends(&self) -> u64 {
        let ran = if self.kind == Kind::Periodic { u64::from(self.ended_by_panic()) } else { get(&self.runs) };
        ran + get(&self.cancelled) + get(&self.rejected) + get(&self.handed_back)
    }

    /// Returns `true` if a panic ended a periodic timeout.
    fn ended_by_panic(&self) -> bool {
        self.kind == Kind::Periodic && get(&self.panicked) == 1 && get(&self.cancelled) == 0
    }
}

fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Acquire)
}

/// Adds one and returns the count before.
fn add(count: &AtomicU64) -> u64 {
    count.fetch_add(1, Ordering::AcqRel)
}

/// The ends that only the timer may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    None,
    /// After a stop. A periodic run in progress is the last one. A timeout that was moved in an
    /// executor's queue is cancelled when it leaves the queue.
    Periodic,
    /// After the drop of the timer.
    Any,
}

/// All records of one timer.
#[derive(Default)]
pub(crate) struct Ledger {
    records: Mutex<Vec<Arc<Record>>>,
    /// Captures that are alive.
    open: AtomicU64,
    panics: AtomicU64,
    faults: Mutex<Vec<String>>,
}

impl Ledger {
    pub(crate) fn check(&self, holds: bool, fault: &str) {
        let mut faults = lock(&self.faults);
        if !holds && faults.len() < 20 {
            faults.push(fault.to_owned());
        }
    }

    pub(crate) fn open(self: &Arc<Self>, kind: Kind, not_before: Option<Instant>) -> Capture {
        let record = Arc::new(Record { kind, not_before, ..Record::default() });
        lock(&self.records).push(record.clone());
        add(&self.open);
        Capture { ledger: self.clone(), record, guards: None }
    }

    /// Cancels a timeout and checks the answer.
    pub(crate) fn cancel(&self, timeout: &Timeout, record: &Record) {
        let won = taking_back(false, || timeout.cancel());
        self.cancelled(won, timeout, record);
    }

    fn cancelled(&self, won: bool, timeout: &Timeout, record: &Record) {
        if won {
            let before = add(&record.cancelled);
            self.check(before == 0, "cancel was won twice");
            let is_freed = get(&record.freed) == 1;
            self.check(is_freed || record.kind == Kind::Periodic, "cancel left the captures behind");
        } else {
            self.check(timeout.is_expired() || timeout.is_cancelled(), "cancel returned false for a pending timeout");
        }
    }

    /// Cancels a timeout that `cancel_all` gets three times, and checks the answer.
    pub(crate) fn cancel_thrice(&self, timeout: &Timeout, record: &Record) {
        let won = taking_back(false, || Timeout::cancel_all([timeout; 3]));
        self.check(won <= 1, "cancel_all cancelled a timeout twice");
        self.cancelled(won == 1, timeout, record);
    }

    /// Cancels from outside of all tasks. Afterwards the task does not run, and its captures are
    /// dropped.
    pub(crate) fn cancel_and_wait(&self, timeout: &Timeout, record: &Record) {
        let won = taking_back(false, || timeout.cancel_and_wait()).unwrap();
        self.cancelled(won, timeout, record);
        // A timeout that was handed back runs or is dropped at a time of its owner's choice.
        if won || timeout.is_expired() {
            self.check(!record.in_run.load(Ordering::Acquire), "a run goes on after cancel_and_wait");
            self.check(get(&record.freed) == 1, "cancel_and_wait left the captures behind");
        }
    }

    /// Moves a timeout to now and records the move. Does not check the answer, because it is
    /// `false` for a timeout that is due or queued as well.
    pub(crate) fn expire_now(&self, timeout: &Timeout, record: &Record) {
        record.moved.store(true, Ordering::Release);
        if timeout.expire_now() {
            record.handle.get_or_init(|| timeout.clone());
        }
    }

    /// Moves a timeout and checks the answer.
    pub(crate) fn reset(&self, timeout: &Timeout, record: &Record, delay: Duration) {
        record.moved.store(true, Ordering::Release);
        if timeout.reset(delay) {
            record.handle.get_or_init(|| timeout.clone());
        } else {
            self.check(timeout.is_expired() || timeout.is_cancelled(), "reset returned false for a pending timeout");
        }
    }

    /// Waits until every capture is dropped.
    pub(crate) fn wait_until_closed(&self) {
        let begun = Instant::now();
        while get(&self.open) > 0 && begun.elapsed() < MAX_WAIT {
            std::thread::yield_now();
        }
        self.check(get(&self.open) == 0, "captures were never dropped");
    }

    /// Checks that every timeout has ended once and that the timer has counted the ends. No other
    /// thread may be working. Returns the number of timeouts.
    pub(crate) fn balance(&self, unknown: Unknown, timer: Option<&Timer>) -> usize {
        let records = lock(&self.records).clone();
        records.iter().for_each(|record| self.check_end(record, unknown));
        let count = |holds: &dyn Fn(&Record) -> bool| records.iter().filter(|record| holds(record)).count() as u64;
        let rejected = count(&|record| get(&record.rejected) == 1);
        let scheduled = records.len() as u64 - rejected;
        let cancelled = count(&|record| get(&record.cancelled) + get(&record.handed_back) == 1);
        let expired = count(&|record| match record.kind {
            Kind::Periodic => record.ended_by_panic(),
            _ => get(&record.runs) == 1,
        });
        let not_known = count(&|record| record.ends() == 0);
        let runs = records.iter().map(|record| get(&record.runs)).sum::<u64>();
        let panics = get(&self.panics);
        if let Some(timer) = timer {
            // The captures of a run are dropped before the timer counts its panic.
            let is_quiet = |stats: &TimerStats| stats.pending == 0 && stats.task_panics == panics;
            wait_until(|| is_quiet(&timer.stats()));
            let seen = timer.stats();
            let is_right = (seen.scheduled, seen.rejected) == (scheduled, rejected)
                && seen.expired >= expired
                && seen.cancelled >= cancelled
                && seen.expired + seen.cancelled == expired + cancelled + not_known
                && seen.expired + seen.cancelled == seen.scheduled
                && seen.runs >= runs;
            let counts = format!(
                "{seen:?}, but the ledger has scheduled {scheduled}, rejected {rejected}, expired {expired}, \
                 cancelled {cancelled}, not known {not_known}, runs {runs}"
            );
            self.check(is_right, &counts);
        }
        records.len()
    }

    fn check_end(&self, record: &Record, unknown: Unknown) {
        let may_be_unknown = match unknown {
            Unknown::None => false,
            Unknown::Periodic => {
                record.kind == Kind::Periodic || record.handle.get().is_some_and(Timeout::is_cancelled)
            }
            Unknown::Any => true,
        };
        let once = record.ends() == 1 || record.ends() == 0 && may_be_unknown;
        self.check(once && get(&record.freed) == 1, &format!("not one end: {record:?}"));
        // The hook is called after a cancel, and for a timeout that was handed back and not run.
        let hook_calls = get(&record.hook_calls);
        let hook = record.kind == Kind::Task && get(&record.rejected) == 0 && get(&record.runs) == 0;
        self.check(hook_calls <= u64::from(hook), &format!("hook called: {record:?}"));
        self.check(hook_calls == 1 || !hook || get(&record.cancelled) == 0, &format!("hook not called: {record:?}"));
    }

    /// Panics if the ledger has faults.
    pub(crate) fn report(&self) {
        let faults = lock(&self.faults);
        assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    }
}

/// The capture of a timeout, which records the runs, the hook and the end.
pub(crate) struct Capture {
    ledger: Arc<Ledger>,
    pub(crate) record: Arc<Record>,
    /// A guarded timeout. Dropping this cancels it.
    pub(crate) guards: Option<(Timeout, Arc<Record>)>,
}

impl Capture {
    /// Records the start of a run at `now`. Returns `false` if `stop` has handed the timeout back.
    pub(crate) fn begin(&self, timeout: &Timeout, now: Option<Instant>) -> bool {
        let record = &*self.record;
        let ledger = &*self.ledger;
        ledger.check(!record.in_run.swap(true, Ordering::AcqRel), "two runs overlap");
        ledger.check(get(&record.freed) == 0, "a run after the end");
        if TAKES_BACK.get() {
            let before = add(&record.handed_back);
            ledger.check(before == 0 && timeout.is_cancelled(), "handed back twice, or not cancelled");
            return false;
        }
        if get(&record.cancelled) > 0 {
            // A periodic run may have won its right before that cancel and be no further than here.
            let before = add(&record.late_runs);
            ledger.check(record.kind == Kind::Periodic && before == 0, "a run after cancel had returned");
        }
        let runs = add(&record.runs);
        let is_due = |then| now.is_none_or(|now| now >= then);
        if !record.moved.load(Ordering::Acquire) {
            ledger.check(record.not_before.is_some_and(is_due), "a run before its time");
        }
        if record.kind != Kind::Periodic {
            ledger.check(runs == 0, "two runs");
            ledger.check(timeout.is_expired() && is_due(timeout.deadline()), "a run before its deadline");
        }
        true
    }

    /// Records the end of a run. `panics` is set if the run ends in a panic that the timer counts.
    pub(crate) fn end(&self, panics: bool) {
        if panics {
            add(&self.record.panicked);
            add(&self.ledger.panics);
        }
        self.record.in_run.store(false, Ordering::Release);
    }

    pub(crate) fn hook_called(&self, timeout: &Timeout) {
        let ran = get(&self.record.runs) > 0;
        self.ledger.check(!ran && timeout.is_cancelled(), "the hook was called after a run");
        self.ledger.check(add(&self.record.hook_calls) == 0, "the hook was called twice");
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if let Some((timeout, record)) = self.guards.take() {
            self.ledger.cancel(&timeout, &record);
        }
        let record = &*self.record;
        if TAKES_BACK.get() && record.ends() == 0 {
            add(&record.handed_back);
        }
        self.ledger.check(add(&record.freed) == 0, "captures were dropped twice");
        self.ledger.open.fetch_sub(1, Ordering::AcqRel);
    }
}
