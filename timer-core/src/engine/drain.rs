//! The end of a timer that runs its pending timeouts first.
//!
//! 1. New timeouts are refused, because `has_started` sends their callers to `spawn_worker`.
//!    Futures find the hints of the shards closed.
//! 2. All entries are taken out of the shards. Periodic ones end, and the others are linked again.
//!    A periodic task that is running ends after its run ([`run`](mod@super::run)).
//! 3. The caller waits until no timeout is pending, and then stops the timer.

use super::Engine;
use super::unprocessed::{StopReport, Unprocessed};
use crate::entry::state::Runs;
use crate::error::StopError;
use crate::sync::Parker;
use std::time::{Duration, Instant};

/// The time between two looks at the number of pending timeouts.
const INTERVAL: Duration = Duration::from_millis(1);

impl Engine {
    /// Implements [`Timer::drain`](crate::Timer::drain).
    pub(crate) fn drain(&self, limit: Duration) -> Result<StopReport, StopError> {
        self.may_wait()?;
        let until = Instant::now().checked_add(limit);
        let ended = self.begin_drain();
        let parker = Parker::default();
        let is_over = |now| until.is_some_and(|until| until <= now);
        while self.pending() > 0 && !is_over(Instant::now()) {
            parker.park(Some(INTERVAL));
        }
        let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        Ok(self.end_drain(ended, left))
    }

    /// Performs steps 1 and 2, and returns the periodic timeouts.
    pub(crate) fn begin_drain(&self) -> Vec<Unprocessed> {
        self.refuse_further();
        let mut ended = Vec::new();
        for timeout in self.shards().iter().flat_map(|shard| shard.take_all()) {
            let deadline = timeout.state().deadline();
            let tick = self.context.resolution.tick_from(deadline, self.context.now());
            // If another thread has stopped the timer, it has not found the entry.
            if timeout.runs() == Runs::Again || timeout.link(tick).is_err() {
                ended.extend(self.end_one(timeout));
            }
        }
        ended
    }

    /// Stops the timer, waits for tasks in the executor for at most `limit`, and reports these and
    /// other timeouts that have not run.
    pub(crate) fn end_drain(&self, mut ended: Vec<Unprocessed>, limit: Duration) -> StopReport {
        let mut report = self.stop_by_limit(limit);
        ended.append(&mut report.unprocessed);
        StopReport { unprocessed: ended, ..report }
    }
}
