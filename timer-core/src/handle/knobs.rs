//! Options that exist for the tests of this crate. They are no part of the API, and only the
//! feature `__tests` compiles them.

use super::builder::TimerBuilder;
use super::manual::ManualDriver;
use super::timer::Timer;
use crate::sync;

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

impl ManualDriver {
    /// Returns the time at which the timer was built, in nanoseconds of the system's monotonic
    /// clock. Tests compute from it how distant deadlines are rounded.
    #[doc(hidden)]
    pub fn origin(&self) -> u64 {
        self.origin
    }
}
