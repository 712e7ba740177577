//! The end of a virtual time that runs its pending timeouts first.

use super::ManualDriver;
use crate::deadline::{END_OF_TIME, after};
use crate::engine::StopReport;
use std::time::Duration;

impl ManualDriver {
    /// Accepts no more timeouts, moves time from deadline to deadline until none is pending, and
    /// stops the timer. If timeouts are pending after `limit` of virtual time, returns them.
    /// Otherwise the same as [`Timer::drain`](crate::Timer::drain).
    ///
    /// The call does not wait for tasks in an executor. They count as in flight.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, driver) = Timer::builder().build_manual()?;
    /// for hours in [1, 2, 3] {
    ///     timer.new_timeout(Duration::from_secs(3600 * hours), |_| {})?;
    /// }
    /// let report = driver.drain(Duration::from_secs(2 * 3600));
    /// assert_eq!((report.unprocessed.len(), timer.stats().expired), (1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drain(mut self, limit: Duration) -> StopReport {
        let engine = self.dispatcher.engine.clone();
        let end = after(self.present(), limit).min(END_OF_TIME);
        let ended = engine.begin_drain();
        while engine.pending() > 0 && self.present() < end {
            let Some(next) = self.next() else { break };
            self.advance(Duration::from_nanos(next.min(end).saturating_sub(self.present())));
        }
        engine.end_drain(ended, Duration::ZERO)
    }
}
