//! Virtual time for tests, on a memory store whose clock the test moves.
//!
//! There is no keeper thread. A call takes turns of the keeper itself until it has its answer, and
//! the driver takes turns until nothing is left to do. Handlers run on the driver's thread, with
//! nothing locked, so they may call the timer.

use crate::engine::{Flow, Keeper, Settle, as_keeper, is_keeper};
use crate::memory_store::MemoryStore;
use crate::store::{Micros, Store};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;
use timer_executor::{ExecuteError, Task, TaskExecutor};

/// Moves the virtual time of a [`DurableTimer`](crate::DurableTimer) and runs its handlers.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, MemoryStore, Retry, Topic};
///
/// const PAY: Topic<()> = Topic::new("pay");
///
/// let builder = DurableTimer::builder().topic(PAY, |due: &Due<()>| match due.attempt() {
///     3 => Ok(()),
///     _ => Err(Retry::after(Duration::from_secs(60)).because("the bank does not answer")),
/// });
/// let (timer, mut driver) = builder.build_manual(MemoryStore::new())?;
/// timer.new_timeout(PAY, Duration::from_secs(10), &())?;
/// assert_eq!(driver.advance(Duration::from_secs(200)), 3);
/// # Ok::<(), timer_durable::Error>(())
/// ```
#[derive(Debug)]
pub struct ManualDurableDriver {
    shared: Shared,
}

/// The keeper of a manual timer, which calls and the driver share.
#[derive(Clone)]
pub(crate) struct Shared {
    store: MemoryStore,
    keeper: Arc<SharedKeeper>,
    tasks: Arc<Tasks>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("store", &self.store).finish_non_exhaustive()
    }
}

/// The executor of a manual timer. It keeps tasks until the driver runs them.
#[derive(Default)]
struct Tasks(Mutex<VecDeque<Task>>);

impl Tasks {
    fn pop(&self) -> Option<Task> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl TaskExecutor for Tasks {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(task);
        Ok(())
    }
}

type SharedKeeper = Mutex<Option<Keeper<MemoryStore>>>;

/// Locks a keeper. Returns `None` if this thread takes its turns, as in a function that
/// a transaction has called.
fn lock(keeper: &SharedKeeper) -> Option<MutexGuard<'_, Option<Keeper<MemoryStore>>>> {
    if !is_keeper() {
        return Some(keeper.lock().unwrap_or_else(PoisonError::into_inner));
    }
    match keeper.try_lock() {
        Ok(keeper) => Some(keeper),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Takes turns until there is no message and nothing is due. A call that a turn makes leaves its
/// message to the next turn.
fn settle(shared: &SharedKeeper) {
    let Some(mut keeper) = lock(shared) else { return };
    while let Some(running) = keeper.as_mut().filter(|keeper| keeper.has_work()) {
        if let Flow::End(ending) = as_keeper(|| running.take_turn()) {
            let ended = keeper.take();
            // The handlers may own the last handle of the timer, whose drop locks it.
            drop(keeper);
            if let Some(keeper) = ended {
                keeper.close(ending);
            }
            return;
        }
    }
}

impl Shared {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self { store, keeper: Arc::default(), tasks: Arc::default() }
    }

    /// Returns a function that takes the keeper's turns. The keeper may own it, because it does not
    /// keep the keeper alive.
    pub(crate) fn settler(&self) -> Settle {
        let keeper = Arc::downgrade(&self.keeper);
        Arc::new(move || _ = keeper.upgrade().map(|keeper| settle(&keeper)))
    }

    pub(crate) fn executor(&self) -> Arc<dyn TaskExecutor> {
        self.tasks.clone()
    }

    /// Gives the parts their keeper and returns the driver.
    pub(crate) fn attach(&self, keeper: Keeper<MemoryStore>) -> ManualDurableDriver {
        *self.keeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(keeper);
        ManualDurableDriver { shared: self.clone() }
    }

    pub(crate) fn settle(&self) {
        settle(&self.keeper);
    }

    /// Returns the first due time in memory, and the time of the next page.
    fn next_times(&self) -> (Option<Micros>, Option<Micros>) {
        let keeper = lock(&self.keeper);
        keeper
            .as_ref()
            .and_then(|keeper| keeper.as_ref())
            .map_or((None, None), |keeper| (keeper.next_due(), keeper.next_page()))
    }

    fn next_time(&self) -> Option<Micros> {
        let (due, page) = self.next_times();
        due.into_iter().chain(page).min()
    }
}

impl ManualDurableDriver {
    /// Moves the time forward and runs the handlers of timeouts that become due on the way, each at
    /// its due time. Returns the number of handlers that have run.
    pub fn advance(&mut self, by: Duration) -> usize {
        let end = self.shared.store.now().saturating_add(crate::time::micros(by));
        let mut ran = self.run_due();
        while let Some(due) = self.shared.next_time().filter(|due| *due <= end) {
            let wait = u64::try_from(due - self.shared.store.now()).unwrap_or(0);
            self.shared.store.advance_clock(Duration::from_micros(wait));
            let count = self.run_due();
            if count == 0 && wait == 0 {
                // The store fails, and the keeper pauses.
                break;
            }
            ran += count;
        }
        let rest = u64::try_from(end - self.shared.store.now()).unwrap_or(0);
        self.shared.store.advance_clock(Duration::from_micros(rest));
        ran + self.run_due()
    }

    /// Runs the handlers of timeouts that are due now, without moving the time.
    pub fn run_due(&mut self) -> usize {
        let mut ran = 0;
        loop {
            self.shared.settle();
            let Some(task) = self.shared.tasks.pop() else { return ran };
            task.run();
            ran += 1;
        }
    }

    /// Moves the time to the next due time and runs the handlers that are due then. Returns the
    /// number of handlers, or `None` if nothing is pending, or if handlers that have not ended
    /// leave no place for the rest.
    pub fn advance_to_next(&mut self) -> Option<usize> {
        loop {
            self.shared.settle();
            let (due, page) = self.shared.next_times();
            let next = due.into_iter().chain(page).min()?;
            let wait = u64::try_from(next - self.shared.store.now()).unwrap_or(0);
            let ran = self.advance(Duration::from_micros(wait));
            if due == Some(next) || wait == 0 {
                return Some(ran);
            }
        }
    }

    /// Drops the timer as a crash does. Handlers that have begun do not report, and calls find the
    /// timer stopped. The store keeps what was committed.
    pub fn crash(self) {
        let keeper = lock(&self.shared.keeper).and_then(|mut keeper| keeper.take());
        // The handlers may own the last handle of the timer, whose drop locks it.
        drop(keeper);
    }
}
