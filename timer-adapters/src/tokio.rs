//! Virtual time for programs that spawn tasks on tokio.
//!
//! Like `#[tokio::test(start_paused = true)]` for `tokio::time`, [`paused`] is for programs that
//! use [`timer_core::global`]. It runs a future on a current-thread runtime whose time is virtual.
//! When all tasks wait, time moves to the next deadline.
//!
//! The runtime uses tokio's own paused clock, and a manual timer that follows it to the nanosecond.
//! So time stands still as long as a socket is ready or a task of `spawn_blocking` runs,
//! `tokio::time::Instant` tells the same time as [`global::now`], and code that still uses
//! `tokio::time` takes part. Deadlines are reached at whole milliseconds, as in tokio.
//!
//! Enable this feature in `[dev-dependencies]` only. It enables `test-util` of tokio.

use ::tokio::runtime::Builder;
use ::tokio::task::yield_now;
use ::tokio::time;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Waker};
use std::rc::Rc;
use std::time::{Duration, Instant};
use timer_core::{ManualDriver, Timer, global};

/// Time does not move to deadlines beyond this distance.
const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The manual timer of a thread, which follows the clock of tokio's runtime.
struct Follower {
    timer: Timer,
    driver: RefCell<ManualDriver>,
    /// The deadline that the keeper's sleep waits for.
    armed: Cell<Option<Instant>>,
    /// Wakes the keeper.
    waker: RefCell<Waker>,
}

thread_local! {
    static FOLLOWER: RefCell<Option<Rc<Follower>>> = const { RefCell::new(None) };
}

/// Calls `call` with the follower of the thread, if there is one.
fn with_follower(call: impl FnOnce(&Follower)) {
    let follower = FOLLOWER.try_with(|follower| follower.borrow().clone());
    if let Ok(Some(follower)) = follower {
        call(&follower);
    }
}

impl Follower {
    /// Moves the manual timer to the present of tokio's clock and runs the timeouts that are due.
    fn follow(&self) {
        let now = time::Instant::now().into_std();
        // A timeout's task that calls this is already within an advance.
        if let Ok(mut driver) = self.driver.try_borrow_mut() {
            let behind = now.saturating_duration_since(driver.now());
            driver.advance(behind);
        }
    }

    /// Returns the deadline to which time moves when all tasks wait.
    fn next(&self) -> Option<Instant> {
        if self.timer.pending_timeouts() == 0 {
            return None;
        }
        let driver = self.driver.try_borrow().ok()?;
        let next = driver.next_expiry().filter(|next| *next < FAR)?;
        driver.now().checked_add(next)
    }

    /// Called when the runtime has nothing to do. Wakes the keeper if its sleep waits for another
    /// deadline.
    fn before_park(&self) {
        self.follow();
        if self.next() != self.armed.get() {
            self.waker.borrow().wake_by_ref();
        }
    }

    /// Polls the keeper, whose sleep makes tokio's clock stop at each deadline of the manual timer.
    fn poll_keeper(&self, mut sleep: Pin<&mut time::Sleep>, cx: &mut Context<'_>) {
        self.waker.borrow_mut().clone_from(cx.waker());
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

/// Restores the follower of the thread, which matters only if the future panics.
struct Restore(Option<Rc<Follower>>);

impl Drop for Restore {
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
    // The manual timer is older than tokio's clock, so it can be moved to the beginning of that.
    let (timer, driver) = Timer::builder().name("paused").build_manual().expect("a timer for the test");
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .on_thread_park(|| with_follower(Follower::before_park))
        .on_thread_unpark(|| with_follower(Follower::follow))
        .build()
        .expect("a runtime for the test");
    let _entered = global::enter(timer.clone());
    let follower = Rc::new(Follower {
        timer,
        driver: RefCell::new(driver),
        armed: Cell::new(None),
        waker: RefCell::new(Waker::noop().clone()),
    });
    let _restore = Restore(FOLLOWER.with(|former| former.replace(Some(follower.clone()))));
    runtime.block_on(async {
        follower.follow();
        let mut sleep = pin!(time::sleep(Duration::ZERO));
        let mut future = pin!(future.into_future());
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

/// Stops the clock, as `tokio::time::pause` does. Time moves to the next deadline when all tasks
/// wait.
///
/// # Panics
///
/// Panics outside of [`paused`], or if the clock is stopped already.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio::{pause, paused, resume};
///
/// paused(async {
///     resume();
///     pause();
/// });
/// ```
pub fn pause() {
    time::pause();
    with_follower(Follower::follow);
}

/// Lets the clock run, as `tokio::time::resume` does.
///
/// # Panics
///
/// Panics outside of [`paused`], or if the clock is running.
///
/// # Examples
///
/// ```
/// use std::time::Instant;
/// use timer_adapters::tokio::{paused, resume};
/// use timer_core::global::{self, Duration};
///
/// paused(async {
///     resume();
///     let begin = Instant::now();
///     global::sleep(Duration::from_millis(5)).await;
///     assert!(begin.elapsed() >= Duration::from_millis(4));
/// });
/// ```
pub fn resume() {
    with_follower(Follower::follow);
    time::resume();
}

/// Moves the stopped clock on by `duration` and lets the tasks run that are due, as
/// `tokio::time::advance` does.
///
/// # Panics
///
/// Panics outside of [`paused`], or if the clock is running.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio::{advance, paused};
/// use timer_core::global::{self, Duration};
///
/// paused(async {
///     let task = tokio::spawn(global::sleep(Duration::from_secs(5)));
///     advance(Duration::from_secs(4)).await;
///     assert!(!task.is_finished());
///     advance(Duration::from_secs(1)).await;
///     assert!(task.is_finished());
/// });
/// ```
pub async fn advance(duration: Duration) {
    time::advance(duration).await;
    with_follower(Follower::follow);
    yield_now().await;
}
