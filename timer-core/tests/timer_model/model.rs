//! The model: every timeout in a list, and what callers may do to it. It knows nothing of wheels, shards or ticks.
//! What time does to it is in `time`.

use super::ops::{Kind, Op, Spawn, Target, When};
use super::slot::{Counts, Slot, State, down, up};
use std::collections::BTreeSet;
use std::time::Duration;
use timer_core::{MissedRuns, RejectReason};

/// How often the tasks of one operation read the statistics.
pub(crate) const LOOKS: u32 = 4;

pub(crate) struct Model {
    pub(crate) slots: Vec<Slot>,
    pub(crate) counts: Counts,
    pub(crate) now: u128,
    /// How far time may come in the operation that goes on.
    pub(crate) target: u128,
    /// Deadlines beyond now of those that were taken out of the wheel: it may wake for one once more.
    pub(crate) ghosts: BTreeSet<u128>,
    pub(crate) stopped: bool,
    /// The first thing that went wrong.
    pub(crate) failure: Option<String>,
    /// How many tasks the executor has lost that run with the next turn, and how many it has lost so far.
    pub(crate) lost: u64,
    pub(crate) ever_lost: u64,
    /// What the turn that runs lost tasks has taken out of the wheel before.
    pub(crate) collected: Vec<usize>,
    /// How often something was put into the wheel.
    pub(crate) links: u64,
    bound: Option<usize>,
    pub(crate) missed_runs: MissedRuns,
    pub(crate) looks: u32,
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
            looks: LOOKS,
            fuel: 150,
        }
    }

    pub(crate) fn pending(&self) -> u64 {
        self.counts.scheduled - self.counts.expired - self.counts.cancelled
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = usize> {
        (0..self.slots.len()).filter(|id| self.slots[*id].state == State::Waiting)
    }

    /// Whether to read the statistics once more.
    pub(crate) fn look(&mut self) -> bool {
        let look = self.looks > 0;
        self.looks = self.looks.saturating_sub(1);
        look
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
                    super::edges::nanos(at.saturating_sub(self.now))
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
                self.ghosts.extend(&slot.former);
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
