//! The follower, which moves the manual timer of a runtime with tokio's clock.

use ::tokio::task::unconstrained;
use ::tokio::time;
use core::cell::{Cell, RefCell};
use core::pin::{Pin, pin};
use core::task::{Context, Waker};
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::yield_now;
use std::time::{Duration, Instant};
use timer_core::{ManualDriver, Timer};

/// A deadline that is further away is no reason to move time.
const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The time by which the manual timer may be behind a clock that runs. It is further behind only if
/// a function of tokio has moved that clock.
const MAX_LAG: Duration = Duration::from_millis(1);

/// The ticks of tokio's timer.
const TICK: Duration = Duration::from_millis(1);

/// The manual timer of a runtime, which follows the clock of tokio's runtime. All threads that
/// block on the runtime share it.
#[derive(Debug)]
pub(super) struct Virtual {
    pub(super) timer: Timer,
    clock: Mutex<Clock>,
    keepers: Arc<Keepers>,
}

/// The driver of the manual timer, and its relation to tokio's clock.
#[derive(Debug)]
struct Clock {
    driver: ManualDriver,
    /// Whether the time of the manual timer runs.
    runs: bool,
    /// An instant at which one of the ticks of tokio's timer begins. `None` until the clock stands
    /// still for the first time.
    tick: Option<Instant>,
}

/// The next deadline of the manual timer, if it is not far, and whether its time runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NextDeadline {
    deadline: Option<Instant>,
    runs: bool,
}

impl Clock {
    /// Returns the deadline to which time moves when all tasks wait.
    fn next(&self) -> NextDeadline {
        let far = self.driver.now().checked_add(FAR);
        let deadline = self.driver.next_deadline().filter(|next| far.is_none_or(|far| *next < far));
        NextDeadline { deadline, runs: self.runs }
    }

    /// Returns the instant of tokio's clock at which the manual timer reaches `deadline`. While the
    /// clocks run, there is a distance between them.
    fn on_tokios_clock(&self, deadline: Instant) -> time::Instant {
        if self.runs {
            time::Instant::now() + deadline.saturating_duration_since(self.driver.now())
        } else {
            deadline.into()
        }
    }

    /// Moves the time to that of tokio's clock, which stands still, and runs the timeouts whose
    /// tick has come.
    fn catch_up(&mut self) {
        let earliest = self.driver.now() - self.driver.elapsed();
        let tick = *self.tick.get_or_insert_with(|| find_tick(earliest));
        let now = time::Instant::now().into_std();
        let since_tick = now.saturating_duration_since(tick).subsec_nanos() % TICK.subsec_nanos();
        let by = now.saturating_duration_since(self.driver.now());
        self.driver.advance_with_lag(by, Duration::from_nanos(since_tick.into()));
    }

    fn pause(&mut self) {
        self.driver.pause();
        self.runs = false;
    }

    /// Moves the time to that of tokio's clock, lets it run if that clock does, and runs the
    /// timeouts that are due.
    fn follow(&mut self) {
        if !is_running() {
            self.pause();
            return self.catch_up();
        }
        // No timeout runs while the time stands still behind a clock that runs, because the delays
        // that its task schedules would be early.
        self.driver.resume();
        self.runs = true;
        // A time that is moved while it runs makes delays early, too.
        while behind(self.driver.now()) > MAX_LAG {
            let before = self.driver.now();
            self.driver.advance(behind(before));
            if self.driver.now() == before {
                break; // at the end of time
            }
        }
        self.driver.advance(Duration::ZERO);
    }

    /// Moves the time to that of tokio's clock unless it is there already. In that case no
    /// timeout runs, because the calling task may hold a lock that a timeout needs.
    fn update(&mut self) {
        if self.runs != is_running() || behind(self.driver.now()) > max_lag(self.runs) {
            self.follow();
        }
    }
}

/// Returns an instant at which one of the ticks of tokio's timer begins, while its clock stands
/// still. `earliest` is not after the first one.
///
/// Tokio has no function that returns it. A sleep is ready at its first poll if its deadline is not
/// after the last tick that the runtime has processed, so the latest such deadline is that tick.
fn find_tick(earliest: Instant) -> Instant {
    let mut cx = Context::from_waker(Waker::noop());
    let mut is_past = |at: Instant| pin!(unconstrained(time::sleep_until(at.into()))).poll(&mut cx).is_ready();
    let mut past = earliest;
    let mut ahead = behind(earliest) + TICK;
    while ahead > Duration::from_nanos(1) {
        let half = ahead / 2;
        if is_past(past + half) {
            past += half;
            ahead -= half;
        } else {
            ahead = half;
        }
    }
    past
}

/// Returns the time by which `now` is behind tokio's clock, or zero if it is ahead.
fn behind(now: Instant) -> Duration {
    time::Instant::now().into_std().saturating_duration_since(now)
}

/// Returns the time by which the manual timer may be behind tokio's clock when a delay begins.
fn max_lag(runs: bool) -> Duration {
    if runs { MAX_LAG } else { Duration::ZERO }
}

/// The wakers of the keepers. Each call of [`Runtime::block_on`](super::runtime::Runtime::block_on)
/// in progress has a keeper, a future whose sleep makes tokio's clock stop at the next deadline of
/// the manual timer.
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

