//! Names for closures.

use super::{PeriodicTask, Timeout, TimerTask};
use std::fmt;
use std::marker::PhantomData;

/// A closure with a name, which the macro [`named!`](crate::named) makes.
///
/// The name is a part of the type, so it takes neither memory nor time.
///
/// # Examples
///
/// A refused task gives its closure back:
///
/// ```
/// use std::time::Duration;
/// use timer_core::{Timer, named};
///
/// let timer = Timer::new();
/// timer.stop()?;
/// let refused = timer.new_timeout_task(Duration::from_secs(1), named!("ping", |_| println!("ping")));
/// let _ping = refused.unwrap_err().into_inner().into_inner();
/// # Ok::<(), timer_core::StopError>(())
/// ```
pub struct Named<N, F> {
    task: F,
    name: PhantomData<fn() -> N>,
}

/// The type of a name.
#[doc(hidden)]
pub trait TaskName: 'static {
    const NAME: &'static str;
}

impl<N: TaskName, F> Named<N, F> {
    /// Wraps a closure. This has no bound on `F`, because the compiler would infer the kind of the
    /// closure from it.
    #[doc(hidden)]
    pub fn of(task: F) -> Self {
        Self { task, name: PhantomData }
    }
}

impl<N: TaskName, F: FnOnce(&Timeout) + Send + 'static> Named<N, F> {
    #[doc(hidden)]
    pub fn new(task: F) -> Self {
        Self::of(task)
    }

    /// Returns the closure.
    pub fn into_inner(self) -> F {
        self.task
    }
}

impl<N: TaskName, F: FnOnce(&Timeout) + Send + 'static> TimerTask for Named<N, F> {
    #[inline]
    fn run(self, timeout: &Timeout) {
        (self.task)(timeout);
    }

    fn name() -> &'static str {
        N::NAME
    }
}

impl<N: TaskName, F: FnMut(&Timeout) + Send + 'static> PeriodicTask for Named<N, F> {
    #[inline]
    fn run(&mut self, timeout: &Timeout) {
        (self.task)(timeout);
    }

    fn name() -> &'static str {
        N::NAME
    }
}

impl<N: TaskName, F> fmt::Debug for Named<N, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Named").field(&N::NAME).finish()
    }
}

/// Gives a closure a name for [`Timer::worst`](crate::Timer::worst) and for warnings, and returns a
/// [`TimerTask`] and [`PeriodicTask`] for these methods of [`Timer`](crate::Timer):
///
/// | closure alone | with a name |
/// |---|---|
/// | `new_timeout` | [`new_timeout_task`](crate::Timer::new_timeout_task) |
/// | `new_timeout_at` | [`new_timeout_task_at`](crate::Timer::new_timeout_task_at) |
/// | `new_timeout_with_slack` | [`new_timeout_task_with_slack`](crate::Timer::new_timeout_task_with_slack) |
/// | `new_timeouts` | [`new_timeout_tasks`](crate::Timer::new_timeout_tasks) |
/// | `schedule_at_fixed_rate` | [`schedule_task_at_fixed_rate`](crate::Timer::schedule_task_at_fixed_rate) |
/// | `schedule_with_fixed_delay` | [`schedule_task_with_fixed_delay`](crate::Timer::schedule_task_with_fixed_delay) |
///
/// Without it, the name of a closure is that of its type, such as `app::main::{{closure}}`. The
/// name is a constant text, because it belongs to the type of the task. Scheduling and running such
/// a task costs the same as for the closure alone. The timer wakes a future and does not run it, so
/// a future has no name.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::{Timer, named};
///
/// let timer = Timer::new();
/// let connection = 17;
/// let idle = named!("close idle connection", move |_| println!("closing {connection}"));
/// timer.new_timeout_task(Duration::from_secs(30), idle)?;
///
/// let second = Duration::from_secs(1);
/// let mut beats = 0;
/// let heartbeat = named!("heartbeat", move |_| {
///     beats += 1;
///     println!("beat {beats}");
/// });
/// timer.schedule_task_at_fixed_rate(second, second, heartbeat)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "label")]
#[doc(alias = "task_name")]
#[doc(alias = "with_name")]
#[macro_export]
macro_rules! named {
    (@$new:ident, $name:expr, $task:expr) => {{
        // The task may use a type of the caller, so the name must be one that no caller has.
        struct __TimerTaskName;
        impl $crate::__private::TaskName for __TimerTaskName {
            const NAME: &'static str = $name;
        }
        $crate::Named::<__TimerTaskName, _>::$new($task)
    }};
    // The type of the argument takes the place of a bound.
    ($name:expr, |$timeout:tt $(: $type:ty)?| $body:expr $(,)?) => {
        $crate::named!(@of, $name, |$timeout: &$crate::Timeout| $body)
    };
    ($name:expr, move |$timeout:tt $(: $type:ty)?| $body:expr $(,)?) => {
        $crate::named!(@of, $name, move |$timeout: &$crate::Timeout| $body)
    };
    ($name:expr, $task:expr $(,)?) => {
        $crate::named!(@new, $name, $task)
    };
}
