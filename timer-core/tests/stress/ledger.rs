//! Who has ended each timeout: one record per timeout, written by every thread that has to do with
//! it.
//!
//! A fault that is seen inside a task is kept here, since the timer would catch a panic there.

use crate::capture::{Capture, apart};
use crate::clock::Clock;
use crate::counts::Counts;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use timer_core::{Timeout, TimerStats};

/// Longer than anything here takes on a slow machine: then something was lost.
pub(crate) const LOST: Duration = Duration::from_secs(60);

thread_local! {
    /// Which part of the records is this thread's.
    static PART: usize = NEXT_PART.fetch_add(1, Ordering::Relaxed) % PARTS;
}

static NEXT_PART: AtomicUsize = AtomicUsize::new(0);
/// Threads shall meet in the timer and not in here.
const PARTS: usize = 16;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Closure,
    /// With a hook.
    Task,
    Periodic,
}

/// What has become of one timeout.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    /// Its first run, unless it is moved; `None` for never.
    pub(crate) not_before: Option<Instant>,
    pub(crate) moved: AtomicBool,
    /// Of one that was moved: who else could say what has become of it?
    handle: OnceLock<Timeout>,
    pub(crate) in_run: AtomicBool,
    /// Runs that began after a cancel had returned, as far as that can be seen.
    pub(crate) late_runs: AtomicU64,
    pub(crate) runs: AtomicU64,
    /// `cancel` was won.
    pub(crate) cancelled: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) handed_back: AtomicU64,
    /// Its hook was called.
    pub(crate) told: AtomicU64,
    /// A run has panicked.
    pub(crate) panicked: AtomicU64,
    /// Its captures were dropped.
    pub(crate) freed: AtomicU64,
}

impl Record {
    /// Ends that a thread of the storm knows of. A cancel may come before the panic of the run that
    /// it could not stop.
    pub(crate) fn ends(&self) -> u64 {
        let ran = if self.kind == Kind::Periodic { u64::from(self.ended_by_panic()) } else { get(&self.runs) };
        ran + get(&self.cancelled) + get(&self.rejected) + get(&self.handed_back)
    }

    /// A periodic one has ended by a panic.
    fn ended_by_panic(&self) -> bool {
        self.kind == Kind::Periodic && get(&self.panicked) == 1 && get(&self.cancelled) == 0
    }
}

pub(crate) fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Acquire)
}

/// Which ends the timer alone may know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    None,
    /// The timer was stopped: a periodic run that goes on meanwhile is the last; and what was moved
    /// in an executor's queue is cancelled when it comes out of it.
    Periodic,
    /// The timer was dropped.
    Any,
}

/// All records of one timer.
#[derive(Default)]
pub(crate) struct Ledger {
    records: [Mutex<Vec<Arc<Record>>>; PARTS],
    /// Captures that are alive.
    open: AtomicU64,
    pub(crate) panics: AtomicU64,
    /// Moves that were granted.
    resets: AtomicU64,
    pub(crate) clock: Clock,
    all_closed: Condvar,
    gate: Mutex<()>,
    faults: Mutex<Vec<String>>,
}

impl Ledger {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    pub(crate) fn fault(&self, what: impl Into<String>) {
        let mut faults = lock(&self.faults);
        if faults.len() < 20 {
            faults.push(what.into());
        }
    }

    pub(crate) fn check(&self, holds: bool, what: &str) {
        if !holds {
            self.fault(what);
        }
    }

    pub(crate) fn open(self: &Arc<Self>, kind: Kind, delay: Duration) -> Capture {
        let record = Arc::new(Record {
            kind,
            not_before: self.clock.at_least().checked_add(delay),
            moved: AtomicBool::new(false),
            handle: OnceLock::new(),
            in_run: AtomicBool::new(false),
            late_runs: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            handed_back: AtomicU64::new(0),
            told: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            freed: AtomicU64::new(0),
        });
        lock(&self.records[PART.with(|part| *part)]).push(record.clone());
        self.open.fetch_add(1, Ordering::AcqRel);
        Capture { ledger: self.clone(), record, guards: None }
    }

    /// Cancels, and looks whether the answer can be right.
    pub(crate) fn cancel(&self, timeout: &Timeout, record: &Record) -> bool {
        let won = apart(|| timeout.cancel());
        self.cancelled(won, timeout, record);
        won
    }

    fn cancelled(&self, won: bool, timeout: &Timeout, record: &Record) {
        if won {
            let before = record.cancelled.fetch_add(1, Ordering::AcqRel);
            self.check(before == 0, "cancel was won twice");
            let freed = record.freed.load(Ordering::Acquire) == 1;
            self.check(freed || record.kind == Kind::Periodic, "cancel left the captures behind");
        } else {
            self.check(timeout.is_expired() || timeout.is_cancelled(), "cancel was lost, and it has not ended");
        }
    }

    /// The same for `cancel_all`, of one that is named three times.
    pub(crate) fn cancel_thrice(&self, timeout: &Timeout, record: &Record) {
        let won = apart(|| Timeout::cancel_all([timeout; 3]));
        self.check(won <= 1, "cancel_all has won one twice");
        self.cancelled(won == 1, timeout, record);
    }

