//! The effects of time on the model, which reaches deadlines and runs tasks.

use super::model::Model;
use super::ops::Kind;
use super::slot::{END_OF_TIME, Slot, State, up};
use std::panic::resume_unwind;
use std::time::Duration;
use timer_core::MissedTickBehavior;

/// The reason for which a fuzz target gives up a case.
///
/// If a bucket is long, the wheel takes its timeouts out in several steps, and hands over those of
/// one instant in several batches. The model cannot know which come first. Its cases have long
/// buckets only in the fuzz targets, whose wheels have short chunks.
pub(crate) const SPLIT: &str = "the wheel has split a batch";

/// Ends a case without a panic if the wheel `has_split` a batch in a fuzz target. Elsewhere that is
/// a failure, which the caller reports.
fn give_up_if(has_split: bool) {
    if cfg!(fuzzing) && has_split {
        resume_unwind(Box::new(SPLIT));
    }
}

impl Model {
    /// Hands a timeout to the executor. It must be the next one.
    pub(crate) fn hand_over(&mut self, id: usize) {
        let slot = &self.slots[id];
        assert_eq!(slot.state, State::Waiting, "{id} is handed over");
        assert!(!self.stopped, "{id} is handed over after the stop");
        let due = slot.deadline.max(self.now);
        assert!(due <= self.target, "{id} is early: due at {due}, and time reaches {}", self.target);
        assert_eq!(Some(due), self.next(), "{id} is out of turn");
        self.now = due;
        let lag = u64::try_from(due - slot.deadline).unwrap_or(u64::MAX);
        self.counts.lag = self.counts.lag.saturating_add(lag);
        self.counts.lags += 1;
        let slot = &mut self.slots[id];
        slot.state = State::Handed;
    }

    /// Begins to move time by `by`.
    pub(crate) fn depart(&mut self, by: Duration) {
        self.target = self.now.saturating_add(by.as_nanos()).min(END_OF_TIME);
        let lost = std::mem::take(&mut self.lost);
        self.collected.clear();
        if lost > 0 {
            self.collected = self.waiting().filter(|id| self.slots[*id].linked <= self.now).collect();
        }
        self.runs_lost = lost > 0;
        self.ever_lost += lost;
    }

    /// Hands over all timeouts that are due next, together. The timer has handed over `all`
    /// timeouts so far.
    pub(crate) fn hand_over_batch(&mut self, all: u64) {
        let due = self.hand_over_due();
        give_up_if(self.counts.lags > all);
        assert_eq!(self.counts.lags, all, "the due batch is {due:?}");
    }

    /// Hands over one more timeout of a batch that is handed over one by one. The timer has handed
    /// over `all` timeouts so far, with the whole batch.
    pub(crate) fn hand_over_next(&mut self, all: u64) {
        if self.batch_left == 0 {
            self.batch_left = self.hand_over_due().len();
            give_up_if(self.counts.lags > all);
        }
        let left = self.batch_left.checked_sub(1);
        self.batch_left = left.expect("a timeout is due");
    }

    fn hand_over_due(&mut self) -> Vec<usize> {
        self.count_panics();
        self.runs_lost = false;
        self.check_handed();
        let next = self.next();
        let mut due: Vec<usize> =
            self.waiting().filter(|id| Some(self.slots[*id].deadline.max(self.now)) == next).collect();
        // Lost tasks have run in this turn, and timeouts that they made due follow in the next one.
        let collected = std::mem::take(&mut self.collected);
        if next == Some(self.now) && due.iter().any(|id| collected.contains(id)) {
            due.retain(|id| collected.contains(id));
        }
        due.iter().for_each(|id| self.hand_over(*id));
        due
    }

    /// Checks between two batches that an executor which keeps no tasks has none.
    fn check_handed(&self) {
        let is_handed = |id: &usize| self.slots[*id].state == State::Handed;
        let left = (0..self.slots.len()).find(is_handed).filter(|_| !self.keeps);
        assert_eq!(left, None, "a timeout is handed over and has not run");
    }

