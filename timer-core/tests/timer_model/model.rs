//! The model: every timeout in a list, and what must become of it. It knows nothing of wheels, shards or ticks.

use crate::ops::{Kind, Op, Spawn, Target, When};
use crate::slot::{Counts, END_OF_TIME, Slot, State, down, up};
use std::collections::BTreeSet;
use std::time::Duration;
use timer_core::{MissedRuns, RejectReason};

pub(crate) struct Model {
    pub slots: Vec<Slot>,
    pub counts: Counts,
    pub now: u128,
    /// How far time may come in the operation that goes on.
    pub target: u128,
    /// Deadlines beyond now of those that were taken out of the wheel: it may wake for one once more.
    pub ghosts: BTreeSet<u128>,
    pub stopped: bool,
    /// The first thing that went wrong.
    pub failure: Option<String>,
    /// How many tasks the executor has lost that run with the next turn, and how many it has lost so far.
    pub lost: u64,
    pub ever_lost: u64,
    /// What the turn that runs lost tasks has taken out of the wheel before.
    collected: Vec<usize>,
    /// How often something was put into the wheel.
    pub links: u64,
    bound: Option<usize>,
    missed_runs: MissedRuns,
    /// How many more timeouts tasks and callers may make.
    fuel: usize,
}

impl Model {
    pub(crate) fn new(bound: Option<usize>, missed_runs: MissedRuns) -> Self {
        Self {
            slots: Vec::new(),
            counts: Counts::default(),
            now: 0,
            target: 0,
            ghosts: BTreeSet::new(),
            stopped: false,
            failure: None,
            lost: 0,
            ever_lost: 0,
            collected: Vec::new(),
            links: 0,
            bound,
            missed_runs,
            fuel: 150,
        }
    }

