//! A case from its start to its end.

use super::edges;
use super::executors::{Deferred, Mode, Unruly, WorldSlot, closure};
use super::guard::has_hook;
use super::model::Model;
use super::ops::Op;
use super::slot::{NEVER, State};
use super::world::World;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use timer_core::{ManualDriver, MissedTickBehavior, Timer, Unprocessed, WheelKind};

/// Returns the time until the driver's next deadline.
fn until_next(driver: &ManualDriver) -> Option<Duration> {
    driver.next_deadline().map(|next| next.saturating_duration_since(driver.now()))
}

/// The settings of the timer, and the way it ends.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) wheel: WheelKind,
    pub(crate) mode: Mode,
    pub(crate) uptime: Duration,
    pub(crate) bound: Option<usize>,
    pub(crate) missed_runs: MissedTickBehavior,
    pub(crate) end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Stops the timer and runs the timeouts that it hands back.
    StopAndRun,
    StopAndDrop,
    DropDriver,
    /// Moves time until only timeouts are left that never come.
    RunDry,
}

impl End {
    pub(crate) const ALL: [End; 4] = [End::StopAndRun, End::StopAndDrop, End::DropDriver, End::RunDry];
}

/// Numbers of slots of a hashed wheel.
pub(crate) const SLOTS: [usize; 4] = [1, 2, 8, 512];

pub(crate) fn run(setup: &Setup, ops: &[Op]) {
    let case = Case::new(setup);
    let world = case.world.clone();
    // After a failure the remaining tasks do nothing.
    world.watched(|| case.run(setup, ops));
    if !world.is_given_up() {
        world.report();
    }
}

struct Case {
    world: Arc<World>,
    driver: ManualDriver,
    deferred: Arc<Deferred>,
}

impl Case {
    fn new(setup: &Setup) -> Self {
        let deferred = Arc::new(Deferred::default());
        let unruly = Arc::new(Unruly::default());
        let known: [WorldSlot; 3] = [deferred.known.clone(), unruly.known.clone(), WorldSlot::default()];
        let mut builder = Timer::builder().wheel(setup.wheel).missed_runs(setup.missed_runs);
        if let Some(bound) = setup.bound {
            builder = builder.max_pending_timeouts(bound);
        }
        builder = match setup.mode {
            Mode::Immediate => builder,
            Mode::Closure => builder.executor(closure(known[2].clone())),
            Mode::Unruly => builder.executor(unruly),
            Mode::Deferred => builder.executor(deferred.clone()),
        };
        let (timer, driver) = builder.build_manual().unwrap();
        let began = u128::from(driver.origin());
        let model = Model::new(began, setup.bound, setup.missed_runs, setup.mode == Mode::Deferred);
        let world = Arc::new(World::new(timer, driver.now(), began, setup.mode, model));
        known.iter().for_each(|known| known.set(Arc::downgrade(&world)).unwrap());
        Self { world, driver, deferred }
    }

