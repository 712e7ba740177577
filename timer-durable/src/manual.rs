//! Virtual time for tests, on a store whose clock the test moves.
//!
//! There is no keeper thread. A call takes turns of the keeper itself until it has its answer, and
//! a driver takes turns until nothing is left to do. Handlers run on the driver's thread, with
//! nothing locked, so they may call the timer. The driver is a [`ManualDurableDriver`] or a
//! [`VirtualClock`](crate::VirtualClock).

use crate::engine::{Flow, Keeper, Settle, as_keeper, is_keeper};
use crate::error::Error;
use crate::store::{Micros, Store};
use crate::time::between;
use crate::virtual_clock::{Driven, Place};
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
/// timer.new_timeout(PAY, Duration::from_secs(10), &()).wait()?;
/// assert_eq!(driver.advance(Duration::from_secs(200)), 3);
/// # Ok::<(), timer_durable::Error>(())
/// ```
#[derive(Debug)]
#[doc(alias = "MockClock")]
pub struct ManualDurableDriver {
    keeper: Arc<ManualKeeper>,
}

/// A keeper without a thread, whose turns are taken by calls and by a driver.
pub(crate) struct ManualKeeper {
    keeper: Mutex<Option<Keeper>>,
    tasks: Arc<Tasks>,
    /// The place on a clock that drives the keeper.
    place: Option<Place>,
}

impl std::fmt::Debug for ManualKeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManualKeeper").finish_non_exhaustive()
    }
}

/// The executor of a manual timer. It keeps tasks until the driver runs them.
#[derive(Default)]
struct Tasks(Mutex<VecDeque<Task>>);

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Task>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self) -> Option<Task> {
        self.lock().pop_front()
    }
}

impl TaskExecutor for Tasks {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        self.lock().push_back(task);
        Ok(())
    }
}

/// Puts a store on virtual time, and not before the time of the clock that will drive it.
pub(crate) fn put_on_virtual_time(store: &mut dyn Store, keeper: &ManualKeeper) -> Result<(), Error> {
    store.advance_time(Duration::ZERO)?;
    let ahead = keeper.place.as_ref().map_or(Duration::ZERO, |place| between(store.now(), place.now()));
    Ok(store.advance_time(ahead)?)
}

impl ManualKeeper {
    pub(crate) fn new(place: Option<Place>) -> Arc<Self> {
        Arc::new(Self { keeper: Mutex::default(), tasks: Arc::default(), place })
    }

    /// Returns a function that takes the keeper's turns. The keeper may own it, because it does not
    /// keep the keeper alive.
    pub(crate) fn settler(self: &Arc<Self>) -> Settle {
        let keeper = Arc::downgrade(self);
        Arc::new(move || _ = keeper.upgrade().map(|keeper| keeper.settle()))
    }

    pub(crate) fn executor(&self) -> Arc<dyn TaskExecutor> {
        self.tasks.clone()
    }

    /// Gives the parts their keeper.
    pub(crate) fn attach(self: &Arc<Self>, keeper: Keeper) {
        let now = keeper.now();
        *self.keeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(keeper);
        if let Some(place) = &self.place {
            let keeper: Arc<dyn Driven> = self.clone();
            place.enter(Arc::downgrade(&keeper), now);
            self.settle();
        }
    }

    /// Locks the keeper. Returns `None` if this thread takes its turns, as in a function that
    /// a transaction has called.
    fn lock(&self) -> Option<MutexGuard<'_, Option<Keeper>>> {
        if !is_keeper() {
            return Some(self.keeper.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.keeper.try_lock() {
            Ok(keeper) => Some(keeper),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Takes turns until there is no message and nothing is due. A call that a turn makes leaves
    /// its message to the next turn.
    pub(crate) fn settle(&self) {
        let Some(mut keeper) = self.lock() else { return };
        let mut ending = None;
        if let Some(keeper) = keeper.as_mut() {
            keeper.end_pause();
        }
        while let Some(running) = keeper.as_mut() {
            if let Some(now) = self.place.as_ref().and_then(Place::store_time) {
                running.advance_time(between(running.now(), now));
            }
            if !running.has_work() {
                break;
            }
            if let Flow::End(end) = as_keeper(|| running.take_turn()) {
                ending = keeper.take().map(|ended| (ended, end));
            }
        }
        if let Some(place) = &self.place {
            let next = keeper
                .as_ref()
                .and_then(|keeper| if self.tasks.lock().is_empty() { keeper.next_wake() } else { Some(keeper.now()) });
            place.set_next(next);
        }
        // The handlers may own the last handle of the timer, whose drop locks it.
        drop(keeper);
        if let Some(place) = &self.place {
            place.arm();
        }
        if let Some((ended, end)) = ending {
            ended.close(end);
        }
    }

    /// Calls a function with the keeper, unless it has ended.
    fn with<R>(&self, function: impl FnOnce(&mut Keeper) -> R) -> Option<R> {
        self.lock()?.as_mut().map(function)
    }
}

impl Driven for ManualKeeper {
    fn run_due(&self) -> usize {
        let mut ran = 0;
        loop {
            self.settle();
            let Some(task) = self.tasks.pop() else { return ran };
            task.run();
            ran += 1;
        }
    }

    fn crash(&self) {
        let keeper = self.lock().and_then(|mut keeper| keeper.take());
        // The handlers may own the last handle of the timer, whose drop locks it.
        drop(keeper);
        let tasks = std::mem::take(&mut *self.tasks.lock());
        drop(tasks);
        self.settle();
    }
}

impl ManualDurableDriver {
    pub(crate) fn new(keeper: Arc<ManualKeeper>) -> Self {
        Self { keeper }
    }

    /// Moves the time forward and runs the handlers of timeouts that become due on the way, each at
    /// its due time. Returns the number of handlers that have run.
    pub fn advance(&mut self, by: Duration) -> usize {
        let Some(end) = self.keeper.with(|keeper| keeper.now().saturating_add(crate::time::micros(by))) else {
            return self.run_due();
        };
        let mut ran = self.run_due();
        let mut is_stuck = false;
        while let Some((now, next)) = self.keeper.with(|keeper| (keeper.now(), keeper.next_wake())) {
            let next = next.filter(|next| *next <= end && !is_stuck);
            self.keeper.with(|keeper| keeper.advance_time(between(now, next.unwrap_or(end))));
            let count = self.run_due();
            ran += count;
            if next.is_none() {
                break;
            }
            is_stuck = count == 0 && next <= Some(now);
        }
        ran
    }

    /// Runs the handlers of timeouts that are due now, without moving the time.
    pub fn run_due(&mut self) -> usize {
        self.keeper.run_due()
    }

    /// Moves the time to the next due time and runs the handlers that are due then. Returns the
    /// number of handlers, or `None` if nothing is pending, or if handlers that have not ended
    /// leave no place for the rest.
    pub fn advance_to_next(&mut self) -> Option<usize> {
        loop {
            self.keeper.settle();
            let next = |keeper: &mut Keeper| (keeper.now(), keeper.next_due(), keeper.next_page());
            let (now, due, page) = self.keeper.with(next)?;
            let next: Micros = due.into_iter().chain(page).min()?;
            let ran = self.advance(between(now, next));
            if due == Some(next) || next <= now {
                return Some(ran);
            }
        }
    }

    /// Drops the timer as a crash does. Handlers that have begun do not report, and calls find the
    /// timer stopped. The store keeps what was committed.
    pub fn crash(self) {
        self.keeper.crash();
    }
}
