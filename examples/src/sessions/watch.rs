//! What watches a replay: a progress bar, an exporter of metrics, the counter of pending timeouts over time.

use timer_core::Timer;

/// Watches a replay, on the thread that replays. A closure sees the seconds alone.
pub trait Watch {
    /// The timer is there, and nothing has been asked of it.
    fn built(&mut self, timer: &Timer) {
        let _ = timer;
    }

    /// The replay has come to this second of the log. Told often, and never an earlier second than before.
    fn reached(&mut self, second: u64);
}

impl<F: FnMut(u64)> Watch for F {
    fn reached(&mut self, second: u64) {
        self(second);
    }
}
