//! The model: every timeout in a list, and what callers may do to it. It knows nothing of wheels,
//! shards or ticks. What time does to it is in `time`.

use super::ops::{Kind, Op, Spawn, Target, When};
use super::slot::{Counts, Slot, State, down, up};
use std::collections::BTreeSet;
use std::time::Duration;
use timer_core::{MissedRuns, RejectReason, Timeout};

/// How often the tasks of one operation read the statistics.
pub(crate) const LOOKS: u32 = 4;

pub(crate) struct Model {
    pub(crate) slots: Vec<Slot>,
    pub(crate) counts: Counts,
    pub(crate) now: u128,
    /// How far time may come in the operation that goes on.
    pub(crate) target: u128,
    /// Deadlines beyond now of those that were taken out of the wheel: it may wake for one once
    /// more.
    pub(crate) ghosts: BTreeSet<u128>,
    pub(crate) stopped: bool,
    /// The first thing that went wrong.
    pub(crate) failure: Option<String>,
    /// How many tasks the executor has lost that run with the next turn, and how many it has lost
    /// so far.
    pub(crate) lost: u64,
    pub(crate) ever_lost: u64,
    /// Lost tasks may run just now: nothing has been handed over since time left.
    pub(crate) runs_lost: bool,
    /// What the turn that runs lost tasks has taken out of the wheel before.
    pub(crate) collected: Vec<usize>,
    /// How often something was put into the wheel.
    pub(crate) links: u64,
    pub(crate) bound: Option<usize>,
    pub(crate) missed_runs: MissedRuns,
    /// Tasks that were handed over stay with the executor after the turn.
    pub(crate) keeps: bool,
    /// So many of a batch that is handed over one by one are still to come.
    pub(crate) batch_left: usize,
    pub(crate) looks: u32,
    /// How many more timeouts tasks and callers may make.
    fuel: usize,
}

impl Model {
    pub(crate) fn new(began: u128, bound: Option<usize>, missed_runs: MissedRuns, keeps: bool) -> Self {
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

    fn due_at(&self, at: u128) -> u128 {
        if at <= self.now { down(at) } else { up(at) }
    }

    /// The instant that `when` means.
    pub(crate) fn at(&self, when: When) -> u128 {
        match when {
            When::Ago(ago) => self.now.saturating_sub(ago.as_nanos()),
            _ => self.now.saturating_add(self.delay(when).as_nanos()),
        }
    }

    /// The slot of a new timeout, due at `at` or in a delay; and whether the timer takes it. `None`
    /// if it is enough.
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
            told: false,
            contained: false,
            uncounted: false,
        });
        Some((self.slots.len() - 1, outcome))
    }

    /// What `cancel` answers.
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

    /// What `reset` answers.
    pub(crate) fn reset(&mut self, id: usize, delay: Duration) -> bool {
        self.move_to(id, self.due_in(delay))
    }

    /// What `reset_at` answers.
    pub(crate) fn reset_at(&mut self, id: usize, at: u128) -> bool {
        self.move_to(id, self.due_at(at))
    }

    /// What `expire_now` answers.
    pub(crate) fn expire_now(&mut self, id: usize) -> bool {
        let slot = &self.slots[id];
        match slot.state {
            State::Waiting if slot.deadline > self.now => self.move_to(id, down(self.now)),
            State::InRun => self.move_to(id, down(self.now)),
            _ => false,
        }
    }

    /// Whether a shell of it is in the executor's queue that will not run when it comes out.
    pub(crate) fn is_moved_shell(&self, id: usize) -> bool {
        self.slots[id].state == State::Handed && self.slots[id].deadline > self.now
    }

    /// Whether it is not to be moved to `at`, for it may be a task that the executor has lost. The
    /// model does not know which of them runs with the next turn, nor whether its shell comes out
    /// with this one, and so whether it is handed over once more.
    pub(crate) fn is_lost(&self, id: usize, at: u128) -> bool {
        let comes_again = self.runs_lost && self.now < at && at <= self.target;
        self.slots[id].state == State::Handed && (self.lost > 0 || comes_again)
    }

    /// After `stop` a shell of one that was moved is cancelled when it comes out, which its end
    /// tells.
    pub(crate) fn come_out_after_stop(&mut self, id: usize) {
        if self.stopped && self.is_moved_shell(id) {
            self.relink(id);
        }
    }

    /// Such shells that came out: their timeouts wait again. The order in which an executor runs a
    /// batch is its own, so only the handle tells. Asked before each operation, because the wheel
    /// knows the deadline of the moment at which the shell came out, and what moves the timeout
    /// after that may leave a former deadline behind.
    pub(crate) fn take_out_shells(&mut self) {
        let waits = |handle: &Timeout| format!("{handle:?}").contains("pending");
        for id in 0..self.slots.len() {
            if self.is_moved_shell(id) && self.slots[id].handle.as_ref().is_some_and(waits) {
                self.relink(id);
            }
        }
    }

    /// Such a shell came out: its timeout waits again, or is cancelled if the timer is stopped.
    pub(crate) fn relink(&mut self, id: usize) {
        let slot = &mut self.slots[id];
        slot.linked = slot.deadline;
        slot.state = State::Waiting;
        self.links += 1;
        if self.stopped {
            slot.state = State::Cancelled;
            slot.contained = true;
            self.counts.cancelled += 1;
        }
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
            State::Handed => {}
            State::InRun if slot.is_periodic() => slot.moved = true,
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
