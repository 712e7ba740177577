//! The timer beside its model. Each operation is applied to both.
//!
//! The model comes first if the timer may call a task, a hook or the `Drop` of a capture during the
//! operation, because these compare both again. The model is never locked while the timer is
//! called.

use super::edges::nanos;
use super::executors::Mode;
use super::guard::{Guard, Hooked, has_hook};
use super::model::Model;
use super::ops::{Kind, Op, Spawn, Target, When};
use super::slot::State;
use super::time::SPLIT;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use timer_core::{StopError, Timeout, Timer};
use timer_executor::Task;

pub(crate) struct World {
    pub(crate) timer: Timer,
    pub(crate) epoch: Instant,
    /// The epoch in nanoseconds of the system's clock.
    pub(crate) began: u128,
    pub(crate) mode: Mode,
    model: Mutex<Model>,
}

/// The timeout whose task performs an operation.
pub(crate) type Own<'a> = Option<(usize, &'a Timeout)>;

impl World {
    pub(crate) fn new(timer: Timer, epoch: Instant, began: u128, mode: Mode, model: Model) -> Self {
        Self { timer, epoch, began, mode, model: Mutex::new(model) }
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a check and keeps its panic for the test, because the timer would catch the panic of a
    /// task. Returns `None` after a failure.
    pub(crate) fn watched<R>(&self, check: impl FnOnce() -> R) -> Option<R> {
        if self.model().failure.is_some() {
            return None;
        }
        match catch_unwind(AssertUnwindSafe(check)) {
            Ok(result) => Some(result),
            Err(payload) => {
                let text = payload.downcast_ref::<String>().cloned();
                let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                self.model().failure.get_or_insert(text.unwrap_or_else(|| "a panic".to_owned()));
                None
            }
        }
    }

    /// Panics with the failure that `watched` has kept. Unwinds without a panic after a [`SPLIT`].
    pub(crate) fn report(&self) {
        let failure = self.model().failure.clone();
        match failure {
            Some(failure) if failure == SPLIT => resume_unwind(Box::new(failure)),
            Some(failure) => panic!("{failure}"),
            None => {}
        }
    }

    /// Returns `true` if the case was given up. That is no failure.
    pub(crate) fn is_given_up(&self) -> bool {
        self.model().failure.as_deref() == Some(SPLIT)
    }

    /// Runs a task on behalf of the executor.
    pub(crate) fn run_in_executor(&self, task: Task) {
        self.model().in_executor = true;
        task.run();
        self.model().in_executor = false;
    }

    /// Applies an operation that tasks may also perform.
    pub(crate) fn apply(self: &Arc<Self>, op: &Op, own: Own<'_>) {
        match op {
            Op::Schedule(spawn) => self.schedule(spawn),
            Op::Cancel(target) => self.cancel(*target, own),
            Op::Reset(target, when) => self.reset(*target, *when, own),
            Op::ResetAt(target, when) => self.reset_at(*target, *when, own),
            Op::ExpireNow(target) => self.expire_now(*target, own),
            Op::ResetPeriod(target, period) => self.reset_period(*target, *period, own),
            Op::CancelAll(targets) => self.cancel_all(targets, own),
            Op::ScheduleAll(spawns) => self.schedule_all(spawns),
            Op::Forget(target) => {
                let picked = self.picked(*target, own);
                if let Some((id, _)) = picked {
                    let handle = self.model().slots[id].handle.take();
                    drop(handle);
                }
            }
            Op::Stop => assert_eq!(self.timer.stop().err(), Some(StopError::Driven)),
            Op::Advance(_) | Op::AdvanceToNext(_) | Op::RunQueued(_) | Op::DropQueued(_) => {
                unreachable!("{op:?} in a task")
            }
        }
    }

    fn picked(&self, target: Target, own: Own<'_>) -> Option<(usize, Timeout)> {
        if let (Target::Own, Some((id, timeout))) = (target, own) {
            return Some((id, timeout.clone()));
        }
        let model = self.model();
        let id = model.pick(target, None)?;
        Some((id, model.slots[id].handle.clone()?))
    }

    fn schedule(self: &Arc<Self>, spawn: &Spawn) {
        let mut model = self.model();
        let delay = model.delay(spawn.when);
        let at = (spawn.kind == Kind::At).then(|| model.at(spawn.when));
        // Some deadlines have no `Instant`.
        let instant = at.and_then(|at| self.instant(at));
        let when = match at {
            Some(at) if instant.is_some() => Ok(at),
            _ => Err(delay),
        };
        let Some((id, expected)) = model.admit(spawn, when) else { return };
        let deadline = model.slots[id].deadline;
        drop(model);

        let end = if has_hook(spawn.kind) { Vec::new() } else { spawn.end.clone() };
        let guard = Guard { world: self.clone(), id, end };
        let timer = &self.timer;
        let scheduled = match (spawn.kind, instant) {
            (Kind::Task, _) => timer.new_timeout_task(delay, Hooked(guard)).map_err(|rejected| rejected.reason),
            (Kind::Rate(period), _) => timer
                .schedule_at_fixed_rate(delay, period, move |timeout| guard.run(timeout))
                .map_err(|rejected| rejected.reason),
            (Kind::Delay(period), _) => timer
                .schedule_with_fixed_delay(delay, period, move |timeout| guard.run(timeout))
                .map_err(|rejected| rejected.reason),
            (Kind::At, Some(at)) => {
                timer.new_timeout_at(at, move |timeout| guard.run(timeout)).map_err(|rejected| rejected.reason)
            }
            (Kind::Once | Kind::At, _) => {
                timer.new_timeout(delay, move |timeout| guard.run(timeout)).map_err(|rejected| rejected.reason)
            }
        };
        match scheduled {
            Ok(handle) => {
                assert_eq!(expected, Ok(()), "{id} was accepted");
                assert_eq!(self.nanos(handle.deadline()), deadline, "deadline of {id}");
                self.model().slots[id].handle = Some(handle);
            }
            Err(reason) => {
                assert_eq!(expected, Err(reason), "{id} was rejected");
                assert!(self.model().slots[id].freed, "a rejected task comes back");
            }
        }
    }

    /// Applies `new_timeouts`.
    fn schedule_all(self: &Arc<Self>, spawns: &[Spawn]) {
        let mut batch = Vec::new();
        for spawn in spawns {
            let mut model = self.model();
            let delay = model.delay(spawn.when);
            let Some((id, expected)) = model.admit(spawn, Err(delay)) else { break };
            let guard = Guard { world: self.clone(), id, end: spawn.end.clone() };
            batch.push((id, expected, delay, guard));
        }
        let expected: Vec<_> = batch.iter().map(|(id, expected, ..)| (*id, *expected)).collect();
        let items = batch.into_iter().map(|(_, _, delay, guard)| (delay, move |timeout: &Timeout| guard.run(timeout)));
        let scheduled = self.timer.new_timeouts(items);
        assert_eq!(scheduled.len(), expected.len(), "one result per item");
        for ((id, expected), scheduled) in expected.into_iter().zip(scheduled) {
            match scheduled {
                Ok(handle) => {
                    assert_eq!(expected, Ok(()), "{id} was accepted in a batch");
                    let mut model = self.model();
                    assert_eq!(self.nanos(handle.deadline()), model.slots[id].deadline, "deadline of {id}");
                    model.slots[id].handle = Some(handle);
                }
                Err(rejected) => {
                    assert_eq!(expected, Err(rejected.reason), "{id} was rejected in a batch");
                    drop(rejected.into_inner());
                    assert!(self.model().slots[id].freed, "a rejected task comes back");
                }
            }
        }
    }

    /// Applies `Timeout::cancel_all`.
    fn cancel_all(&self, targets: &[Target], own: Own<'_>) {
        let picked: Vec<_> = targets.iter().filter_map(|target| self.picked(*target, own)).collect();
        let mut won = Vec::new();
        for (id, _) in &picked {
            let mut model = self.model();
            let running = model.slots[*id].state == State::InRun;
            if model.cancel(*id) {
                model.slots[*id].contained = true;
                won.push((*id, running));
            }
        }
        assert_eq!(Timeout::cancel_all(picked.iter().map(|(_, handle)| handle)), won.len(), "cancel_all of {picked:?}");
        let model = self.model();
        if model.failure.is_some() {
            return;
        }
        for (id, _) in won.into_iter().filter(|(_, running)| !running) {
            let slot = &model.slots[id];
            assert!(slot.freed, "cancel_all left the captures of {id} behind");
            assert_eq!(slot.hook_called, has_hook(slot.spawn.kind), "the hook of {id}");
        }
    }

    fn cancel(&self, target: Target, own: Own<'_>) {
        let Some((id, handle)) = self.picked(target, own) else { return };
        let mut model = self.model();
        let running = model.slots[id].state == State::InRun;
        let expected = model.cancel(id);
        drop(model);
        // A panic of the hook reaches this call.
        let won = catch_unwind(AssertUnwindSafe(|| handle.cancel()));
        let model = self.model();
        let slot = &model.slots[id];
        if model.failure.is_some() {
            return;
        }
        match won {
            Ok(won) => assert_eq!(won, expected, "cancel of {id}, which is {:?}", slot.state),
            Err(_) => assert!(expected && slot.hook_called && slot.spawn.hook_panics, "cancel of {id} panicked"),
        }
        if expected && !running {
            assert!(slot.freed, "cancel of {id} left its captures behind");
            assert_eq!(slot.hook_called, has_hook(slot.spawn.kind), "the hook of {id}");
        }
    }

    fn reset(&self, target: Target, when: When, own: Own<'_>) {
        let Some((id, handle)) = self.picked(target, own) else { return };
        let mut model = self.model();
        let delay = model.delay(when);
        let expected = model.reset(id, delay);
        let state = model.slots[id].state;
        drop(model);
        assert_eq!(handle.reset(delay), expected, "reset of {id}, which is {state:?}");
    }

    fn reset_at(&self, target: Target, when: When, own: Own<'_>) {
        let Some((id, handle)) = self.picked(target, own) else { return };
        let mut model = self.model();
        let at = model.at(when);
        let Some(instant) = self.instant(at) else { return };
        let expected = model.reset_at(id, at);
        let state = model.slots[id].state;
        drop(model);
        assert_eq!(handle.reset_at(instant), expected, "reset_at of {id}, which is {state:?}");
    }

    fn expire_now(&self, target: Target, own: Own<'_>) {
        let Some((id, handle)) = self.picked(target, own) else { return };
        let mut model = self.model();
        let state = model.slots[id].state;
        let expected = model.expire_now(id);
        drop(model);
        assert_eq!(handle.expire_now(), expected, "expire_now of {id}, which is {state:?}");
    }

    fn reset_period(&self, target: Target, period: Duration, own: Own<'_>) {
        let Some((id, handle)) = self.picked(target, own) else { return };
        let expected = self.model().reset_period(id, period);
        assert_eq!(handle.reset_period(period), expected, "reset_period of {id}");
    }

    /// Runs the task of a timeout. Returns `true` if it panics.
    pub(crate) fn run(self: &Arc<Self>, id: usize, timeout: &Timeout) -> bool {
        let mut model = self.model();
        let handed_back = model.begin_run(id, self.mode.is_inline());
        let due = model.slots[id].deadline;
        let panics = model.slots[id].spawn.panics;
        let script = model.run_script(id);
        drop(model);
        assert_eq!(self.nanos(timeout.deadline()), due, "{id} got the handle of another timeout");
        let own = Some((id, timeout));
        self.compare();
        for op in &script {
            self.apply(op, own);
            self.compare();
        }
        let slot_is_done = |model: &Model| model.slots[id].is_periodic() && model.slots[id].runs_left == 0;
        let done = slot_is_done(&self.model());
        if done && !handed_back {
            self.apply(&Op::Cancel(Target::Own), own);
        }
        if !handed_back {
            self.model().end_run(id, due);
        }
        panics
    }

    /// Runs the hook of a timeout. Returns `true` if it panics.
    pub(crate) fn call_hook(self: &Arc<Self>, id: usize, timeout: &Timeout) -> bool {
        let mut model = self.model();
        model.count_panics();
        let slot = &mut model.slots[id];
        assert!(matches!(slot.state, State::Cancelled | State::HandedBack), "the hook of {id} ran in {:?}", slot.state);
        assert!(!std::mem::replace(&mut slot.hook_called, true), "the hook of {id} ran twice");
        assert!(!slot.freed, "the hook of {id} ran after its captures were dropped");
        let script = slot.spawn.end.clone();
        let panics = slot.spawn.hook_panics;
        let caught = panics && (slot.contained || slot.state == State::HandedBack);
        drop(model);
        assert!(timeout.is_cancelled());
        self.compare();
        for op in &script {
            self.apply(op, Some((id, timeout)));
            self.compare();
        }
        self.model().slots[id].uncounted = caught;
        panics
    }

    /// Records the drop of a timeout's captures.
    pub(crate) fn freed(self: &Arc<Self>, id: usize, script: &[Op]) {
        let mut model = self.model();
        model.count_panics();
        let slot = &mut model.slots[id];
        assert!(!std::mem::replace(&mut slot.freed, true), "the captures of {id} were dropped twice");
        assert!(
            !matches!(slot.state, State::Waiting | State::Handed),
            "the captures of {id} were dropped before its end"
        );
        drop(model);
        for op in script {
            self.apply(op, None);
            self.compare();
        }
    }

    pub(crate) fn nanos(&self, instant: Instant) -> u128 {
        match instant.checked_duration_since(self.epoch) {
            Some(after) => self.began + after.as_nanos(),
            None => self.began - self.epoch.duration_since(instant).as_nanos(),
        }
    }

    fn instant(&self, at: u128) -> Option<Instant> {
        if at >= self.began {
            self.epoch.checked_add(nanos(at - self.began))
        } else {
            self.epoch.checked_sub(nanos(self.began - at))
        }
    }
}
