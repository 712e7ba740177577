//! Options that exist for the tests of this crate. They are no part of the API, and only the
//! feature `__tests` compiles them.

use super::builder::TimerBuilder;
use super::manual::ManualDriver;
use super::timer::Timer;
use crate::sync;
#[cfg(not(timer_loom))]
use crate::sync::holds;

impl TimerBuilder {
    /// Sets the number of shards, rounded up to a power of two.
    #[doc(hidden)]
    pub fn shards(mut self, shards: usize) -> Self {
        self.config.shards = Some(shards);
        self
    }
}

impl Timer {
    /// Spreads the callers of all timers by thread, as on systems that do not report the CPU.
    #[doc(hidden)]
    pub fn spread_by_thread(is_on: bool) {
        sync::spread_by_thread(is_on);
    }
}

#[cfg(not(timer_loom))]
impl Timer {
    /// Records from now on how long threads hold the locks of shards, for all timers of the
    /// process. `clock` returns the CPU time of the calling thread.
    #[doc(hidden)]
    pub fn record_holds(clock: fn() -> u64) {
        holds::record(clock);
    }

    /// Returns the longest time by that clock for which a thread has held a lock since the last
    /// call.
    #[doc(hidden)]
    #[must_use]
    pub fn longest_hold() -> u64 {
        holds::take_longest()
    }
}

impl ManualDriver {
    /// Returns the time at which the timer was built, in nanoseconds of the system's monotonic
    /// clock. Tests compute from it how distant deadlines are rounded.
    #[doc(hidden)]
    pub fn origin(&self) -> u64 {
        self.origin
    }
}
