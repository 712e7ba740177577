//! A timer on virtual time with its model, and the ways to move time.

use super::model::{Kind, Model};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use timer_core::{ManualDriver, Timeout, Timer, WheelKind};

/// Deadlines below this time of the system's clock are exact. Later ones are rounded up to the next
/// unit.
const EXACT: u64 = 1 << 59;
const UNIT: u64 = 32;

pub(crate) struct World {
    timer: Timer,
    epoch: Instant,
    /// The start in nanoseconds of the system's clock.
    began: u64,
    model: Mutex<Model>,
}

impl World {
    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap()
    }

    fn nanos(&self, instant: Instant) -> u64 {
        u64::try_from((instant - self.epoch).as_nanos()).unwrap()
    }

    /// Schedules a timeout for `delay` after `now`, which must be the present of the timer.
    pub(crate) fn schedule(self: &Arc<Self>, now: u64, delay: u64, kind: Kind) -> usize {
        let (id, world, nanos) = (self.model().open(kind), self.clone(), Duration::from_nanos);
        let run = move |timeout: &Timeout| world.run(id, timeout);
        let scheduled = match kind {
            Kind::Once | Kind::Link(_) => self.timer.new_timeout(nanos(delay), run).unwrap(),
            Kind::Rate(period) => self.timer.schedule_at_fixed_rate(nanos(delay), nanos(period), run).unwrap(),
            Kind::Delay(pause) => self.timer.schedule_with_fixed_delay(nanos(delay), nanos(pause), run).unwrap(),
        };
        let (deadline, wanted) = (self.nanos(scheduled.deadline()), now + delay);
        let absolute = self.began + wanted;
        let rounded = if absolute < EXACT { absolute } else { absolute.next_multiple_of(UNIT) };
        let right = self.began + deadline == rounded;
        let mut model = self.model();
        model.check(right, || format!("{id}: due {delay} after {now}, hence at {wanted} and not at {deadline}"));
        model.accepted(id, deadline, scheduled);
        id
    }

    fn run(self: &Arc<Self>, id: usize, timeout: &Timeout) {
        let deadline = self.nanos(timeout.deadline());
        let kind = self.model().runs(id, deadline);
        if let Kind::Link(delay) = kind {
            // The next deadline is right only if the task sees its own deadline as the present.
            let next = if id.is_multiple_of(4) { Kind::Once } else { Kind::Link(delay / 3 + 1) };
            self.schedule(deadline, delay, next);
        }
    }

    pub(crate) fn cancel(&self, id: usize) {
        let (expected, handle) = {
            let mut model = self.model();
            (model.cancel(id), model.handle(id))
        };
        if let Some(handle) = handle {
            let won = handle.cancel();
            self.model().check(won == expected, || format!("cancel of {id} returned {won}"));
        }
    }

    /// Moves a timeout. Returns `false` if it has ended.
    pub(crate) fn reset(&self, id: usize, now: u64, delay: u64) -> bool {
        let Some(handle) = self.model().handle(id) else { return false };
        let expected = self.model().reset(id, now + delay);
        let won = handle.reset(Duration::from_nanos(delay));
        self.model().check(won == expected, || format!("reset of {id} returned {won}"));
        won
    }
}

/// A world and the position in its time.
pub(crate) struct Run {
    pub(crate) world: Arc<World>,
    driver: ManualDriver,
    /// Times at which long jumps stop for a check, the next one last.
    stops: Vec<u64>,
    pub(crate) jumps: u64,
    pub(crate) hops: u64,
    pub(crate) empty_hops: u64,
}

impl Run {
    pub(crate) fn new(wheel: WheelKind, stops: impl IntoIterator<Item = u64>) -> Self {
        let (timer, driver) = Timer::builder().wheel(wheel).build_manual().unwrap();
        let world = World { timer, epoch: driver.now(), began: driver.origin(), model: Mutex::default() };
        let mut stops: Vec<u64> = stops.into_iter().collect();
        stops.sort_unstable_by(|a, b| b.cmp(a));
        Self { world: Arc::new(world), driver, stops, jumps: 0, hops: 0, empty_hops: 0 }
    }

    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.driver.elapsed().as_nanos()).unwrap()
    }

    pub(crate) fn schedule(&self, delay: u64, kind: Kind) -> usize {
        self.world.schedule(self.now(), delay, kind)
    }

    /// Moves time by `by` and checks the model at every stop on the way.
    pub(crate) fn jump(&mut self, by: u64) {
        let target = self.now() + by;
        while let Some(stop) = self.stops.pop_if(|stop| *stop <= target) {
            if stop > self.now() {
                self.advance(stop - self.now());
            }
        }
        self.advance(target - self.now());
        self.jumps += 1;
    }

    /// Moves time to the next expiry. Returns `false` if nothing waits.
    pub(crate) fn hop(&mut self) -> bool {
        let (now, first) = (self.now(), self.world.model().first());
        let Some(next) = self.driver.next_expiry() else {
            assert_eq!(first, None, "the timer has no next expiry");
            return false;
        };
        let next = u64::try_from(next.as_nanos()).unwrap();
        let first = first.unwrap_or_else(|| panic!("nothing waits, and the next expiry is in {next}"));
        assert!(now + next <= first, "the next expiry is {next} after {now}, but {first} is the earliest deadline");
        let ran = self.advance(next);
        // A hop may find nothing where a timeout was that has been cancelled or moved since.
        assert_eq!(ran > 0, now + next == first);
        self.hops += 1;
        self.empty_hops += u64::from(ran == 0);
        true
    }

    fn advance(&mut self, by: u64) -> u64 {
        let from = self.now();
        let before = {
            let mut model = self.world.model();
            model.depart(from, from + by);
            model.runs
        };
        let counted = self.driver.advance(Duration::from_nanos(by)) as u64;
        let model = self.world.model();
        model.report();
        let (now, runs, first) = (self.now(), model.runs - before, model.first());
        assert_eq!((now, counted), (from + by, runs), "the present, and the number of runs");
        assert!(first.is_none_or(|first| first > now), "by {now} one that is due at {first:?} has not run");
        assert_eq!(self.world.timer.pending_timeouts(), model.pending());
        runs
    }

    /// Runs everything that waits and checks the final counts.
    pub(crate) fn run_dry(&mut self) {
        while self.hop() {}
        let (stats, model) = (self.world.timer.stats(), self.world.model());
        let ended = model.len() as u64;
        assert_eq!((stats.pending, self.world.timer.pending_timeouts(), model.pending()), (0, 0, 0));
        assert_eq!((stats.scheduled, stats.expired + stats.cancelled), (ended, ended));
        assert_eq!((stats.cancelled, stats.runs, stats.task_panics), (model.cancelled, model.runs, 0));
        assert_eq!((stats.timeout_lag.max(), stats.timeout_lag.sum()), (Duration::ZERO, Duration::ZERO), "late");
        let vain = model.cancelled + model.resets;
        assert!(self.empty_hops <= vain, "{} empty hops, but {vain} cancels and resets", self.empty_hops);
    }
}
