//! The follower, which moves the manual timer of a runtime with tokio's clock.

use ::tokio::time;
use core::cell::{Cell, RefCell};
use core::pin::Pin;
use core::task::{Context, Waker};
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};
use timer_core::{ManualDriver, Timer};

/// A deadline that is further away is no reason to move time.
const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The manual timer of a runtime, which follows the clock of tokio's runtime. All threads that
/// block on the runtime share it.
#[derive(Debug)]
pub(super) struct Virtual {
    pub(super) timer: Timer,
    driver: Mutex<ManualDriver>,
    keepers: Arc<Keepers>,
}

/// The wakers of the keepers, one for each call of [`Runtime::block_on`] in progress.
#[derive(Debug, Default)]
struct Keepers(Mutex<Vec<Arc<Mutex<Waker>>>>);

impl Keepers {
    fn list(&self) -> MutexGuard<'_, Vec<Arc<Mutex<Waker>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all keepers, because another thread has set an earlier deadline.
    fn wake(&self) {
        let keepers = self.list().clone();
        keepers.iter().for_each(|keeper| waker_of(keeper).wake());
    }
}

fn waker_of(keeper: &Mutex<Waker>) -> Waker {
    keeper.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Moves the manual timer during one call of [`Runtime::block_on`]. The hooks of the runtime run on
/// the thread that drives it, and use the follower of that thread.
#[derive(Debug)]
pub(super) struct Follower {
    clock: Arc<Virtual>,
    /// The deadline that the keeper's sleep waits for.
    armed: Cell<Option<Instant>>,
    /// Wakes the keeper.
    keeper: Arc<Mutex<Waker>>,
}

thread_local! {
    static FOLLOWER: RefCell<Option<Rc<Follower>>> = const { RefCell::new(None) };
}

/// Calls `call` with the follower of the thread, if there is one.
pub(super) fn with_follower(call: impl FnOnce(&Follower)) {
    let follower = FOLLOWER.try_with(|follower| follower.borrow().clone());
    if let Ok(Some(follower)) = follower {
        call(&follower);
    }
}

/// Returns `true` if the clock of the runtime runs. Takes two different readings of the system's
/// clock.
fn is_running() -> bool {
    let (begin, before) = (Instant::now(), time::Instant::now());
    while Instant::now() == begin {}
    time::Instant::now() != before
}

impl Virtual {
    /// Creates a manual timer. It is older than the clock of a runtime that is built afterwards, so
    /// it can be moved to that clock's beginning.
    pub(super) fn new() -> io::Result<Arc<Self>> {
        let (timer, mut driver) = Timer::builder().name("paused").build_manual().map_err(io::Error::other)?;
        let keepers = Arc::<Keepers>::default();
        driver.set_waker({
            let keepers = keepers.clone();
            move || keepers.wake()
        });
        Ok(Arc::new(Self { timer, driver: Mutex::new(driver), keepers }))
    }

    /// Returns the driver, unless a thread is within an advance. That thread may be this one, if
    /// the task of a timeout asks.
    fn driver(&self) -> Option<MutexGuard<'_, ManualDriver>> {
        match self.driver.try_lock() {
            Ok(driver) => Some(driver),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Follower {
    pub(super) fn new(clock: &Arc<Virtual>) -> Rc<Self> {
        let keeper = Arc::new(Mutex::new(Waker::noop().clone()));
        clock.keepers.list().push(keeper.clone());
        Rc::new(Self { clock: clock.clone(), armed: Cell::new(None), keeper })
    }

    /// Moves the manual timer to the present of tokio's clock and runs the timeouts that are due.
    /// From now on, its time runs if that clock does.
    pub(super) fn follow(&self) {
        let Some(mut driver) = self.clock.driver() else { return };
        if is_running() {
            driver.resume();
        } else {
            driver.pause();
        }
        // The manual timer is never ahead, because its present is read last.
        let now = time::Instant::now().into_std();
        let behind = now.saturating_duration_since(driver.now());
        driver.advance(behind);
    }

    /// Lets the time of the manual timer stand still.
    pub(super) fn pause(&self) {
        if let Some(mut driver) = self.clock.driver() {
            driver.pause();
        }
    }

    /// Returns the deadline to which time moves when all tasks wait.
    fn next(&self) -> Option<Instant> {
        let mut driver = self.clock.driver()?;
        // The present must not change between its two readings.
        driver.pause();
        let next = driver.next_expiry().filter(|next| *next < FAR);
        let next = next.and_then(|next| driver.now().checked_add(next));
        if is_running() {
            driver.resume();
        }
        next
    }

    /// Called when the runtime has nothing to do. Wakes the keeper if its sleep waits for another
    /// deadline.
    pub(super) fn before_park(&self) {
        self.follow();
        if self.next() != self.armed.get() {
            waker_of(&self.keeper).wake();
        }
    }

    /// Polls the keeper, whose sleep makes tokio's clock stop at each deadline of the manual timer.
    pub(super) fn poll_keeper(&self, mut sleep: Pin<&mut time::Sleep>, cx: &mut Context<'_>) {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner).clone_from(cx.waker());
        loop {
            self.follow();
            let next = self.next();
            self.armed.set(next);
            let Some(next) = next else { return };
            if sleep.deadline().into_std() != next || sleep.is_elapsed() {
                sleep.as_mut().reset(next.into());
            }
            if sleep.as_mut().poll(cx).is_pending() {
                return;
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.clock.keepers.list().retain(|keeper| !Arc::ptr_eq(keeper, &self.keeper));
    }
}

/// Restores the former follower of the thread.
pub(super) struct FollowerGuard(Option<Rc<Follower>>);

impl FollowerGuard {
    /// Makes `follower` the one of the thread.
    pub(super) fn enter(follower: Rc<Follower>) -> Self {
        Self(FOLLOWER.with(|former| former.replace(Some(follower))))
    }
}

impl Drop for FollowerGuard {
    fn drop(&mut self) {
        let _ = FOLLOWER.try_with(|follower| follower.replace(self.0.take()));
    }
}
