//! The builder of timers.

use super::driver::Driver;
use super::manual::ManualDriver;
use super::timer::Timer;
use crate::config::{self, Config, DrivenBy, MissedTickBehavior, WheelKind};
use crate::engine::Engine;
use crate::error::BuildError;
use crate::sync::Arc;
use crate::worker::Dispatcher;
use std::any::Any;
use std::fmt;
use std::time::Duration;
use timer_executor::{ImmediateExecutor, TaskExecutor};

/// A builder of a [`Timer`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::{Timer, WheelKind};
///
/// let timer = Timer::builder()
///     .name("rpc")
///     .tick_duration(Duration::from_millis(10))
///     .wheel(WheelKind::Hashed { ticks_per_wheel: 1024 })
///     .max_pending_timeouts(1_000_000)
///     .build()?;
/// # Ok::<(), timer_core::BuildError>(())
/// ```
#[derive(Default)]
#[must_use = "a builder does nothing until it builds"]
pub struct TimerBuilder {
    pub(super) config: Config,
    /// `None` stands for [`ImmediateExecutor`]. The turn's thread runs the tasks.
    executor: Option<Box<dyn TaskExecutor>>,
}

impl TimerBuilder {
    /// The length of a tick that [`tick_duration`](Self::tick_duration) has not set, 1 ms. It is the
    /// longest time by which the wheel makes a timeout late.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::{Timer, TimerBuilder};
    ///
    /// let tick = TimerBuilder::DEFAULT_TICK / 20;
    /// let pacing = Timer::builder().tick_duration(tick).build()?;
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub const DEFAULT_TICK: Duration = config::DEFAULT_TICK;

