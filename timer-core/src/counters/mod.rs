//! What a timer counts. Absent: any count that all callers share, but for the bound, if there is one.

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
pub(crate) use stats::Counters;
pub use stats::TimerStats;
