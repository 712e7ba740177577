//! Every choice that a timer can be built with, checked.

use crate::clock::Clock;
use crate::context::Context;
use crate::driver::Driver;
use crate::engine::{Driven, Engine};
use crate::entry_wheel::WheelKind;
use crate::error::BuildError;
use crate::job::MissedRuns;
use crate::manual::ManualDriver;
use crate::sync::Arc;
use crate::tally::Bound;
use crate::time::Resolution;
use crate::timer::Timer;
use crate::turn::Turner;
use std::any::Any;
use std::fmt;
use std::time::Duration;
use timer_executor::{ImmediateExecutor, TaskExecutor};

/// Builds a [`Timer`].
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
#[must_use = "a builder does nothing until it builds"]
pub struct TimerBuilder {
    name: String,
    tick: Duration,
    wheel: WheelKind,
    max_pending: Option<usize>,
    missed_runs: MissedRuns,
    /// `None`: whoever takes the turns runs the tasks, which is what [`ImmediateExecutor`] means.
    executor: Option<Box<dyn TaskExecutor>>,
}

impl Default for TimerBuilder {
    fn default() -> Self {
        Self {
            name: "timer".to_owned(),
            tick: Duration::from_millis(1),
            wheel: WheelKind::default(),
            max_pending: None,
            missed_runs: MissedRuns::default(),
            executor: None,
        }
    }
}

impl TimerBuilder {
    /// What it is called in traces, in metrics, and as a thread (of which systems show the first 15 bytes). Default: "timer".
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::Timer;
    /// assert_eq!(Timer::builder().name("leases").build()?.name(), "leases");
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How finely the worker counts: what is due within one tick runs in one turn, at the tick's end. 1 us to 365 days;
    /// default 1 ms. A finer tick costs nothing while nothing is due, and more wake-ups when much is.
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
        self.tick = tick;
        self
    }

    /// Which wheel. Default: [`WheelKind::Hierarchical`].
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
        self.wheel = wheel;
        self
    }

    /// Refuses more than so many pending timeouts at once; at least 1. Exact, at the price of a counter that all threads
    /// share. Default: no bound.
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
        self.max_pending = Some(max);
        self
    }

    /// Where due tasks run. Default: on the worker, one after the other ([`ImmediateExecutor`]).
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
        let immediate = (&executor as &dyn Any).is::<ImmediateExecutor>();
        self.executor = if immediate { None } else { Some(Box::new(executor)) };
        self
    }

    /// What a fixed rate does about missed runs. Default: [`MissedRuns::Skip`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{MissedRuns, Timer};
    /// Timer::builder().missed_runs(MissedRuns::Burst).build()?;
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn missed_runs(mut self, missed_runs: MissedRuns) -> Self {
        self.missed_runs = missed_runs;
        self
    }

    /// A timer with a worker thread.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for a choice that is out of range; it says what was given and what is allowed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::Timer;
    /// let timer = Timer::builder().build()?;
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn build(self) -> Result<Timer, BuildError> {
        self.check()?;
        Ok(self.build_default())
    }

    /// A timer without a thread, on virtual time, for tests and simulations: time stands still until the driver moves it, and
    /// each task runs at its very deadline, whatever the tick.
    ///
    /// # Errors
    ///
    /// As for [`build`](Self::build).
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
        self.check()?;
        let engine = Arc::new(self.engine(Clock::by_hand(), Some(Resolution::Exact), Driven::ByHand, 1));
        Ok((Timer::from_engine(engine.clone()), ManualDriver::new(Turner::new(engine))))
    }

    /// A timer without a thread, on the real clock, for somebody's own event loop: the loop takes the turns.
    ///
    /// # Errors
    ///
    /// As for [`build`](Self::build).
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
        self.check()?;
        let engine = Arc::new(self.engine(Clock::real(), None, Driven::ByHand, Engine::default_shards()));
        Ok((Timer::from_engine(engine.clone()), Driver::new(Turner::new(engine))))
    }

    /// [`build`](Self::build) of choices that are known to be in range.
    pub(crate) fn build_default(self) -> Timer {
        Timer::from_engine(Arc::new(self.engine(Clock::real(), None, Driven::ByWorker, Engine::default_shards())))
    }

    fn engine(self, clock: Clock, resolution: Option<Resolution>, driven: Driven, shards: usize) -> Engine {
        let tick = u64::try_from(self.tick.as_nanos()).unwrap_or(u64::MAX);
        let resolution = resolution.unwrap_or(Resolution::Ticks(tick));
        let bound = self.max_pending.map(Bound::new);
        let context = Context::new(self.name, clock, resolution, self.missed_runs, bound);
        Engine::new(context, self.wheel, self.tick, self.executor, driven, shards)
    }

    fn check(&self) -> Result<(), BuildError> {
        if self.tick < BuildError::MIN_TICK || self.tick > BuildError::MAX_TICK {
            return Err(BuildError::TickDuration { given: self.tick });
        }
        if let WheelKind::Hashed { ticks_per_wheel: given } = self.wheel
            && (given == 0 || given > BuildError::MAX_SLOTS)
        {
            return Err(BuildError::TicksPerWheel { given });
        }
        if self.max_pending == Some(0) {
            return Err(BuildError::MaxPendingTimeouts { given: 0 });
        }
        if self.name.contains('\0') {
            return Err(BuildError::Name { given: self.name.clone() });
        }
        Ok(())
    }
}

impl fmt::Debug for TimerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerBuilder")
            .field("name", &self.name)
            .field("tick_duration", &self.tick)
            .field("wheel", &self.wheel)
            .field("max_pending_timeouts", &self.max_pending)
            .field("missed_runs", &self.missed_runs)
            .finish_non_exhaustive()
    }
}
