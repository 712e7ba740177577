//! A storm: more threads than cores that schedule, cancel, move and forget timeouts, whose tasks do
//! the same.

use crate::capture::taking_back;
use crate::ledger::{Kind, Ledger, Record, lock};
use crate::support::random::{Draw, Rng};
use crate::work::{Act, Hooked, Work};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_core::{RejectReason, RejectedTimeout, Timeout, Timer, Unprocessed, WeakTimer};

/// A handle and its record.
pub(crate) type Tracked = (Timeout, Arc<Record>);

/// The number of handles that a thread keeps.
const KEPT: usize = 24;
/// The number of places where threads exchange handles.
const STALLS: usize = 8;
/// A delay that does not end during the storm.
pub(crate) const FAR: Duration = Duration::from_secs(3_600);

/// The data that all threads and tasks of a storm share.
pub(crate) struct Storm {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) timer: WeakTimer,
    pub(crate) bound: Option<usize>,
    /// Whether tasks also stop the timer.
    pub(crate) tasks_stop: bool,
    /// Whether a thread or a task has stopped or dropped the timer, or is about to.
    pub(crate) ends: AtomicBool,
    stalls: [Mutex<Option<Tracked>>; STALLS],
}

impl Storm {
    pub(crate) fn new(ledger: Arc<Ledger>, timer: &Timer, bound: Option<usize>, tasks_stop: bool) -> Self {
        let (timer, ends, stalls) = (timer.downgrade(), AtomicBool::new(false), Default::default());
        Self { ledger, timer, bound, tasks_stop, ends, stalls }
    }

    /// Runs one thread, with `halfway` in the middle. If `ends_all` is set, the thread ends its far
    /// timeouts, because no other thread will.
    pub(crate) fn thread(
        self: &Arc<Self>,
        mut random: Rng,
        amount: usize,
        ends_all: bool,
        halfway: Option<impl FnOnce()>,
    ) {
        let mut halfway = halfway;
        let mut kept: Vec<Tracked> = Vec::new();
        let mut far: Vec<Tracked> = Vec::new();
        for at in 0..amount {
            if at == amount / 2
                && let Some(halfway) = halfway.take()
            {
                halfway();
            }
            match random.usize(..19) {
                0..8 => {
                    if let Some((held, is_far)) = self.schedule(&mut random, true) {
                        if is_far && ends_all {
                            far.push(held.clone());
                        }
                        if random.one_in(3) {
                            // Two threads now have the same handle, and this one takes the former
                            // handle of the place.
                            let former = lock(&self.stalls[random.usize(..STALLS)]).replace(held.clone());
                            kept.extend(former);
                        }
                        kept.push(held);
                        while kept.len() > KEPT {
                            let (timeout, record) = kept.swap_remove(random.usize(..KEPT));
                            if !random.one_in(4) {
                                self.ledger.cancel(&timeout, &record);
                            }
                        }
                    }
                }
                8 | 9 if !kept.is_empty() => {
                    let (timeout, record) = kept.swap_remove(random.usize(..kept.len()));
                    self.ledger.cancel(&timeout, &record);
                }
                10 if !kept.is_empty() => {
                    let held = &kept[random.usize(..kept.len())];
                    let (delay, is_far) = delay(&mut random);
                    self.ledger.reset(&held.0, &held.1, delay);
                    if is_far && ends_all {
                        far.push(held.clone());
                    }
                }
                11 if !kept.is_empty() => {
                    // Every second reset goes back and uses the shard, which other threads use at
                    // the same time.
                    let (timeout, record) = kept[random.usize(..kept.len())].clone();
                    let near = random.micros(1_000);
                    for n in 0..20 {
                        self.ledger.reset(&timeout, &record, near + Duration::from_micros(n % 2));
                    }
                }
                12 if !kept.is_empty() => drop(kept.swap_remove(random.usize(..kept.len()))),
                13 => self.with_sibling(&mut random, |(timeout, record)| {
                    self.ledger.cancel(timeout, record);
                }),
                14 => {
                    let delay = random.micros(500);
                    self.with_sibling(&mut random, |(timeout, record)| self.ledger.reset(timeout, record, delay));
                }
                15 => self.look(),
                16 if !kept.is_empty() => {
                    let (timeout, record) = &kept[random.usize(..kept.len())];
                    self.ledger.expire_now(timeout, record);
                }
                17 if !kept.is_empty() => {
                    let (timeout, record) = kept.swap_remove(random.usize(..kept.len()));
                    self.ledger.cancel_and_wait(&timeout, &record);
                }
                18 if !kept.is_empty() => {
                    let (timeout, record) = kept.swap_remove(random.usize(..kept.len()));
                    self.ledger.cancel_thrice(&timeout, &record);
                }
                _ => {}
            }
        }
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
        let ended = stats.expired + stats.cancelled;
        self.ledger.check(stats.scheduled >= ended, "more have ended than were scheduled");
        if let Some(bound) = self.bound {
            self.ledger.check(timer.pending_timeouts() <= bound, "more are pending than the bound");
        }
    }

