//! Runtimes with virtual time, under tokio's names.

use ::tokio::runtime as theirs;
#[doc(no_inline)]
pub use ::tokio::runtime::*;
use ::tokio::time;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::ops::Deref;
use core::pin::{Pin, pin};
use core::task::{Context, Waker};
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};
use timer_core::{ManualDriver, Timer, global};

/// A deadline that is further away is no reason to move time.
const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The manual timer of a runtime, which follows the clock of tokio's runtime. All threads that
/// block on the runtime share it.
#[derive(Debug)]
struct Virtual {
    timer: Timer,
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

impl Virtual {
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
    fn new(clock: &Arc<Virtual>) -> Rc<Self> {
        let keeper = Arc::new(Mutex::new(Waker::noop().clone()));
        clock.keepers.list().push(keeper.clone());
        Rc::new(Self { clock: clock.clone(), armed: Cell::new(None), keeper })
    }

    /// Moves the manual timer to the present of tokio's clock and runs the timeouts that are due.
    pub(super) fn follow(&self) {
        let now = time::Instant::now().into_std();
        if let Some(mut driver) = self.clock.driver() {
            let behind = now.saturating_duration_since(driver.now());
            driver.advance(behind);
        }
    }

    /// Returns the deadline to which time moves when all tasks wait.
    fn next(&self) -> Option<Instant> {
        let driver = self.clock.driver()?;
        let next = driver.next_expiry().filter(|next| *next < FAR)?;
        driver.now().checked_add(next)
    }

    /// Called when the runtime has nothing to do. Wakes the keeper if its sleep waits for another
    /// deadline.
    fn before_park(&self) {
        self.follow();
        if self.next() != self.armed.get() {
            waker_of(&self.keeper).wake();
        }
    }

