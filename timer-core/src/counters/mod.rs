//! The counters of a timer. On the common paths callers share no counter, except for the bound on
//! pending timeouts. All threads count rare events, such as refusals and panics.

mod counter;
mod expiry_time;
mod histogram;
mod in_flight;
mod lag;
mod late_runs;
mod lateness;
mod recent_max;
mod stats;

pub(crate) use counter::{Counter, Limit};
pub use histogram::LagSnapshot;
#[cfg(all(test, timer_loom))]
pub(crate) use in_flight::InFlight;
pub(crate) use lag::LagHistogram;
pub use late_runs::LateRuns;
pub use lateness::{LateCause, LateRun, Lateness};
pub(crate) use stats::TimerCounters;
pub use stats::TimerStats;