    /// Begins the run of a task. `inline` means that no hand-over came before. Returns `true` if
    /// `stop` had handed the timeout back.
    pub(crate) fn begin_run(&mut self, id: usize, inline: bool) -> bool {
        self.count_panics();
        if inline && self.slots[id].state == State::Waiting {
            self.hand_over(id);
        }
        let before = self.slots[id].state;
        assert!(matches!(before, State::Handed | State::HandedBack), "{id} runs in the state {before:?}");
        if before == State::Handed {
            let slot = &mut self.slots[id];
            assert!(slot.deadline <= self.now, "{id} starts at {} and is due at {}", self.now, slot.deadline);
            slot.state = State::InRun;
            slot.moved = false;
            self.counts.runs += 1;
            self.counts.starts += 1;
            self.counts.executor_rejections += u64::from(!inline && !self.in_executor);
            self.counts.expired += u64::from(!slot.is_periodic());
            let lag = u64::try_from(self.now - slot.deadline).unwrap_or(u64::MAX);
            self.counts.start_lag = self.counts.start_lag.saturating_add(lag);
        }
        self.slots[id].runs_left = self.slots[id].runs_left.saturating_sub(1);
        before == State::HandedBack
    }

    /// Ends the run of a task. `due` is its deadline at the start of the run.
    pub(crate) fn end_run(&mut self, id: usize, due: u128) {
        let now = self.now;
        let missed_runs = self.missed_runs;
        let slot = &mut self.slots[id];
        if slot.spawn.panics {
            slot.uncounted = true;
            return;
        }
        if slot.state != State::InRun {
            return;
        }
        let nanos = |period: Duration| u128::from(u64::try_from(period.as_nanos()).unwrap_or(u64::MAX));
        let next = match (slot.spawn.kind, missed_runs) {
            (Kind::Delay(delay), _) => now + nanos(delay),
            (Kind::Rate(period), MissedTickBehavior::Burst) => due + nanos(period),
            (Kind::Rate(period), MissedTickBehavior::Delay) => now + nanos(period),
            (Kind::Rate(period), MissedTickBehavior::Skip) => {
                let period = nanos(period);
                let missed = now.saturating_sub(due) / period;
                due + (missed + 1) * period
            }
            _ => {
                slot.state = State::Expired;
                return;
            }
        };
        if !slot.moved {
            slot.deadline = up(next);
        }
        slot.linked = slot.deadline;
        slot.state = State::Waiting;
        if self.stopped {
            slot.state = State::Cancelled;
            self.counts.cancelled += 1;
        }
        self.links += 1;
    }

    /// Ends the move of time to `target`. All timeouts that were due on the way must have run.
    pub(crate) fn arrive(&mut self) {
        self.count_panics();
        self.runs_lost = false;
        self.check_handed();
        self.now = self.target;
        if let Some(late) = self.waiting().find(|id| self.slots[*id].deadline <= self.now) {
            panic!("{late} was due at {} and has not run by {}", self.slots[late].deadline, self.now);
        }
        self.ghosts = self.ghosts.split_off(&(self.now + 1));
        for slot in &mut self.slots {
            slot.former = slot.former.split_off(&(self.now + 1));
            if slot.linked <= self.now {
                slot.linked = slot.deadline;
            }
        }
    }

    /// Counts the panics that the timer has caught. A task that panics drops its captures before it
    /// is caught, but the panic of a hook that these cancel is caught at once.
    pub(crate) fn count_panics(&mut self) {
        let is_caught = |slot: &&mut Slot| slot.uncounted && (slot.hook_called || !std::thread::panicking());
        for slot in self.slots.iter_mut().filter(is_caught) {
            slot.uncounted = false;
            self.counts.panics += 1;
            if slot.state == State::InRun {
                slot.state = State::Expired;
                self.counts.expired += u64::from(slot.is_periodic());
            }
        }
    }
}
