//! The driver of a timer on virtual time, for tests, simulations and replays.

mod drain;

use crate::clock;
use crate::deadline::{END_OF_TIME, IMMEDIATE, NO_TICK, Nanos, after};
use crate::engine::Unprocessed;
use crate::sync::{Arc, AtomicBool, Ordering, Parker};
use crate::worker::Dispatcher;
use std::fmt;
use std::pin::pin;
use std::task::{self, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// The owner of the time of a timer built by [`build_manual`](crate::TimerBuilder::build_manual).
///
/// Time hops from one deadline to the next, so the cost of five years depends only on the number of
/// timeouts that are due in them. With the default executor, tasks run on the thread that advances
/// the time, in the order of their deadlines, and each repetition gives the same order. Timeouts
/// that are due already when they are scheduled or moved run first. Dropping the driver stops the
/// timer.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let (timer, mut driver) = Timer::builder().build_manual()?;
/// let timeout = timer.new_timeout(Duration::from_secs(3600), |_| println!("an hour is over"))?;
/// assert_eq!(driver.next_deadline(), Some(timeout.deadline()));
/// assert_eq!(driver.advance(Duration::from_secs(7200)), 1);
/// assert_eq!(driver.elapsed(), Duration::from_secs(7200));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "MockTimer")]
#[doc(alias = "MockClock")]
pub struct ManualDriver {
    dispatcher: Dispatcher,
    /// The time at which the timer was built.
    pub(super) origin: Nanos,
}

impl ManualDriver {
    pub(crate) fn new(dispatcher: Dispatcher) -> Self {
        let origin = dispatcher.engine.context.now();
        Self { dispatcher, origin }
    }

    /// Moves time forward by `by`, and runs each timeout that becomes due at its deadline. Returns
    /// the number of timeouts that ran or were handed over. A periodic timeout counts once per run.
    ///
    /// Timeouts that tasks schedule on the way take part. `Duration::ZERO` runs the timeouts that
    /// are due already. If a task always schedules another one without a delay, the call does not
    /// return unless time [runs](Self::resume). Time ends 584 years after the system's start and
    /// then stands still.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// timer.new_timeout(Duration::from_millis(10), |_| {})?;
    /// assert_eq!(driver.advance(Duration::from_millis(9)), 0);
    /// assert_eq!(driver.advance(Duration::from_millis(1)), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "advanceClock")]
    #[doc(alias = "sleep")]
    pub fn advance(&mut self, by: Duration) -> usize {
        self.advance_with_lag(by, Duration::ZERO)
    }

    /// Moves time by `by`, as [`advance`](Self::advance) does, but runs only timeouts whose deadline
    /// is at least `lag` before the new time, or was due when it was set. A future with a later
    /// deadline stays pending until another call. A time that [runs](Self::resume) has no lag.
    ///
    /// Use this method for a timer that follows a simulated clock whose own timers have ticks. If
    /// `lag` is the time since the last tick, both reach a deadline at the same tick.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// timer.new_timeout(Duration::from_micros(9_700), |_| {})?;
    /// // The last tick of the other clock was at 9 ms, the next one is at 10 ms.
    /// assert_eq!(driver.advance_with_lag(Duration::from_micros(9_800), Duration::from_micros(800)), 0);
    /// assert_eq!(driver.advance_with_lag(Duration::from_micros(300), Duration::from_micros(100)), 1);
    /// assert_eq!(driver.elapsed(), Duration::from_micros(10_100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance_with_lag(&mut self, by: Duration, lag: Duration) -> usize {
        let engine = self.dispatcher.engine.clone();
        let target = after(self.present(), by).min(END_OF_TIME);
        let lag = if engine.context.present.runs_with_system() { 0 } else { after(0, lag) };
        let due_by = target.saturating_sub(lag);
        let mut expired = 0;
        let mut has_passed_target = false;
        loop {
            let next = engine.next();
            let mut at = self.present().saturating_sub(lag);
            if !engine.context.backlog.has_abandoned() {
                if next > engine.context.resolution.tick_at(due_by) || (next == IMMEDIATE && has_passed_target) {
                    break;
                }
                if next != IMMEDIATE {
                    // A time that runs may have passed the deadline.
                    at = engine.context.resolution.start_of(next).min(target);
                    engine.context.present.set(at);
                }
            }
            // While a time runs, tasks may schedule timeouts that are due already again and again.
            has_passed_target |= next == IMMEDIATE && at > target;
            expired += self.dispatcher.turn_to_end(at);
        }
        engine.context.present.set_lag(lag);
        engine.context.present.set(target);
        expired
    }

    /// Moves time to the next deadline, runs the timeouts that are due, and returns the new
    /// present.
    ///
    /// Timeouts that are due already run without moving time. Deadlines of cancelled or moved
    /// timeouts are passed over. Returns `None` if no timeout is pending, or if no pending timeout
    /// ever becomes due.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let begin = driver.now();
    /// timer.new_timeout(Duration::from_secs(60), |_| println!("a minute is over"))?;
    /// timer.new_timeout(Duration::from_secs(3600), |_| println!("an hour is over"))?;
    /// assert_eq!(driver.advance_to_next(), Some(begin + Duration::from_secs(60)));
    /// assert_eq!(driver.advance_to_next(), Some(begin + Duration::from_secs(3600)));
    /// assert_eq!(driver.advance_to_next(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "runToNextTimer")]
    pub fn advance_to_next(&mut self) -> Option<Instant> {
        while self.dispatcher.engine.pending() > 0 {
            let by = self.next_deadline()?.saturating_duration_since(self.now());
            if self.advance(by) > 0 {
                return Some(self.now());
            }
        }
        None
    }

    /// Runs `future` to its end on this thread and returns its output. Whenever the future waits,
    /// time moves to the next deadline.
    ///
    /// Unless time [runs](Self::resume), it stands still while the future is polled, and from each
    /// wake-up until the next poll. If no timeout is pending, the call waits for another thread to
    /// wake the future or to schedule a timeout, and looks for a new timeout every 10 ms of real
    /// time. Code that uses [`time`](crate::time) takes part if the thread has
    /// [entered](crate::time::enter) the timer.
    ///
    /// # Panics
    ///
    /// Panics only if the future panics.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let answer = driver.block_on(async {
    ///     timer.sleep(Duration::from_secs(365 * 86_400)).await;
    ///     42
    /// });
    /// assert_eq!(answer, 42);
    /// assert_eq!(driver.elapsed(), Duration::from_secs(365 * 86_400));
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn block_on<F: IntoFuture>(&mut self, future: F) -> F::Output {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(bell.clone());
        let mut future = pin!(future.into_future());
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut task::Context::from_waker(&waker)) {
                return output;
            }
            // ORDERING: Acquire pairs with the Release in `wake`, so that the poll sees the writes
            // that came before the wake-up.
            while !bell.is_rung.swap(false, Ordering::Acquire) {
                if self.advance_to_next().is_none() {
                    bell.parker.park(Some(MAX_PARK));
                }
            }
        }
    }

    /// Returns the next deadline, or an earlier instant if the timeout with the earliest deadline
    /// was cancelled or moved later.
    ///
    /// If a timeout is due already, or if an executor has dropped a task that now has to run here,
    /// the instant is not after [`now`](Self::now). Returns `None` if no timeout waits, or only
    /// those that never become due, such as one after `Duration::MAX`. A periodic task in the
    /// middle of a run on an executor is pending but does not wait.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// timer.new_timeout(Duration::from_millis(10), |_| {})?;
    /// while let Some(next) = driver.next_deadline() {
    ///     driver.advance(next.saturating_duration_since(driver.now()));
    /// }
    /// assert_eq!(driver.elapsed(), Duration::from_millis(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "next_expiry")]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.next().filter(|next| *next <= END_OF_TIME).map(clock::instant)
    }

    /// Returns the time of the next deadline, or an earlier one. Arms the alarm for it.
    fn next(&self) -> Option<Nanos> {
        let engine = &self.dispatcher.engine;
        let context = &engine.context;
        let next = loop {
            context.alarm.arm();
            if context.backlog.has_abandoned() {
                return Some(self.present());
            }
            let next = engine.shards().iter().filter_map(|shard| shard.earliest()).min();
            if context.alarm.set(next.unwrap_or(NO_TICK)) {
                break next?;
            }
        };
        Some(context.resolution.start_of(next))
    }

    /// Sets the function that is called when a timeout is scheduled or moved to a deadline before
    /// the one that the last [`next_deadline`](Self::next_deadline) has returned.
    ///
    /// A loop that moves the time needs it if it sleeps while other threads use the timer. The
    /// function runs on the thread that schedules or moves the timeout, which holds no lock of the
    /// timer. That may be the thread of the driver, within `advance` or `next_deadline`, so the
    /// function must not lock the driver. It is seldom called more than once after each
    /// `next_deadline`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let looping = std::thread::current();
    /// driver.on_wake(move || looping.unpark());
    /// assert_eq!(driver.next_deadline(), None);
    /// timer.new_timeout(Duration::from_secs(60), |_| {})?;
    /// std::thread::park(); // returns at once
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "set_waker")]
    pub fn on_wake(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        self.dispatcher.engine.context.alarm.set_wake_hook(Some(Arc::new(wake)));
    }

    /// Lets time run with the system's clock from now on, until [`pause`](Self::pause). Does
    /// nothing if time runs already.
    ///
    /// Until then, delays count from the time of the call. Timeouts run only within calls of
    /// [`advance`](Self::advance), so a loop calls it with `Duration::ZERO` after each
    /// [`next_deadline`](Self::next_deadline). A call that comes late runs the timeouts in the order of
    /// their deadlines, unless some were due already when they were scheduled. A longer `advance`,
    /// [`advance_to_next`](Self::advance_to_next) and [`block_on`](Self::block_on) still move time
    /// forward. A time that is more than 292 years ahead of the system's clock stands still.
    ///
    /// The runtime of `timer_adapters::tokio` uses this while its clock is not paused.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// driver.resume();
    /// let begin = Instant::now();
    /// timer.new_timeout(Duration::from_millis(2), |_| {})?;
    /// while driver.advance(Duration::ZERO) == 0 {}
    /// assert!(begin.elapsed() >= Duration::from_millis(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resume(&mut self) {
        self.dispatcher.engine.context.present.run();
    }

    /// Lets time stand still again after [`resume`](Self::resume). Does nothing if it stands still.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// driver.resume();
    /// driver.pause();
    /// assert_eq!(timer.now(), timer.now());
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn pause(&mut self) {
        self.dispatcher.engine.context.present.stop();
    }

    /// Returns the virtual time that has passed since the timer was built.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (_timer, mut driver) = Timer::builder().build_manual()?;
    /// driver.advance(Duration::from_secs(5 * 365 * 86_400));
    /// assert_eq!(driver.elapsed(), Duration::from_secs(5 * 365 * 86_400));
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.present().saturating_sub(self.origin))
    }

    /// Returns the current time by the timer's clock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, driver) = Timer::builder().build_manual()?;
    /// let timeout = timer.new_timeout(Duration::from_millis(10), |_| {})?;
    /// assert_eq!(timeout.deadline() - driver.now(), Duration::from_millis(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn now(&self) -> Instant {
        clock::instant(self.present())
    }

    fn present(&self) -> Nanos {
        self.dispatcher.engine.context.now()
    }

    /// Stops the timer and returns the timeouts that have not run. The call takes O(pending) time,
    /// however distant the deadlines are.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, driver) = Timer::builder().build_manual()?;
    /// timer.new_timeout(Duration::MAX, |_| {})?;
    /// assert_eq!(driver.stop().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop(self) -> Vec<Unprocessed> {
        self.dispatcher.engine.stop()
    }
}

/// The longest real time for which a thread parks on virtual time before it checks whether other
/// threads have scheduled timeouts or moved the time.
pub(crate) const MAX_PARK: Duration = Duration::from_millis(10);

/// The waker of [`ManualDriver::block_on`].
#[derive(Default)]
struct Bell {
    is_rung: AtomicBool,
    parker: Parker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // ORDERING: Release pairs with the Acquire in `block_on`.
        self.is_rung.store(true, Ordering::Release);
        self.parker.unpark();
    }
}

impl Drop for ManualDriver {
    fn drop(&mut self) {
        self.dispatcher.engine.context.alarm.set_wake_hook(None);
        self.dispatcher.engine.abandon();
    }
}

impl fmt::Debug for ManualDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualDriver").field("elapsed", &self.elapsed()).finish_non_exhaustive()
    }
}