    /// Polls the keeper, whose sleep makes tokio's clock stop at each deadline of the manual timer.
    fn poll_keeper(&self, mut sleep: Pin<&mut time::Sleep>, cx: &mut Context<'_>) {
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

/// Restores the follower of the thread, which matters only if the future panics.
struct FollowerGuard(Option<Rc<Follower>>);

impl Drop for FollowerGuard {
    fn drop(&mut self) {
        let _ = FOLLOWER.try_with(|follower| follower.replace(self.0.take()));
    }
}

/// Runs `future` on a current-thread tokio runtime with virtual time and returns its output.
///
/// Within the future and the tasks that it spawns, the functions of [`timer_core::global`] use a
/// manual timer. Time stands still while a task can run, and moves to the next deadline when all
/// tasks wait.
///
/// # Panics
///
/// Panics if the future panics, if the thread is within a runtime already, or if the system refuses
/// the resources of a runtime.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio::paused;
/// use timer_core::global::{self, Duration};
///
/// let begin = std::time::Instant::now();
/// paused(async {
///     let begin = global::now();
///     let task = tokio::spawn(async {
///         global::sleep(Duration::from_secs(3600)).await;
///         global::now()
///     });
///     assert_eq!(task.await.unwrap() - begin, Duration::from_secs(3600));
/// });
/// assert!(begin.elapsed() < Duration::from_secs(60));
/// ```
#[doc(alias = "start_paused")]
#[allow(clippy::expect_used, reason = "a test without a runtime has failed")]
pub fn paused<F: IntoFuture>(future: F) -> F::Output {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime for the test").block_on(future.into_future())
}

/// Builds a [`Runtime`]. The methods are the common ones of tokio's builder. The hooks for the
/// parking of threads are not among them, because virtual time uses them.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio::runtime::Builder;
/// use timer_adapters::tokio::time::{Duration, Instant, sleep};
///
/// let runtime = Builder::new_current_thread().enable_all().start_paused(true).build()?;
/// runtime.block_on(async {
///     let begin = Instant::now();
///     sleep(Duration::from_secs(5)).await;
///     assert_eq!(begin.elapsed(), Duration::from_secs(5));
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Builder {
    builder: theirs::Builder,
    is_current_thread: bool,
    /// Whether the runtime has tokio's clock, without which there is no virtual time.
    has_time: bool,
}

/// Returns `self` after a call of tokio's builder.
macro_rules! forward {
    ($($(#[$doc:meta])* $name:ident$(<$generic:ident: $bound:path>)?($($argument:ident: $type:ty)?);)*) => {$(
        $(#[$doc])*
        pub fn $name$(<$generic: $bound + Send + Sync + 'static>)?(&mut self $(, $argument: $type)?) -> &mut Self {
            self.builder.$name($($argument)?);
            self
        }
    )*};
}

impl Builder {
    /// Builds a runtime on the thread that calls [`Runtime::block_on`]. Only such a runtime can
    /// have virtual time.
    pub fn new_current_thread() -> Self {
        let mut builder = theirs::Builder::new_current_thread();
        builder.on_thread_park(|| with_follower(Follower::before_park));
        builder.on_thread_unpark(|| with_follower(Follower::follow));
        Self { builder, is_current_thread: true, has_time: false }
    }

    /// Builds a runtime with several threads, which is tokio's. The functions of
    /// [`time`](super::time) use the timer of the process on it.
    pub fn new_multi_thread() -> Self {
        Self { builder: theirs::Builder::new_multi_thread(), is_current_thread: false, has_time: false }
    }

    /// Enables sockets and tokio's clock.
    pub fn enable_all(&mut self) -> &mut Self {
        self.builder.enable_all();
        self.has_time = true;
        self
    }

    /// Enables tokio's clock.
    pub fn enable_time(&mut self) -> &mut Self {
        self.builder.enable_time();
        self.has_time = true;
        self
    }

    forward! {
        /// Starts with the clock stopped. As in tokio, that needs a runtime on the current thread.
        start_paused(is_paused: bool);
        /// Sets the number of threads of a runtime with several threads.
        worker_threads(threads: usize);
        /// Sets the largest number of threads for blocking work.
        max_blocking_threads(threads: usize);
        /// Sets the time that a thread for blocking work waits for more.
        thread_keep_alive(time: Duration);
        /// Names the threads that the runtime starts.
        thread_name(name: impl Into<String>);
        /// Sets the size of the stacks of the threads that the runtime starts, in bytes.
        thread_stack_size(bytes: usize);
        /// Sets a hook that runs on each thread of the runtime at its start.
        on_thread_start<F: Fn()>(hook: F);
        /// Sets a hook that runs on each thread of the runtime at its end.
        on_thread_stop<F: Fn()>(hook: F);
        /// Sets the number of polls after which the runtime looks at sockets and deadlines.
        event_interval(polls: u32);
        /// Sets the number of polls after which the runtime looks at its queue of tasks from other
        /// threads.
        global_queue_interval(polls: u32);
    }

    /// Builds the runtime.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses the resources of a runtime.
    pub fn build(&mut self) -> io::Result<Runtime> {
        let clock = if self.is_current_thread && self.has_time {
            // The manual timer is older than tokio's clock, so it can be moved to that clock's
            // beginning.
            let (timer, mut driver) = Timer::builder().name("paused").build_manual().map_err(io::Error::other)?;
            let keepers = Arc::<Keepers>::default();
            driver.set_waker({
                let keepers = keepers.clone();
                move || keepers.wake()
            });
            Some(Arc::new(Virtual { timer, driver: Mutex::new(driver), keepers }))
        } else {
            None
        };
        Ok(Runtime { runtime: self.builder.build()?, clock })
    }
}

/// A runtime of tokio whose clock the timer follows. It has all methods of tokio's
/// [`Runtime`](theirs::Runtime).
///
/// Only [`block_on`](Self::block_on) moves virtual time. `LocalSet::block_on` and
/// `Handle::block_on` do not, and sleeps in them use the timer of the process. Pass
/// `LocalSet::run_until` to [`block_on`](Self::block_on) instead.
#[derive(Debug)]
pub struct Runtime {
    runtime: theirs::Runtime,
    /// The manual timer of a runtime on the current thread that has tokio's clock.
    clock: Option<Arc<Virtual>>,
}

impl Runtime {
    /// Creates a runtime with several threads, as tokio does.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses the resources of a runtime.
    pub fn new() -> io::Result<Self> {
        Builder::new_multi_thread().enable_all().build()
    }

    /// Runs `future` and the tasks that it spawns, and returns its output.
    ///
    /// # Panics
    ///
    /// Panics if the future panics or if the thread is within a runtime already.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let Some(clock) = &self.clock else { return self.runtime.block_on(future) };
        let _entered = global::enter(clock.timer.clone());
        let follower = Follower::new(clock);
        let _guard = FollowerGuard(FOLLOWER.with(|former| former.replace(Some(follower.clone()))));
        self.runtime.block_on(async {
            follower.follow();
            let mut sleep = pin!(time::sleep(Duration::ZERO));
            let mut future = pin!(future);
            poll_fn(|cx| {
                let polled = future.as_mut().poll(cx);
                if polled.is_pending() {
                    follower.poll_keeper(sleep.as_mut(), cx);
                }
                polled
            })
            .await
        })
    }

    /// Shuts the runtime down, and waits for blocking work for at most `limit`.
    pub fn shutdown_timeout(self, limit: Duration) {
        self.runtime.shutdown_timeout(limit);
    }

    /// Shuts the runtime down without waiting for blocking work.
    pub fn shutdown_background(self) {
        self.runtime.shutdown_background();
    }
}

impl Deref for Runtime {
    type Target = theirs::Runtime;

    fn deref(&self) -> &theirs::Runtime {
        &self.runtime
    }
}
