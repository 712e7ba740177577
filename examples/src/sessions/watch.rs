//! The trait of watchers of a replay, such as a progress bar or an exporter of metrics.

use timer_core::Timer;

/// A watcher of a replay. It is called on the thread that replays. A closure gets only the seconds.
pub trait Watch {
    /// Called when the timer has been built, before its first use.
    fn built(&mut self, timer: &Timer) {
        let _ = timer;
    }

    /// Called when the replay has reached this second of the log. The seconds never decrease.
    fn reached(&mut self, second: u64);
}

impl<F: FnMut(u64)> Watch for F {
    fn reached(&mut self, second: u64) {
        self(second);
    }
}