    /// Sets the name of the timer in traces and metrics, and of its thread. Systems show the first
    /// 15 bytes of a thread's name. The default is "timer".
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::Timer;
    /// assert_eq!(Timer::builder().name("leases").build()?.name(), "leases");
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = name.into();
        self
    }

    /// Sets the length of a tick, 1 us to 365 days. The default is
    /// [`DEFAULT_TICK`](Self::DEFAULT_TICK). Timeouts that are due within one tick run in one turn
    /// at its end. A finer tick costs nothing while no timeout is due, and causes more wake-ups
    /// while many are due.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// Timer::builder().tick_duration(Duration::from_micros(50)).build()?;
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    #[doc(alias = "tickDuration")]
    #[doc(alias = "tickMs")]
    pub fn tick_duration(mut self, tick: Duration) -> Self {
        self.config.tick = tick;
        self
    }

    /// Sets the wheel. The default is [`WheelKind::Hierarchical`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, WheelKind};
    /// Timer::builder().wheel(WheelKind::Hashed { ticks_per_wheel: 512 }).build()?;
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    #[doc(alias = "ticksPerWheel")]
    #[doc(alias = "wheelSize")]
    pub fn wheel(mut self, wheel: WheelKind) -> Self {
        self.config.wheel = wheel;
        self
    }

    /// Sets the bound on pending timeouts, at least 1. While that many are pending, the timer
    /// refuses further ones. The bound is exact. It costs a counter that all threads share. By
    /// default there is no bound.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::Timer;
    /// Timer::builder().max_pending_timeouts(1_000_000).build()?;
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    #[doc(alias = "maxPendingTimeouts")]
    pub fn max_pending_timeouts(mut self, max: usize) -> Self {
        self.config.max_pending = Some(max);
        self
    }

    /// Sets the executor of due tasks. By default they run on the worker, one after the other
    /// ([`ImmediateExecutor`]).
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::Timer;
    /// use timer_executor::ThreadPoolExecutor;
    ///
    /// Timer::builder().executor(ThreadPoolExecutor::new(2)).build()?;
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    #[doc(alias = "taskExecutor")]
    pub fn executor(mut self, executor: impl TaskExecutor) -> Self {
        let any = &executor as &dyn Any;
        let immediate = any.is::<ImmediateExecutor>() || any.is::<Arc<ImmediateExecutor>>();
        self.executor = if immediate { None } else { Some(Box::new(executor)) };
        self
    }

    /// Sets the treatment of missed runs of a fixed rate. The default is
    /// [`MissedTickBehavior::Skip`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{MissedTickBehavior, Timer};
    /// Timer::builder().missed_runs(MissedTickBehavior::Burst).build()?;
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn missed_runs(mut self, missed_runs: MissedTickBehavior) -> Self {
        self.config.missed_runs = missed_runs;
        self
    }

    /// Sets whether a call may sleep while the timer is overloaded. The default is `true`.
    ///
    /// A thread that schedules at least 128 timeouts within a millisecond while the worker is more
    /// than 20 ms late sleeps for a tenth of the lateness, at most 8 ms, once in that millisecond.
    /// If the worker is more than 80 ms late, 32 timeouts are enough. Without this, threads that
    /// schedule faster than the worker can expire would let lateness and memory grow without limit.
    /// Threads that schedule fewer are not held up. Only calls that schedule a task sleep in this
    /// way, such as [`Timer::new_timeout`](crate::Timer::new_timeout), also in async code. No call
    /// is held up for longer than 10 ms, apart from the time for which the system runs other
    /// threads.
    ///
    /// If many threads meet at a locked shard, a call that schedules, cancels or resets a task may
    /// pause for about 0.1 ms, at most 8 times within 8 ms on each thread. The thread that holds
    /// the lock gets the CPU meanwhile. Calls inside a task do not pause. Polls, resets and drops
    /// of futures never sleep.
    ///
    /// Pass `false` for threads that must not sleep, such as those of an async runtime that
    /// schedule tasks at full speed. They yield their CPU instead, which bounds the lateness only
    /// if there are few threads per CPU, and [`max_pending_timeouts`](Self::max_pending_timeouts)
    /// bounds the memory. [The book](crate::book::futures#callbacks-from-async-code) lists other
    /// ways.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::Timer;
    /// Timer::builder().backpressure_sleep(false).max_pending_timeouts(1_000_000).build()?;
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn backpressure_sleep(mut self, sleep: bool) -> Self {
        self.config.may_sleep = sleep;
        self
    }

    /// Sets a function that is called once on the worker's thread, before the first turn. A further
    /// call replaces the function.
    ///
    /// The worker inherits niceness and CPU affinity from the thread that starts it, which is the
    /// first caller or the caller of [`Timer::start`]. The hook can set priority and affinity, or
    /// register the thread with a profiler. A panic of the hook is caught and counted in
    /// [`task_panics`](crate::TimerStats::task_panics). A timer with a driver has no worker and
    /// never calls the hook.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::builder()
    ///     .on_worker_start(|| println!("{:?} runs", std::thread::current().name()))
    ///     .build()?;
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    #[doc(alias = "on_thread_start")]
    #[doc(alias = "ThreadFactory")]
    pub fn on_worker_start(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.config.on_worker_start = Some(Arc::new(hook));
        self
    }

    /// Builds a timer with a worker thread.
    ///
    /// # Errors
    ///
    /// Returns a [`BuildError`] if a choice is out of range, which names the given value and the
    /// allowed ones, or if all shards of the process are in use.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::Timer;
    /// let timer = Timer::builder().build()?;
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn build(self) -> Result<Timer, BuildError> {
        Ok(Timer { engine: self.engine(DrivenBy::Worker)? })
    }

    /// Builds a timer without a thread, on virtual time, for tests and simulations. Time stands
    /// still until the driver moves it, and each task runs at its exact deadline, whatever the
    /// tick.
    ///
    /// # Errors
    ///
    /// The same as for [`build`](Self::build).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// timer.new_timeout(Duration::from_secs(86_400), |_| println!("tomorrow"))?;
    /// assert_eq!(driver.advance(Duration::from_secs(86_400)), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_manual(self) -> Result<(Timer, ManualDriver), BuildError> {
        let engine = self.engine(DrivenBy::ManualDriver)?;
        Ok((Timer { engine: engine.clone() }, ManualDriver::new(Dispatcher::new(engine))))
    }

    /// Builds a timer without a thread, on the real clock, for a program's event loop, which takes
    /// the turns.
    ///
    /// # Errors
    ///
    /// The same as for [`build`](Self::build).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_driven()?;
    /// timer.new_timeout(Duration::ZERO, |_| println!("from my own loop"))?;
    /// assert_eq!(driver.turn().expired, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_driven(self) -> Result<(Timer, Driver), BuildError> {
        let engine = self.engine(DrivenBy::Driver)?;
        Ok((Timer { engine: engine.clone() }, Driver::new(Dispatcher::new(engine))))
    }

    /// Builds a timer as [`build`](Self::build) does, from choices that are known to be in range.
    pub(crate) fn build_default(self) -> Timer {
        Timer { engine: Engine::new(self.config, self.executor, DrivenBy::Worker) }
    }

    fn engine(self, driven_by: DrivenBy) -> Result<Arc<Engine>, BuildError> {
        self.config.check()?;
        let engine = Engine::new(self.config, self.executor, driven_by);
        if engine.shards().is_empty() { Err(BuildError::TooManyTimers) } else { Ok(engine) }
    }
}

impl Timer {
    /// Creates a timer with a hierarchical wheel, ticks of [`TimerBuilder::DEFAULT_TICK`], tasks
    /// that run on the worker, no bound, and the name "timer".
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::Timer;
    /// assert_eq!(Timer::new().name(), "timer");
    /// ```
    #[allow(clippy::new_without_default, reason = "`Timer::default()` would hide that it makes a separate timer")]
    pub fn new() -> Timer {
        TimerBuilder::default().build_default()
    }

    /// Returns a builder, which configures a timer.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::builder().name("rpc").tick_duration(Duration::from_micros(100)).build()?;
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn builder() -> TimerBuilder {
        TimerBuilder::default()
    }
}

impl fmt::Debug for TimerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerBuilder")
            .field("name", &self.config.name)
            .field("tick_duration", &self.config.tick)
            .field("wheel", &self.config.wheel)
            .field("max_pending_timeouts", &self.config.max_pending)
            .field("missed_runs", &self.config.missed_runs)
            .finish_non_exhaustive()
    }
}