    pub(crate) fn pending(&self) -> u64 {
        self.counts.scheduled - self.counts.expired - self.counts.cancelled
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = usize> {
        (0..self.slots.len()).filter(|id| self.slots[*id].state == State::Waiting)
    }

    /// When something runs next; what is overdue runs now.
    pub(crate) fn next(&self) -> Option<u128> {
        self.waiting().map(|id| self.slots[id].deadline.max(self.now)).min()
    }

    pub(crate) fn pick(&self, target: Target, own: Option<usize>) -> Option<usize> {
        let nth = |of: Vec<usize>, n: usize| of.get(n % of.len().max(1)).copied();
        match target {
            Target::Own => own,
            Target::Any(n) => nth((0..self.slots.len()).collect(), n),
            Target::Waiting(n) => nth(self.waiting().collect(), n),
        }
    }

    /// As a delay from now; a deadline in the past for `new_timeout_at` only.
    pub(crate) fn delay(&self, when: When) -> Duration {
        match when {
            When::In(delay) => delay,
            When::Ago(_) => Duration::ZERO,
            When::Beside(n, by) => match self.pick(Target::Waiting(n), None) {
                Some(id) => {
                    let at = self.slots[id].deadline.saturating_add_signed(by.into());
                    crate::edges::nanos(at.saturating_sub(self.now))
                }
                None => Duration::ZERO,
            },
        }
    }

    fn due_in(&self, delay: Duration) -> u128 {
        if delay.is_zero() { down(self.now) } else { up(self.now.saturating_add(delay.as_nanos())) }
    }

    /// The slot of a new timeout, due at `at` or in a delay; and whether the timer takes it. `None` if it is enough.
    pub(crate) fn admit(
        &mut self,
        spawn: &Spawn,
        when: Result<u128, Duration>,
    ) -> Option<(usize, Result<(), RejectReason>)> {
        self.fuel = self.fuel.checked_sub(1)?;
        let outcome = match (spawn.kind, self.bound) {
            (Kind::Rate(period) | Kind::Delay(period), _) if period.is_zero() => Err(RejectReason::ZeroPeriod),
            _ if self.stopped => Err(RejectReason::Stopped),
            (_, Some(max)) if self.pending() >= max as u64 => Err(RejectReason::TooManyPending { max }),
            _ => Ok(()),
        };
        let deadline = match when {
            Ok(at) if at <= self.now => down(at),
            Ok(at) => up(at),
            Err(delay) => self.due_in(delay),
        };
        let state = if outcome.is_ok() { State::Waiting } else { State::Rejected };
        self.counts.scheduled += u64::from(outcome.is_ok());
        self.counts.rejected += u64::from(outcome.is_err());
        self.links += 1;
        self.slots.push(Slot {
            state,
            deadline,
            former: BTreeSet::new(),
            linked: deadline,
            runs_left: spawn.runs,
            spawn: spawn.clone(),
            moved: false,
            handle: None,
            freed: false,
            told: false,
            unsettled: false,
        });
        Some((self.slots.len() - 1, outcome))
    }

    /// What `cancel` answers.
    pub(crate) fn cancel(&mut self, id: usize) -> bool {
        let slot = &mut self.slots[id];
        let won = match slot.state {
            State::Waiting => true,
            State::Handed | State::InRun => slot.is_periodic(),
            _ => false,
        };
        if won {
            if slot.state == State::Waiting {
                self.ghosts.insert(slot.deadline);
                self.ghosts.append(&mut slot.former);
            }
            slot.state = State::Cancelled;
            self.counts.cancelled += 1;
        }
        won
    }

    /// What `reset` answers.
    pub(crate) fn reset(&mut self, id: usize, delay: Duration) -> bool {
        let deadline = self.due_in(delay);
        let slot = &mut self.slots[id];
        match slot.state {
            State::Waiting if deadline < slot.deadline => {
                self.ghosts.insert(slot.deadline);
                slot.linked = slot.linked.min(deadline);
            }
            State::Waiting => {
                slot.former.insert(slot.deadline);
            }
            State::Handed | State::InRun if slot.is_periodic() => slot.moved = true,
            _ => return false,
        }
        slot.deadline = deadline;
        self.links += 1;
        true
    }

    /// The timer gives one to the executor: it must be its turn.
    pub(crate) fn hand_over(&mut self, id: usize) {
        let slot = &self.slots[id];
        assert_eq!(slot.state, State::Waiting, "{id} was handed over");
        assert!(!self.stopped, "{id} was handed over after the stop");
        let due = slot.deadline.max(self.now);
        assert!(due <= self.target, "{id} is early: due at {due}, time comes to {}", self.target);
        assert_eq!(Some(due), self.next(), "{id} is out of turn");
        self.now = due;
        let lag = u64::try_from(due - slot.deadline).unwrap_or(u64::MAX);
        self.counts.lag = self.counts.lag.saturating_add(lag);
        self.counts.runs += 1;
        self.counts.expired += u64::from(!slot.is_periodic());
        let slot = &mut self.slots[id];
        slot.state = State::Handed;
        slot.moved = false;
    }

    /// Time is about to move on by `by`.
    pub(crate) fn depart(&mut self, by: Duration) {
        self.target = self.now.saturating_add(by.as_nanos()).min(END_OF_TIME);
        let lost = std::mem::take(&mut self.lost);
        self.collected.clear();
        if lost > 0 {
            self.collected = self.waiting().filter(|id| self.slots[*id].linked <= self.now).collect();
        }
        self.counts.executor_rejections += lost;
        self.ever_lost += lost;
    }

    /// Everything that is due next, handed over together.
    pub(crate) fn hand_over_batch(&mut self, expected: usize) {
        self.settle();
        let next = self.next();
        let mut due: Vec<usize> =
            self.waiting().filter(|id| Some(self.slots[*id].deadline.max(self.now)) == next).collect();
        // Lost tasks have run in this turn; what they have made due comes with the next one.
        let collected = std::mem::take(&mut self.collected);
        if next == Some(self.now) && due.iter().any(|id| collected.contains(id)) {
            due.retain(|id| collected.contains(id));
        }
        assert_eq!(due.len(), expected, "the batch due at {next:?} is {due:?}");
        due.into_iter().for_each(|id| self.hand_over(id));
    }

    /// Its task begins; `inline` if nothing has said so before. `true` if `stop` had handed it back.
    pub(crate) fn begin_run(&mut self, id: usize, inline: bool) -> bool {
        self.settle();
        if inline && self.slots[id].state == State::Waiting {
            self.hand_over(id);
        }
        let before = self.slots[id].state;
        assert!(matches!(before, State::Handed | State::HandedBack), "{id} runs though it is {before:?}");
        if before == State::Handed {
            self.slots[id].state = State::InRun;
        }
        self.slots[id].runs_left = self.slots[id].runs_left.saturating_sub(1);
        before == State::HandedBack
    }

    /// Its task ends. `due` is its deadline as it was when the task began.
    pub(crate) fn end_run(&mut self, id: usize, due: u128) {
        let (now, missed_runs) = (self.now, self.missed_runs);
        let slot = &mut self.slots[id];
        if slot.spawn.panics {
            slot.unsettled = true;
            return;
        }
        if slot.state != State::InRun {
            return;
        }
        let nanos = |period: Duration| u128::from(u64::try_from(period.as_nanos()).unwrap_or(u64::MAX));
        let next = match (slot.spawn.kind, missed_runs) {
            (Kind::Delay(delay), _) => now + nanos(delay),
            (Kind::Rate(period), MissedRuns::Burst) => due + nanos(period),
            (Kind::Rate(period), MissedRuns::Skip) => {
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

    /// Time has come to `target`, and everything that was due on the way has run.
    pub(crate) fn arrive(&mut self) {
        self.settle();
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

    /// What the timer has done about a panic, as soon as it has caught it.
    pub(crate) fn settle(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.unsettled) {
            slot.unsettled = false;
            self.counts.panics += 1;
            if slot.state == State::InRun {
                slot.state = State::Expired;
                self.counts.expired += u64::from(slot.is_periodic());
            }
        }
    }

    /// The timer takes no more; what the executor has lost runs now or soon.
    pub(crate) fn close(&mut self) {
        self.stopped = true;
        self.target = self.now;
        self.counts.executor_rejections += std::mem::take(&mut self.lost);
    }

    /// What still waits is handed back.
    pub(crate) fn hand_back(&mut self) -> Vec<usize> {
        let back: Vec<usize> = self.waiting().collect();
        for id in &back {
            self.slots[*id].state = State::HandedBack;
        }
        self.counts.cancelled += back.len() as u64;
        back
    }

    pub(crate) fn run_script(&self, id: usize) -> Vec<Op> {
        self.slots[id].spawn.run.clone()
    }
}