/// The share of one call of [`Runtime::block_on`](super::runtime::Runtime::block_on) in moving the
/// manual timer. The hooks of the runtime run on the thread that drives it, and use the follower of
/// that thread.
#[derive(Debug)]
pub(super) struct Follower {
    clock: Arc<Virtual>,
    /// The deadline that the keeper's sleep waits for.
    armed: Cell<Option<NextDeadline>>,
    /// Wakes the keeper.
    keeper: Arc<Mutex<Waker>>,
    /// Whether the calling thread is within an advance, so it may be running the task of a timeout.
    is_advancing: Cell<bool>,
}

thread_local! {
    static FOLLOWER: RefCell<Option<Rc<Follower>>> = const { RefCell::new(None) };
}

/// Calls `call` with the follower of the thread. Returns `None` if there is none.
pub(super) fn with_follower<R>(call: impl FnOnce(&Follower) -> R) -> Option<R> {
    let follower = FOLLOWER.try_with(|follower| follower.borrow().clone()).ok().flatten()?;
    Some(call(&follower))
}

/// Returns `true` if tokio's clock advances while the system's clock does, and by no more.
fn is_running() -> bool {
    let begin = Instant::now();
    let before = time::Instant::now();
    let between = Instant::now();
    while Instant::now() == between {}
    let passed = time::Instant::now() - before;
    // If another thread has moved a clock that stands still, more time has passed.
    !passed.is_zero() && passed <= begin.elapsed()
}

impl Virtual {
    /// Creates a manual timer. It is older than the clock of a runtime that is built afterwards, so
    /// it can be moved to that clock's beginning.
    pub(super) fn new() -> io::Result<Arc<Self>> {
        let (timer, mut driver) = Timer::builder().name("paused").build_manual().map_err(io::Error::other)?;
        let keepers = Arc::<Keepers>::default();
        driver.on_wake({
            let keepers = keepers.clone();
            move || keepers.wake()
        });
        Ok(Arc::new(Self { timer, clock: Mutex::new(Clock { driver, runs: false, tick: None }), keepers }))
    }

    /// Returns the clock, unless a thread is within an advance. That thread may be this one, if the
    /// task of a timeout asks.
    fn clock(&self) -> Option<MutexGuard<'_, Clock>> {
        match self.clock.try_lock() {
            Ok(clock) => Some(clock),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns `true` if tokio's clock has moved and the manual timer has not.
    fn is_behind(&self) -> bool {
        behind(self.timer.now()) > max_lag(is_running())
    }
}

impl Follower {
    pub(super) fn new(clock: &Arc<Virtual>) -> Rc<Self> {
        let keeper = Arc::new(Mutex::new(Waker::noop().clone()));
        clock.keepers.list().push(keeper.clone());
        Rc::new(Self { clock: clock.clone(), armed: Cell::new(None), keeper, is_advancing: Cell::default() })
    }

    /// Lets the manual timer follow tokio's clock.
    pub(super) fn follow(&self) {
        let _ = self.advance(Clock::follow);
    }

    /// Brings the time of the manual timer up to date for a delay that begins now.
    ///
    /// If another thread is moving the time, waits until the time is that of tokio's clock, or
    /// until the thread is done. The timeouts of the last step may still be running by then.
    pub(super) fn update(&self) {
        while self.advance(Clock::update).is_none() && !self.is_advancing.get() && self.clock.is_behind() {
            yield_now();
        }
    }

    /// Calls `advance` with the clock, unless a thread is within an advance.
    fn advance(&self, advance: impl FnOnce(&mut Clock)) -> Option<()> {
        let mut clock = self.clock.clock()?;
        self.is_advancing.set(true);
        advance(&mut clock);
        self.is_advancing.set(false);
        Some(())
    }

    /// Stops tokio's clock. The time of the manual timer stops before, so that it is not ahead.
    pub(super) fn pause(&self) {
        let pause = |clock: &mut Clock| {
            clock.pause();
            time::pause();
            clock.catch_up();
        };
        self.advance(pause).unwrap_or_else(time::pause);
    }

    /// Called when the runtime has nothing to do. Wakes the keeper if its sleep waits for another
    /// deadline.
    pub(super) fn before_park(&self) {
        self.follow();
        // Another thread may be moving the time.
        let next = self.clock.clock().map(|clock| clock.next());
        if next.is_none() || next != self.armed.get() {
            waker_of(&self.keeper).wake();
        }
    }

    /// Polls the keeper, whose sleep makes tokio's clock stop at each deadline of the manual timer.
    pub(super) fn poll_keeper(&self, mut sleep: Pin<&mut time::Sleep>, cx: &mut Context<'_>) {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner).clone_from(cx.waker());
        loop {
            self.follow();
            // If another thread moves the time, the keeper looks again.
            let Some(clock) = self.clock.clock() else { return cx.waker().wake_by_ref() };
            let next = clock.next();
            let is_armed = self.armed.replace(Some(next)) == Some(next);
            let Some(deadline) = next.deadline else { return };
            if !is_armed || sleep.is_elapsed() {
                sleep.as_mut().reset(clock.on_tokios_clock(deadline));
            }
            drop(clock);
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

/// A guard that restores the former follower of the thread.
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
