//! The timer beside its model: each operation is done to both.
//!
//! The model goes first where the timer may call a task, a hook or the `Drop` of a capture meanwhile, for these look at
//! both again. It is never locked while the timer is called.

use super::executors::Mode;
use super::guard::{Guard, Hooked, has_hook};
use super::model::Model;
use super::ops::{Kind, Op, Spawn, Target, When};
use super::slot::State;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use timer_core::{StopError, Timeout, Timer};

pub(crate) struct World {
    pub(crate) timer: Timer,
    pub(crate) epoch: Instant,
    pub(crate) mode: Mode,
    model: Mutex<Model>,
}

/// The timeout whose task does something.
pub(crate) type Own<'a> = Option<(usize, &'a Timeout)>;

impl World {
    pub(crate) fn new(timer: Timer, epoch: Instant, mode: Mode, model: Model) -> Self {
        Self { timer, epoch, mode, model: Mutex::new(model) }
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A panic in a task would be the timer's to catch: keeps it for the test. `None` if something is wrong.
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

    /// The panic that `watched` has kept, where it can be seen.
    pub(crate) fn report(&self) {
        let failure = self.model().failure.clone();
        if let Some(failure) = failure {
            panic!("{failure}");
        }
    }

    /// An operation that tasks may do as well.
    pub(crate) fn apply(self: &Arc<Self>, op: &Op, own: Own<'_>) {
        match op {
            Op::Schedule(spawn) => self.schedule(spawn),
            Op::Cancel(target) => self.cancel(*target, own),
            Op::Reset(target, when) => self.reset(*target, *when, own),
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
        let at = match (spawn.kind, spawn.when) {
            (Kind::At, When::Ago(ago)) => Some(model.now.saturating_sub(ago.as_nanos())),
            (Kind::At, _) => Some(model.now.saturating_add(delay.as_nanos())),
            _ => None,
        };
        // Not every deadline has an instant.
        let instant = at.and_then(|at| self.epoch.checked_add(super::edges::nanos(at)));
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
                assert_eq!(expected, Err(reason), "{id} was refused");
                assert!(self.model().slots[id].freed, "a refused task comes back");
            }
        }
    }

    fn cancel(&self, target: Target, own: Own<'_>) {
        let Some((id, handle)) = self.picked(target, own) else { return };
        let mut model = self.model();
        let running = model.slots[id].state == State::InRun;
        let expected = model.cancel(id);
        drop(model);
        // A hook that panics does it here.
        let won = catch_unwind(AssertUnwindSafe(|| handle.cancel()));
        let model = self.model();
        let slot = &model.slots[id];
        if model.failure.is_some() {
            return;
        }
        match won {
            Ok(won) => assert_eq!(won, expected, "cancel of {id}, which is {:?}", slot.state),
            Err(_) => assert!(expected && slot.told && slot.spawn.hook_panics, "cancel of {id} panicked"),
        }
        if expected && !running {
            assert!(slot.freed, "cancel of {id} left its captures behind");
            assert_eq!(slot.told, has_hook(slot.spawn.kind), "the hook of {id}");
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

    /// The task of a timeout. Whether it panics.
    pub(crate) fn run(self: &Arc<Self>, id: usize, timeout: &Timeout) -> bool {
        let mut model = self.model();
        let handed_back = model.begin_run(id, self.mode.is_inline());
        let (due, panics, script) = (model.slots[id].deadline, model.slots[id].spawn.panics, model.run_script(id));
        drop(model);
        assert_eq!(self.nanos(timeout.deadline()), due, "{id} was given another's handle");
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

    /// The hook of a timeout. Whether it panics.
    pub(crate) fn told(self: &Arc<Self>, id: usize, timeout: &Timeout) -> bool {
        let mut model = self.model();
        let slot = &mut model.slots[id];
        assert!(matches!(slot.state, State::Cancelled | State::HandedBack), "{id} was told though {:?}", slot.state);
        assert!(!std::mem::replace(&mut slot.told, true), "{id} was told twice");
        assert!(!slot.freed, "{id} was told after its end");
        let (script, panics) = (slot.spawn.end.clone(), slot.spawn.hook_panics);
        let caught = panics && slot.state == State::HandedBack;
        drop(model);
        assert!(timeout.is_cancelled());
        self.compare();
        for op in &script {
            self.apply(op, Some((id, timeout)));
            self.compare();
        }
        self.model().slots[id].unsettled = caught;
        panics
    }

    /// The captures of a timeout are dropped.
    pub(crate) fn freed(self: &Arc<Self>, id: usize, script: &[Op]) {
        let mut model = self.model();
        let slot = &mut model.slots[id];
        assert!(!std::mem::replace(&mut slot.freed, true), "the captures of {id} were dropped twice");
        assert!(!matches!(slot.state, State::Waiting | State::Handed), "{id} lost its captures");
        drop(model);
        for op in script {
            self.apply(op, None);
            self.compare();
        }
    }

    pub(crate) fn nanos(&self, instant: Instant) -> u128 {
        instant.saturating_duration_since(self.epoch).as_nanos()
    }

    pub(crate) fn duration(&self, until: u128) -> Duration {
        super::edges::nanos(until)
    }
}
