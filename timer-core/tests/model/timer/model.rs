//! The model, a list of all timeouts, and the calls that may change them. It knows no
//! wheels, shards or ticks. `time` has the effects of time.

use super::ops::{Kind, Op, Spawn, Target, When};
use super::slot::{Counts, Slot, State, down, up};
use std::collections::BTreeSet;
use std::time::Duration;
use timer_core::{MissedTickBehavior, RejectReason};

/// How often the tasks of one operation read the statistics.
pub(crate) const LOOKS: u32 = 4;

pub(crate) struct Model {
    pub(crate) slots: Vec<Slot>,
    pub(crate) counts: Counts,
    pub(crate) now: u128,
    /// The time that the current operation may reach.
    pub(crate) target: u128,
    /// Future deadlines of timeouts that were taken out of the wheel, which may still wake for each
    /// once.
    pub(crate) ghosts: BTreeSet<u128>,
    pub(crate) stopped: bool,
    /// The first failure.
    pub(crate) failure: Option<String>,
    /// Tasks that the executor has lost and whose work is done with the next turn, and all tasks
    /// that it has lost so far.
    pub(crate) lost: u64,
    pub(crate) ever_lost: u64,
    /// Whether the executor runs a task. Otherwise the timer does.
    pub(crate) in_executor: bool,
    /// Whether lost tasks may run now, because nothing was handed over since time moved.
    pub(crate) runs_lost: bool,
    /// Timeouts that the turn took out of the wheel before it runs lost tasks.
    pub(crate) collected: Vec<usize>,
    /// How often a timeout was put into the wheel.
    pub(crate) links: u64,
    pub(crate) bound: Option<usize>,
    pub(crate) missed_runs: MissedTickBehavior,
    /// Whether the executor keeps its tasks after the turn.
    pub(crate) keeps: bool,
    /// Tasks that remain of a batch which is handed over one by one.
    pub(crate) batch_left: usize,
    pub(crate) looks: u32,
    /// Timeouts that tasks and callers may still schedule.
    fuel: usize,
}

impl Model {
    pub(crate) fn new(began: u128, bound: Option<usize>, missed_runs: MissedTickBehavior, keeps: bool) -> Self {
        Self {
            slots: Vec::new(),
            counts: Counts::default(),
            now: began,
            target: began,
            ghosts: BTreeSet::new(),
            stopped: false,
            failure: None,
            lost: 0,
            ever_lost: 0,
            in_executor: false,
            runs_lost: false,
            collected: Vec::new(),
            links: 0,
            bound,
            missed_runs,
            keeps,
            batch_left: 0,
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

    /// Returns `true` if the statistics are to be read once more.
    pub(crate) fn look(&mut self) -> bool {
        let look = self.looks > 0;
        self.looks = self.looks.saturating_sub(1);
        look
    }

    /// Returns the time of the next run. Overdue timeouts run now.
    pub(crate) fn next(&self) -> Option<u128> {
        self.waiting().map(|id| self.slots[id].deadline.max(self.now)).min()
    }

    pub(crate) fn pick(&self, target: Target, own: Option<usize>) -> Option<usize> {
        let nth = |ids: Vec<usize>, n: usize| ids.get(n % ids.len().max(1)).copied();
        match target {
            Target::Own => own,
            Target::Any(n) => nth((0..self.slots.len()).collect(), n),
            Target::Waiting(n) => nth(self.waiting().collect(), n),
        }
    }

    /// Returns a delay from now. Only `new_timeout_at` knows deadlines in the past.
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

    fn due_at(&self, at: u128) -> u128 {
        if at <= self.now { down(at) } else { up(at) }
    }

    /// Returns the time that `when` stands for.
    pub(crate) fn at(&self, when: When) -> u128 {
        match when {
            When::Ago(ago) => self.now.saturating_sub(ago.as_nanos()),
            _ => self.now.saturating_add(self.delay(when).as_nanos()),
        }
    }

    /// Adds a slot for a new timeout, due at a time or after a delay, and returns the timer's
    /// expected answer. Returns `None` if the case has enough timeouts.
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
            Ok(at) => self.due_at(at),
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
            hook_called: false,
            contained: false,
            uncounted: false,
        });
        Some((self.slots.len() - 1, outcome))
    }

    /// Applies `cancel` and returns the expected answer.
    pub(crate) fn cancel(&mut self, id: usize) -> bool {
        let slot = &mut self.slots[id];
        let won = match slot.state {
            State::Waiting | State::Handed => true,
            State::InRun => slot.is_periodic(),
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

    /// Applies `reset` and returns the expected answer.
    pub(crate) fn reset(&mut self, id: usize, delay: Duration) -> bool {
        self.move_to(id, self.due_in(delay))
    }

    /// Applies `reset_at` and returns the expected answer.
    pub(crate) fn reset_at(&mut self, id: usize, at: u128) -> bool {
        self.move_to(id, self.due_at(at))
    }

    /// Applies `expire_now` and returns the expected answer.
    pub(crate) fn expire_now(&mut self, id: usize) -> bool {
        let slot = &self.slots[id];
        match slot.state {
            State::Waiting if slot.deadline > self.now => self.move_to(id, down(self.now)),
            State::InRun => self.move_to(id, down(self.now)),
            _ => false,
        }
    }

    /// Applies `reset_period` and returns the expected answer.
    pub(crate) fn reset_period(&mut self, id: usize, period: Duration) -> bool {
        let slot = &mut self.slots[id];
        let goes_on = matches!(slot.state, State::Waiting | State::Handed | State::InRun);
        if !goes_on || period.is_zero() {
            return false;
        }
        match &mut slot.spawn.kind {
            Kind::Rate(old) | Kind::Delay(old) => *old = period,
            _ => return false,
        }
        true
    }

    fn move_to(&mut self, id: usize, deadline: u128) -> bool {
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
            State::Handed => {
                slot.linked = deadline;
                slot.state = State::Waiting;
                if self.stopped {
                    slot.state = State::Cancelled;
                    slot.contained = true;
                    self.counts.cancelled += 1;
                }
            }
            State::InRun if slot.is_periodic() => slot.moved = true,
            _ => return false,
        }
        slot.deadline = deadline;
        self.links += 1;
        true
    }

    /// Stops the timer. The tasks that the executor has lost run now or soon.
    pub(crate) fn close(&mut self) {
        self.stopped = true;
        self.target = self.now;
        self.lost = 0;
    }

    /// Hands back the waiting timeouts.
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
