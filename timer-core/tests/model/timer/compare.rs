//! The comparison of all visible results of the timer with the model.

use super::executors::Mode;
use super::model::LOOKS;
use super::slot::{Counts, END_OF_TIME, State};
use super::world::World;
use std::time::Duration;
use timer_core::{ManualDriver, TimerStats};

/// A number of waiting timeouts below which a removal leaves no lower bound behind.
const FEW_TIMEOUTS: usize = 4;

impl World {
    /// Compares everything at any time, also within a task. Reading the statistics costs as much as
    /// many operations, and a wrong count stays wrong. Therefore only the first tasks of an
    /// operation read them, and `compare_at_rest` does so after it.
    pub(crate) fn compare(&self) {
        let look = self.model().look();
        if look {
            self.compare_counts(&self.timer.stats(), false);
        }
        self.compare_handles();
    }

    fn compare_counts(&self, stats: &TimerStats, at_rest: bool) {
        let mut model = self.model();
        model.count_panics();
        if model.failure.is_some() {
            return;
        }
        let seen = Counts {
            scheduled: stats.scheduled,
            expired: stats.expired,
            cancelled: stats.cancelled,
            rejected: stats.rejected,
            runs: stats.runs,
            panics: stats.task_panics,
            // Runs are counted as they happen, and losses of the executor later.
            executor_rejections: model.counts.executor_rejections,
            lag: u64::try_from(stats.timeout_lag.sum().as_nanos()).unwrap_or(u64::MAX),
            lags: stats.timeout_lag.count(),
            start_lag: u64::try_from(stats.start_lag.sum().as_nanos()).unwrap_or(u64::MAX),
            starts: stats.start_lag.count(),
        };
        let mut expected = model.counts.clone();
        if !at_rest && self.mode == Mode::Immediate {
            // The lag counts from the reading after the batch.
            expected.lag = seen.lag;
            expected.lags = seen.lags;
            expected.start_lag = seen.start_lag;
            expected.starts = seen.starts;
        }
        assert_eq!(seen, expected);
        if at_rest {
            let handed = model.slots.iter().filter(|slot| slot.state == State::Handed).count() as u64;
            assert_eq!((stats.queued, stats.running, stats.in_flight), (handed, 0, handed));
        }
        assert_eq!(stats.max_pending, model.bound);
        assert_eq!(stats.pending, model.pending());
        assert_eq!(stats.scheduled, stats.pending + stats.expired + stats.cancelled);
    }

    fn compare_handles(&self) {
        let mut model = self.model();
        model.count_panics();
        if model.failure.is_some() {
            return;
        }
        assert_eq!(self.timer.pending_timeouts() as u64, model.pending());
        for (id, slot) in model.slots.iter().enumerate() {
            let Some(handle) = &slot.handle else { continue };
            let seen = (handle.is_expired(), handle.is_cancelled());
            let expected = match slot.state {
                State::Waiting | State::Handed | State::Rejected => (false, false),
                State::InRun => (!slot.is_periodic(), false),
                State::Expired => (true, false),
                State::Cancelled | State::HandedBack => (false, true),
            };
            assert_eq!(seen, expected, "{id} (expired, cancelled), which is {:?}", slot.state);
            assert_eq!(self.nanos(handle.deadline()), slot.deadline, "deadline of {id}, which is {:?}", slot.state);
        }
    }

    /// Compares everything between two outer operations.
    pub(crate) fn compare_at_rest(&self) {
        self.report();
        let stats = self.timer.stats();
        self.compare_counts(&stats, true);
        self.compare_handles();
        self.report();
        self.compare_timetable();
        let mut model = self.model();
        model.looks = LOOKS;
        assert_eq!(stats.executor_rejections, model.counts.executor_rejections);
        // A turn needs a due timeout. Each link is read once, and empty ticks cost nothing.
        assert!(stats.turns <= model.links + model.ever_lost, "{} turns for {} links", stats.turns, model.links);
        for (id, slot) in model.slots.iter().enumerate() {
            let kept = matches!(slot.state, State::Waiting | State::Handed | State::HandedBack);
            assert_eq!(slot.freed, !kept, "captures of {id}, which is {:?}", slot.state);
        }
    }

    fn compare_timetable(&self) {
        let timetable = self.timer.timetable();
        let model = self.model();
        let due = |within: u128| model.waiting().filter(|id| model.slots[*id].deadline <= model.now + within).count();
        for within in [0, 1, 7, 60, 600, 3_600, 7 * 3_600, 86_400].map(Duration::from_secs) {
            assert_eq!(timetable.due_within(within), due(within.as_nanos()) as u64, "within {within:?}");
        }
        assert_eq!(timetable.waiting(), model.waiting().count() as u64);
    }

    /// Compares the driver's next deadline.
    pub(crate) fn compare_driver(&self, driver: &ManualDriver) {
        let model = self.model();
        let now = model.now;
        assert_eq!(driver.elapsed().as_nanos(), now - self.began);
        assert_eq!(self.timer.now(), driver.now());
        assert_eq!(self.nanos(driver.now()), now);
        let next = driver.next_deadline().map(|next| self.nanos(next.max(driver.now())));
        if model.lost > 0 {
            return assert_eq!(next, Some(now), "lost tasks run now");
        }
        let Some(due) = model.next() else {
            assert_eq!(next, None, "the timer has a next deadline, although nothing waits");
            return;
        };
        if due > END_OF_TIME && next.is_none() {
            // Only timeouts are left that never come.
            return;
        }
        let next = next.expect("a timeout waits");
        let many = model.waiting().count() > FEW_TIMEOUTS;
        // A timeout was overdue and then reset to a later deadline, so the wheel looks at it now.
        let known = |id: usize| model.slots[id].former.iter().any(|former| next == now.max(*former));
        let plausible =
            next == due || next < due && (model.waiting().any(known) || many && model.ghosts.contains(&next));
        assert!(
            plausible && (now < END_OF_TIME || next == now),
            "next expiry {next}, but the earliest is {due} and now is {now}"
        );
    }
}
