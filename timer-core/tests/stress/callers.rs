//! The threads that use the timer.

use crate::ledger::{Kind, Ledger, Record, lock, taking_back};
use crate::support::HOUR;
use crate::support::random::{Draw, Rng};
use crate::work::{Act, Hooked, Work};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timer_core::{RejectReason, ScheduleError, Timeout, Timer, Unprocessed, WeakTimer};

/// A handle and its record.
pub(crate) type Tracked = (Timeout, Arc<Record>);

/// The number of handles that a thread keeps.
const KEPT: usize = 24;
/// The number of places where threads exchange handles.
const PLACES: usize = 8;

/// The data that all threads and tasks of a round share.
pub(crate) struct Shared {
    pub(crate) ledger: Arc<Ledger>,
    timer: WeakTimer,
    bound: Option<usize>,
    has_virtual_time: bool,
    /// Whether tasks also stop the timer.
    tasks_stop: bool,
    /// Whether a thread or a task has stopped or dropped the timer, or is about to.
    pub(crate) ends: AtomicBool,
    places: [Mutex<Option<Tracked>>; PLACES],
}

impl Shared {
    pub(crate) fn new(
        ledger: Arc<Ledger>,
        timer: &Timer,
        bound: Option<usize>,
        has_virtual_time: bool,
        tasks_stop: bool,
    ) -> Self {
        let timer = timer.downgrade();
        let ends = AtomicBool::new(false);
        let places = Default::default();
        Self { ledger, timer, bound, has_virtual_time, tasks_stop, ends, places }
    }

    /// Returns the timer's current time, or `None` if virtual time is gone with its timer.
    pub(crate) fn now(&self) -> Option<Instant> {
        if self.has_virtual_time { self.timer.upgrade().map(|timer| timer.now()) } else { Some(Instant::now()) }
    }

    /// Runs one thread, with `halfway` in the middle. If `ends_all` is set, the thread ends its far
    /// timeouts, because no other thread will.
    pub(crate) fn call(
        self: &Arc<Self>,
        mut random: Rng,
        amount: usize,
        ends_all: bool,
        mut halfway: Option<impl FnOnce()>,
    ) {
        let ledger = &*self.ledger;
        let (mut kept, mut far): (Vec<Tracked>, Vec<Tracked>) = Default::default();
        for at in 0..amount {
            if at == amount / 2
                && let Some(halfway) = halfway.take()
            {
                halfway();
            }
            let choice = random.usize(..19);
            if choice < 8 || kept.is_empty() {
                let Some((held, is_far)) = self.schedule(&mut random, true) else { continue };
                if is_far && ends_all {
                    far.push(held.clone());
                }
                if random.one_in(3) {
                    // Two threads now have the same handle, and this one takes the former handle of
                    // the place.
                    kept.extend(lock(&self.places[random.usize(..PLACES)]).replace(held.clone()));
                }
                kept.push(held);
                while kept.len() > KEPT {
                    let (timeout, record) = kept.swap_remove(random.usize(..KEPT));
                    if !random.one_in(4) {
                        ledger.cancel(&timeout, &record);
                    }
                }
                continue;
            }
            let place = random.usize(..kept.len());
            let (timeout, record) = kept[place].clone();
            match choice {
                8 | 9 => ledger.cancel(&timeout, &record),
                10 => {
                    let (delay, is_far) = delay(&mut random);
                    ledger.reset(&timeout, &record, delay);
                    if is_far && ends_all {
                        far.push((timeout, record));
                    }
                }
                11 => {
                    // Every second reset goes back and uses the shard, which other threads use at
                    // the same time.
                    let near = random.micros(1_000);
                    (0..20).for_each(|n| ledger.reset(&timeout, &record, near + Duration::from_micros(n % 2)));
                }
                12 => ledger.expire_now(&timeout, &record),
                13 => self.with_sibling(&mut random, |(timeout, record)| ledger.cancel(timeout, record)),
                14 => {
                    let delay = random.micros(500);
                    self.with_sibling(&mut random, |(timeout, record)| ledger.reset(timeout, record, delay));
                }
                15 => self.look(),
                16 => ledger.cancel_and_wait(&timeout, &record),
                17 => ledger.cancel_thrice(&timeout, &record),
                // The handle is dropped.
                _ => {}
            }
            if !(10..16).contains(&choice) {
                kept.swap_remove(place);
            }
        }
        self.end_far(&far);
    }

    /// Ends timeouts that would not expire before the end of the test.
    fn end_far(&self, far: &[Tracked]) {
        for (at, (timeout, record)) in far.iter().enumerate() {
            if at % 2 == 0 {
                self.ledger.cancel(timeout, record);
            } else {
                self.ledger.reset(timeout, record, Duration::ZERO);
            }
        }
    }

    /// Checks conditions that hold at any time.
    fn look(&self) {
        let Some(timer) = self.timer.upgrade() else { return };
        let stats = timer.stats();
        self.ledger.check(stats.scheduled >= stats.expired + stats.cancelled, "more have ended than were scheduled");
        let within = self.bound.is_none_or(|bound| timer.pending_timeouts() <= bound);
        self.ledger.check(within, "more are pending than the bound");
    }

