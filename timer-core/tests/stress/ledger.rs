//! The ledger of a storm. Each timeout has a record, which every involved thread writes.
//!
//! The ledger keeps the faults that tasks notice, because the timer would catch their panics.

use crate::capture::{Capture, not_taking_back};
use crate::clock::Clock;
use crate::counts::Counts;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use timer_core::{Timeout, TimerStats};

pub(crate) use crate::support::MAX_WAIT;

thread_local! {
    /// The part of the records that belongs to this thread.
    static PART: usize = NEXT_PART.fetch_add(1, Ordering::Relaxed) % PARTS;
}

static NEXT_PART: AtomicUsize = AtomicUsize::new(0);
/// The number of parts. The threads should meet in the timer and not in the ledger.
const PARTS: usize = 16;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Closure,
    /// A task with a hook.
    Task,
    Periodic,
}

/// The record of one timeout.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    /// The earliest first run of a timeout that is not moved, or `None` if it never comes.
    pub(crate) not_before: Option<Instant>,
    pub(crate) moved: AtomicBool,
    /// The handle of a timeout that was moved. Only the handle shows its end then.
    handle: OnceLock<Timeout>,
    pub(crate) in_run: AtomicBool,
    /// Runs that began after a cancel had returned, as far as the record can show.
    pub(crate) late_runs: AtomicU64,
    pub(crate) runs: AtomicU64,
    /// Calls of `cancel` that won.
    pub(crate) cancelled: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) handed_back: AtomicU64,
    /// Calls of the hook.
    pub(crate) hook_calls: AtomicU64,
    /// Runs that panicked.
    pub(crate) panicked: AtomicU64,
    /// Drops of the captures.
    pub(crate) freed: AtomicU64,
}

impl Record {
    /// Counts the ends that a thread of the storm knows. A cancel may come before the panic of a
    /// run that it could not stop.
    pub(crate) fn ends(&self) -> u64 {
        let ran = if self.kind == Kind::Periodic { u64::from(self.ended_by_panic()) } else { get(&self.runs) };
        ran + get(&self.cancelled) + get(&self.rejected) + get(&self.handed_back)
    }

    /// Returns `true` if a panic ended a periodic timeout.
    fn ended_by_panic(&self) -> bool {
        self.kind == Kind::Periodic && get(&self.panicked) == 1 && get(&self.cancelled) == 0
    }
}

pub(crate) fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Acquire)
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
    records: [Mutex<Vec<Arc<Record>>>; PARTS],
    /// Captures that are alive.
    open: AtomicU64,
    pub(crate) panics: AtomicU64,
    /// Moves that returned `true`.
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

    pub(crate) fn fault(&self, text: impl Into<String>) {
        let mut faults = lock(&self.faults);
        if faults.len() < 20 {
            faults.push(text.into());
        }
    }

    pub(crate) fn check(&self, holds: bool, fault: &str) {
        if !holds {
            self.fault(fault);
        }
    }

    pub(crate) fn open(self: &Arc<Self>, kind: Kind, delay: Duration) -> Capture {
        let record = Arc::new(Record {
            kind,
            not_before: self.clock.earliest().checked_add(delay),
            moved: AtomicBool::new(false),
            handle: OnceLock::new(),
            in_run: AtomicBool::new(false),
            late_runs: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            handed_back: AtomicU64::new(0),
            hook_calls: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            freed: AtomicU64::new(0),
        });
        lock(&self.records[PART.with(|part| *part)]).push(record.clone());
        self.open.fetch_add(1, Ordering::AcqRel);
        Capture { ledger: self.clone(), record, guards: None }
    }

    /// Cancels a timeout and checks the answer.
    pub(crate) fn cancel(&self, timeout: &Timeout, record: &Record) -> bool {
        let won = not_taking_back(|| timeout.cancel());
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
            self.check(timeout.is_expired() || timeout.is_cancelled(), "cancel returned false for a pending timeout");
        }
    }

    /// Cancels a timeout that `cancel_all` gets three times, and checks the answer.
    pub(crate) fn cancel_thrice(&self, timeout: &Timeout, record: &Record) {
        let won = not_taking_back(|| Timeout::cancel_all([timeout; 3]));
        self.check(won <= 1, "cancel_all cancelled a timeout twice");
        self.cancelled(won == 1, timeout, record);
    }

    /// Cancels from outside of all tasks. Afterwards the task does not run, and its captures are
    /// dropped.
    pub(crate) fn cancel_and_wait(&self, timeout: &Timeout, record: &Record) {
        let won = not_taking_back(|| timeout.cancel_and_wait()).unwrap();
        self.cancelled(won, timeout, record);
        // A timeout that was handed back runs or is dropped at a time of its owner's choice.
        if won || timeout.is_expired() {
            self.check(!record.in_run.load(Ordering::Acquire), "a run goes on after cancel_and_wait");
            self.check(record.freed.load(Ordering::Acquire) == 1, "cancel_and_wait left the captures behind");
        }
    }

    /// Moves a timeout to now and records the move. Does not check the answer, because it is
    /// `false` for a timeout that is due or queued as well.
    pub(crate) fn expire_now(&self, timeout: &Timeout, record: &Record) {
        record.moved.store(true, Ordering::Release);
        if timeout.expire_now() {
            self.resets.fetch_add(1, Ordering::AcqRel);
            record.handle.get_or_init(|| timeout.clone());
        }
    }

    /// Moves a timeout and checks the answer.
    pub(crate) fn reset(&self, timeout: &Timeout, record: &Record, delay: Duration) {
        record.moved.store(true, Ordering::Release);
        if timeout.reset(delay) {
            record.handle.get_or_init(|| timeout.clone());
            self.resets.fetch_add(1, Ordering::AcqRel);
        } else {
            self.check(timeout.is_expired() || timeout.is_cancelled(), "reset returned false for a pending timeout");
        }
    }

    /// Records the drop of a capture.
    pub(crate) fn close_one(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            // The lock keeps this out of the gap between the waiter's check and its wait.
            drop(lock(&self.gate));
            self.all_closed.notify_all();
        }
    }

    /// Waits until every capture is dropped.
    pub(crate) fn wait_until_closed(&self) {
        let gate = lock(&self.gate);
        let open = |_: &mut ()| self.open.load(Ordering::Acquire) > 0;
        let waited = self.all_closed.wait_timeout_while(gate, MAX_WAIT, open);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        let open = self.open.load(Ordering::Acquire);
        self.check(open == 0, &format!("{open} captures were never dropped"));
    }

    /// Checks that every timeout has ended once and that the timer has counted the ends. No other
    /// thread may be working.
    pub(crate) fn balance(&self, unknown: Unknown, stats: Option<impl Fn() -> TimerStats>) -> Counts {
        let records = self.records();
        records.iter().for_each(|record| self.check_end(record, unknown));
        let count = |holds: &dyn Fn(&Record) -> bool| records.iter().filter(|record| holds(record)).count() as u64;
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
            rejected,
            expired,
            cancelled: cancelled - handed_back,
            handed_back,
            with_timer: not_known,
            panics,
            resets: get(&self.resets),
        };
        let Some(stats) = stats else { return sum };

        // The captures of a run are dropped before the timer counts its panic.
        let quiet = |stats: &TimerStats| stats.pending == 0 && stats.task_panics == panics;
        let started = Instant::now();
        let mut seen = stats();
        while !quiet(&seen) && started.elapsed() < MAX_WAIT {
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

    pub(crate) fn records(&self) -> Vec<Arc<Record>> {
        self.records.iter().flat_map(|part| lock(part).clone()).collect()
    }
}
