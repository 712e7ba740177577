//! The types that a program holds, which are timers, builders, timeouts and drivers. Only the
//! builder names a wheel.

mod builder;
mod cancel;
mod driver;
#[cfg(feature = "__tests")]
mod knobs;
mod manual;
#[allow(clippy::disallowed_types, reason = "no other thread sees the timer that a thread has entered")]
mod process;
mod schedule;
mod schedule_task;
mod timeout;
mod timer;
mod timetable;

pub use builder::TimerBuilder;
pub use cancel::CancelOnDrop;
pub use driver::{Driver, Turn};
pub(crate) use manual::MAX_PARK;
pub use manual::ManualDriver;
pub use process::{EnterGuard, enter};
pub(crate) use process::{fallback, with_current};
pub use timer::{Timer, WeakTimer};

#[cfg(all(test, not(timer_loom)))]
mod tests;
