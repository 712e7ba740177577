//! The counters of a timer. No counter is shared by all callers, except for the bound on pending
//! timeouts.

mod counter;
mod in_flight;
mod lag;
mod recent_max;
mod stats;

pub(crate) use counter::{Counter, Limit};
#[cfg(all(test, timer_loom))]
pub(crate) use in_flight::InFlight;
pub(crate) use lag::LagHistogram;
pub use lag::LagSnapshot;
pub(crate) use stats::TimerCounters;
pub use stats::TimerStats;