    /// Cancels from outside of all tasks: afterwards the task does not run, and what it owned is
    /// gone.
    pub(crate) fn cancel_and_wait(&self, timeout: &Timeout, record: &Record) {
        let won = apart(|| timeout.cancel_and_wait()).unwrap();
        self.cancelled(won, timeout, record);
        // What was handed back runs, or is dropped, when its owner likes.
        if won || timeout.is_expired() {
            self.check(!record.in_run.load(Ordering::Acquire), "a run goes on after cancel_and_wait");
            self.check(record.freed.load(Ordering::Acquire) == 1, "cancel_and_wait left the captures behind");
        }
    }

    /// Brings forward, and looks whether the answer can be right.
    pub(crate) fn expire_now(&self, timeout: &Timeout, record: &Record) {
        record.moved.store(true, Ordering::Release);
        if timeout.expire_now() {
            self.resets.fetch_add(1, Ordering::AcqRel);
            record.handle.get_or_init(|| timeout.clone());
        }
    }

    /// Moves, and looks whether the answer can be right.
    pub(crate) fn reset(&self, timeout: &Timeout, record: &Record, delay: Duration) {
        record.moved.store(true, Ordering::Release);
        if timeout.reset(delay) {
            record.handle.get_or_init(|| timeout.clone());
            self.resets.fetch_add(1, Ordering::AcqRel);
        } else {
            self.check(timeout.is_expired() || timeout.is_cancelled(), "reset was lost, and it has not ended");
        }
    }

    /// A capture was dropped.
    pub(crate) fn close_one(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Not between the waiter's look and its wait.
            drop(lock(&self.gate));
            self.all_closed.notify_all();
        }
    }

    /// Waits until every capture was dropped.
    pub(crate) fn wait_until_closed(&self) {
        let gate = lock(&self.gate);
        let open = |_: &mut ()| self.open.load(Ordering::Acquire) > 0;
        let waited = self.all_closed.wait_timeout_while(gate, LOST, open);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        let open = self.open.load(Ordering::Acquire);
        self.check(open == 0, &format!("{open} captures were never dropped"));
    }

    /// No thread is at work any more: every timeout has ended once, and the timer has counted that.
    pub(crate) fn balance(&self, unknown: Unknown, stats: Option<impl Fn() -> TimerStats>) -> Counts {
        let records = self.records();
        records.iter().for_each(|record| self.check_end(record, unknown));
        let count = |of: &dyn Fn(&Record) -> bool| records.iter().filter(|record| of(record)).count() as u64;
        let once = |record: &Record| record.kind != Kind::Periodic;
        let rejected = count(&|record| get(&record.rejected) == 1);
        let scheduled = records.len() as u64 - rejected;
        let handed_back = count(&|record| get(&record.handed_back) == 1);
        let cancelled = handed_back + count(&|record| get(&record.cancelled) == 1);
        let expired = count(&|record| if once(record) { get(&record.runs) == 1 } else { record.ended_by_panic() });
        let not_known = count(&|record| record.ends() == 0);
        let panics = get(&self.panics);
        let sum = Counts {
            rounds: 1,
            accepted: scheduled,
            refused: rejected,
            expired,
            cancelled: cancelled - handed_back,
            handed_back,
            with_timer: not_known,
            panics,
            resets: get(&self.resets),
        };
        let Some(stats) = stats else { return sum };

        // A run's captures are dropped before the timer counts its panic.
        let quiet = |stats: &TimerStats| stats.pending == 0 && stats.task_panics == panics;
        let started = Instant::now();
        let mut seen = stats();
        while !quiet(&seen) && started.elapsed() < LOST {
            std::thread::yield_now();
            seen = stats();
        }
        let counts = format!(
            "{seen:?}\nthe ledger: scheduled {scheduled}, rejected {rejected}, expired {expired}, cancelled {cancelled}, \
             not known {not_known}, panics {panics}"
        );
        self.check(quiet(&seen), &format!("not quiet: {counts}"));
        self.check((seen.scheduled, seen.rejected) == (scheduled, rejected), &format!("accepted: {counts}"));
        self.check(seen.expired >= expired && seen.cancelled >= cancelled, &format!("ends: {counts}"));
        self.check(seen.expired + seen.cancelled == expired + cancelled + not_known, &format!("all ends: {counts}"));
        self.check(seen.expired + seen.cancelled == seen.scheduled, &format!("sum: {counts}"));
        self.check(seen.runs >= records.iter().map(|record| get(&record.runs)).sum(), &format!("runs: {counts}"));
        sum
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
        // A hook is called after a cancel, and for what was handed back and not run.
        let told = get(&record.told);
        let hook = record.kind == Kind::Task && get(&record.rejected) == 0 && get(&record.runs) == 0;
        self.check(told <= u64::from(hook), &format!("told: {record:?}"));
        self.check(told == 1 || !hook || get(&record.cancelled) == 0, &format!("not told: {record:?}"));
    }

    /// Panics if something was wrong.
    pub(crate) fn report(&self) {
        let faults = lock(&self.faults);
        assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    }

    pub(crate) fn records(&self) -> Vec<Arc<Record>> {
        self.records.iter().flat_map(|part| lock(part).clone()).collect()
    }
}