    fn run(mut self, setup: &Setup, ops: &[Op]) {
        self.advance(setup.uptime);
        for op in ops {
            self.apply(op);
        }
        if setup.end == End::RunDry {
            self.run_dry();
        }
        self.finish(setup.end, ops);
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Advance(by) => self.advance(by),
            Op::AdvanceToNext(beside) => {
                let next = until_next(&self.driver).unwrap_or_default();
                let beside_next = next.as_nanos().saturating_add_signed(beside.into());
                // Only an explicit operation goes to the end of time.
                if next < Duration::from_secs(1 << 48) {
                    self.advance(edges::nanos(beside_next));
                }
            }
            Op::RunQueued(any) => {
                if let Some(task) = self.deferred.take(any) {
                    self.world.run_in_executor(task);
                }
            }
            Op::DropQueued(any) => {
                if let Some(task) = self.deferred.take(any) {
                    drop(task);
                    let mut model = self.world.model();
                    let handed = model.slots.iter().filter(|slot| slot.state == State::Handed).count() as u64;
                    // Otherwise a spare task takes its place.
                    model.lost += u64::from(self.deferred.len() + model.lost < handed);
                }
            }
            _ => {
                self.world.watched(|| self.world.apply(op, None));
            }
        }
        self.compare();
    }

    fn compare(&self) {
        self.world.compare_at_rest();
        self.world.compare_driver(&self.driver);
    }

    fn advance(&mut self, by: Duration) {
        let world = &self.world;
        let mut model = world.model();
        model.depart(by);
        let lags = model.counts.lags;
        drop(model);

        let handed_over = self.driver.advance(by) as u64;

        world.report();
        let mut model = world.model();
        model.arrive();
        assert_eq!(handed_over, model.counts.lags - lags, "the number of hand-overs that advance returns");
    }

    /// Moves time until only timeouts are left that never come.
    fn run_dry(&mut self) {
        for _ in 0..100_000 {
            let earliest = self.world.model().next();
            let (Some(next), Some(..NEVER)) = (until_next(&self.driver), earliest) else { break };
            self.advance(next);
            while let Some(task) = self.deferred.take(0) {
                self.world.run_in_executor(task);
            }
            self.world.report();
        }
        self.compare();
        let model = self.world.model();
        assert!(model.waiting().all(|id| model.slots[id].deadline == NEVER), "timeouts are left that should have run");
    }

    fn finish(self, end: End, ops: &[Op]) {
        let Case { world, driver, deferred } = self;
        world.model().close();
        let back = match end {
            End::DropDriver => {
                let back = world.model().hand_back();
                drop(driver);
                back
            }
            _ => {
                // Lost tasks run before the timer hands timeouts back.
                let unprocessed = driver.stop();
                let back = world.model().hand_back();
                world.report();
                world.compare();
                end_all(&world, &back, unprocessed, end == End::StopAndDrop);
                back
            }
        };
        world.report();
        assert_eq!(world.model().counts.executor_rejections, world.timer.stats().executor_rejections, "lost tasks ran");
        // The executor still has the tasks that were handed over before the stop. It may run them
        // or lose them, and they run in both cases.
        while let Some(task) = deferred.take(usize::MAX) {
            if end == End::StopAndRun {
                world.run_in_executor(task);
            } else {
                drop(task);
            }
            world.report();
        }
        let mut model = world.model();
        model.count_panics();
        for id in &back {
            model.slots[*id].state = State::Cancelled;
        }
        let goes_on = |id: &usize| matches!(model.slots[*id].state, State::Waiting | State::Handed | State::InRun);
        assert_eq!((0..model.slots.len()).find(goes_on), None, "a timeout has not ended");
        assert_eq!(model.pending(), 0);
        drop(model);
        world.compare_at_rest();
        // Later operations change nothing.
        let from_outside = |op: &&Op| {
            !matches!(op, Op::Advance(_) | Op::AdvanceToNext(_) | Op::RunQueued(_) | Op::DropQueued(_) | Op::Stop)
        };
        for op in ops.iter().filter(from_outside).take(10) {
            world.watched(|| world.apply(op, None));
            world.compare_at_rest();
        }
        assert!(world.timer.start().is_err());
    }
}

/// Checks that `stop` has handed back each waiting timeout once, and ends them.
fn end_all(world: &Arc<World>, back: &[usize], unprocessed: Vec<Unprocessed>, drop_all: bool) {
    let sorted = |mut deadlines: Vec<u128>| {
        deadlines.sort_unstable();
        deadlines
    };
    let expected = sorted(back.iter().map(|id| world.model().slots[*id].deadline).collect());
    let handed = sorted(unprocessed.iter().map(|left| world.nanos(left.deadline())).collect());
    assert_eq!(handed, expected, "the deadlines of the timeouts that were handed back");
    for left in unprocessed {
        assert!(left.timeout().is_cancelled() && !left.timeout().is_expired() && !left.timeout().cancel());
        if drop_all {
            drop(left);
        } else {
            // The panic of a task that runs here reaches this call.
            let _ = catch_unwind(AssertUnwindSafe(|| left.run()));
        }
        world.report();
    }
    for id in back {
        let slot = &world.model().slots[*id];
        assert!(slot.freed, "{id} was handed back and kept its captures");
        assert_eq!(slot.hook_called, drop_all && has_hook(slot.spawn.kind), "the hook of {id}");
    }
}