    /// Schedules a timeout of a random kind. Tasks schedule near ones only, which end by
    /// themselves. The result contains `true` if the timeout is far or periodic.
    pub(crate) fn schedule(self: &Arc<Self>, random: &mut Rng, from_outside: bool) -> Option<(Tracked, bool)> {
        let timer = self.timer.upgrade();
        self.ledger.check(timer.is_some() || self.ends.load(Ordering::Acquire), "the timer is gone");
        let timer = timer?;
        let kind = random.pick(&[Kind::Closure, Kind::Closure, Kind::Task, Kind::Periodic]);
        let (mut after, mut is_far) = delay(random);
        if !from_outside && (is_far || kind == Kind::Periodic) {
            (after, is_far) = (random.micros(300), false);
        }
        let mut capture = self.ledger.open(kind, self.now()?.checked_add(after));
        if from_outside && random.one_in(8) {
            capture.guards = lock(&self.places[random.usize(..PLACES)]).clone();
        }
        let mut act = random.pick(&Act::DRAWN);
        if !from_outside {
            // Most tasks do nothing, so each generation is smaller.
            act = if random.one_in(3) { act } else { Act::Nothing };
        } else if random.one_in(100) {
            act = if self.tasks_stop && random.one_in(2) { Act::Stop } else { Act::Slow };
        }
        let record = capture.record.clone();
        let last = random.u64(1..7);
        let own = Rng::with_seed(random.u64(..));
        let mut work = Work { shared: self.clone(), capture, act, random: own, last };
        let period = Duration::from_micros(1) + random.micros(300);
        let at_an_instant = random.one_in(4);
        let timeout = match (kind, record.not_before.filter(|_| at_an_instant)) {
            (Kind::Task, _) => self.check_rejection(timer.new_timeout_task(after, Hooked(work)), &record),
            (Kind::Closure, at) => {
                let run = move |timeout: &Timeout| work.run(timeout);
                let scheduled = match at {
                    Some(at) => timer.new_timeout_at(at, run),
                    None => timer.new_timeout(after, run),
                };
                self.check_rejection(scheduled, &record)
            }
            (Kind::Periodic, at) => {
                let run = move |timeout: &Timeout| work.run(timeout);
                let scheduled = match at {
                    Some(_) => timer.schedule_at_fixed_rate(after, period, run),
                    None => timer.schedule_with_fixed_delay(after, period, run),
                };
                self.check_rejection(scheduled, &record)
            }
        }?;
        if kind != Kind::Periodic
            && let (Some(not_before), Some(now)) = (record.not_before, self.now())
        {
            let deadline = timeout.deadline();
            let is_right = deadline >= not_before && now.checked_add(after).is_none_or(|latest| deadline <= latest);
            self.ledger.check(is_right, "the deadline is not the call plus the delay");
        }
        Some(((timeout, record), is_far || kind == Kind::Periodic))
    }

    fn check_rejection<T>(&self, scheduled: Result<Timeout, ScheduleError<T>>, record: &Record) -> Option<Timeout> {
        let rejected = match scheduled {
            Ok(timeout) => return Some(timeout),
            Err(rejected) => rejected,
        };
        let expected = match rejected.reason {
            RejectReason::Stopped => self.ends.load(Ordering::Acquire),
            RejectReason::TooManyPending { max } => Some(max) == self.bound,
            _ => false,
        };
        self.ledger.check(expected, "rejected without a reason");
        self.ledger.check(record.freed.load(Ordering::Acquire) == 0, "a rejected task did not come back");
        record.rejected.fetch_add(1, Ordering::AcqRel);
        None
    }

    pub(crate) fn with_sibling(&self, random: &mut Rng, f: impl FnOnce(&Tracked)) {
        let sibling = lock(&self.places[random.usize(..PLACES)]).take();
        if let Some(sibling) = sibling {
            f(&sibling);
        }
    }

    /// Stops the timer and ends the timeouts that it hands back.
    pub(crate) fn stop(&self) {
        self.ends.store(true, Ordering::Release);
        let Some(timer) = self.timer.upgrade() else { return };
        if let Ok(unprocessed) = timer.stop() {
            self.take_back(unprocessed);
        }
    }

    /// Runs and drops the timeouts in turn.
    pub(crate) fn take_back(&self, unprocessed: Vec<Unprocessed>) {
        taking_back(true, || {
            for (at, left) in unprocessed.into_iter().enumerate() {
                self.ledger.check(left.timeout().is_cancelled(), "handed back and not cancelled");
                self.ledger.check(!left.timeout().cancel(), "cancelled after it was handed back");
                if at % 2 == 0 {
                    let _ = catch_unwind(AssertUnwindSafe(|| left.run()));
                } else {
                    drop(left);
                }
            }
        });
    }

    /// Drops the handles that no thread has taken.
    pub(crate) fn clear(&self) {
        self.places.iter().for_each(|place| drop(lock(place).take()));
    }
}

/// Draws a delay. The result contains `true` if it is far.
fn delay(random: &mut Rng) -> (Duration, bool) {
    match random.usize(..10) {
        0 | 1 => (Duration::ZERO, false),
        2..5 => (random.micros(50), false),
        5..8 => (random.micros(2_000), false),
        8 => (HOUR + random.micros(5_000_000), true),
        _ => (Duration::MAX, true),
    }
}