    pub(crate) fn rearm(self: &Arc<Self>, random: &mut Rng) {
        drop(self.schedule(random, false));
    }

    /// Schedules a timeout of a random kind. Tasks schedule near ones only, which end by
    /// themselves. The result contains `true` if the timeout is far or periodic.
    fn schedule(self: &Arc<Self>, random: &mut Rng, from_outside: bool) -> Option<(Tracked, bool)> {
        let timer = self.timer.upgrade();
        self.ledger.check(timer.is_some() || self.ends.load(Ordering::Acquire), "the timer is gone");
        let timer = timer?;
        let kind = random.pick(&[Kind::Closure, Kind::Closure, Kind::Task, Kind::Periodic]);
        let (mut after, mut is_far) = delay(random);
        if !from_outside && (is_far || kind == Kind::Periodic) {
            (after, is_far) = (random.micros(300), false);
        }
        let mut capture = self.ledger.open(kind, after);
        if from_outside && random.one_in(8) {
            capture.guards = lock(&self.stalls[random.usize(..STALLS)]).clone();
        }
        let mut act = random.pick(&Act::DRAWN);
        if !from_outside {
            // Most tasks do nothing, so each generation is smaller.
            act = if random.one_in(3) { act } else { Act::Nothing };
        } else if random.one_in(100) {
            act = if self.tasks_stop && random.one_in(2) { Act::Stop } else { Act::Slow };
        }
        let record = capture.record.clone();
        let (last, own) = (random.u64(1..7), Rng::with_seed(random.u64(..)));
        let mut work = Work { storm: self.clone(), capture, act, random: own, last };
        let (period, at_an_instant) = (Duration::from_micros(1) + random.micros(300), random.one_in(4));
        let scheduled = match kind {
            Kind::Closure => {
                let run = move |timeout: &Timeout| work.run(timeout);
                match record.not_before.filter(|_| at_an_instant) {
                    Some(then) => self.check_rejection(timer.new_timeout_at(then, run), &record),
                    None => self.check_rejection(timer.new_timeout(after, run), &record),
                }
            }
            Kind::Task => self.check_rejection(timer.new_timeout_task(after, Hooked(work)), &record),
            Kind::Periodic if random.one_in(2) => {
                let run = move |timeout: &Timeout| work.run(timeout);
                self.check_rejection(timer.schedule_at_fixed_rate(after, period, run), &record)
            }
            Kind::Periodic => {
                let run = move |timeout: &Timeout| work.run(timeout);
                self.check_rejection(timer.schedule_with_fixed_delay(after, period, run), &record)
            }
        };
        let timeout = scheduled?;
        if kind != Kind::Periodic {
            let not_after = self.ledger.clock.latest().checked_add(after);
            let right =
                |then| timeout.deadline() >= then && not_after.is_none_or(|not_after| timeout.deadline() <= not_after);
            self.ledger.check(record.not_before.is_none_or(right), "the deadline is not the call plus the delay");
        }
        Some(((timeout, record), is_far || kind == Kind::Periodic))
    }

    fn check_rejection<T>(&self, scheduled: Result<Timeout, RejectedTimeout<T>>, record: &Record) -> Option<Timeout> {
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
        let sibling = lock(&self.stalls[random.usize(..STALLS)]).take();
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
        taking_back(|| {
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
        self.stalls.iter().for_each(|stall| drop(lock(stall).take()));
    }
}

/// Draws a delay. The result contains `true` if it is far.
fn delay(random: &mut Rng) -> (Duration, bool) {
    match random.usize(..10) {
        0 | 1 => (Duration::ZERO, false),
        2..5 => (random.micros(50), false),
        5..8 => (random.micros(2_000), false),
        8 => (FAR + random.micros(5_000_000), true),
        _ => (Duration::MAX, true),
    }
}
