//! The work of the owner of the turn in a shard. It visits a shard in which entries may be due,
//! takes them out, and relinks the entries that were moved to a later deadline.

use super::inbox::{CROWDED_CAPACITY, MAX_HELPED, Request};
use super::{Core, EntryWheel, MAX_PER_LOCK, Shard, Slots};
use crate::config::WheelKind;
use crate::deadline::{IMMEDIATE, NO_TICK};
use crate::entry::Timeout;
use crate::sync::{Guard, Ordering};
use crate::timer_context::TimerContext;

/// The kind of a visit's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VisitStep {
    /// The first one, which takes out the entries that were due when they were linked. If there are
    /// none, as `Next`.
    First,
    /// As `First`, but does not wait for the lock. If the lock is held, reserves it. The owner of
    /// the turn must make the step `First` soon.
    TryFirst,
    /// Takes out entries of the first bucket in which some may be due. Entries that were linked as
    /// overdue since the visit began belong to the next visit.
    Next,
}

/// The outcome of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum VisitOutcome {
    /// The wheel has made a step, which may have taken entries out. More steps may be necessary.
    Step,
    /// The wheel has no due entries, but requests are left that may link some.
    Requests,
    /// The wheel may have made a step. No other entries are due.
    Last,
    /// The lock is held, and is reserved now.
    Held,
}

impl Shard {
    /// Returns the earliest tick at which an entry may be due, or an earlier one.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        // The inbox comes first, because a request that has left it is visible in `next`.
        let due = self.inbox.due();
        // ORDERING: Relaxed, the alarm's word orders this load after the store that matters, or
        // that of `due` does.
        due.min(self.next.load(Ordering::Relaxed))
    }

    /// Serves some requests and takes due entries out into `out`, which must be empty. Called by
    /// the owner of the turn of `tick`.
    pub(crate) fn visit(&self, step: VisitStep, tick: u64, out: &mut Slots, context: &TimerContext) -> VisitOutcome {
        let mut core = match (self.lock.lock_or_reserve(), step) {
            (Some(core), _) => core,
            (None, VisitStep::TryFirst) => return VisitOutcome::Held,
            (None, VisitStep::First | VisitStep::Next) => self.wait_for_lock(context),
        };
        let mut drop_after_unlock = Vec::new();
        let mut requests = self.inbox.has_requests().then(|| self.inbox.drain());
        for request in requests.iter_mut().flat_map(|requests| requests.drain(..)) {
            let _ = self.reconcile(&mut core, request, &mut drop_after_unlock);
        }
        let has_stepped = if step != VisitStep::Next && core.wheel.base().has_overdue() {
            core.wheel.base_mut().take_overdue(out);
            true
        } else {
            core.wheel.take_next(tick, out)
        };
        let cascaded = core.wheel.take_cascaded();
        let earliest = core.wheel.earliest().unwrap_or(NO_TICK);
        let next = if core.wheel.base().has_overdue() { IMMEDIATE } else { earliest };
        // ORDERING: Relaxed, as in `link`.
        self.next.store(next, Ordering::Relaxed);
        let _free_after_unlock = core.wheel.base_mut().take_discarded();
        let more = earliest <= tick || core.wheel.has_stale_bound();
        drop(core);
        if cascaded > 0 {
            context.counters.cascaded.add(cascaded);
        }
        match (more || self.inbox.due() <= tick, has_stepped) {
            (false, _) => VisitOutcome::Last,
            (true, true) => VisitOutcome::Step,
            (true, false) => VisitOutcome::Requests,
        }
    }

    /// Waits for the lock of the shard, and counts the time.
    #[cold]
    fn wait_for_lock(&self, context: &TimerContext) -> Guard<'_, Core> {
        let began = context.now();
        let core = self.lock.lock_reserved();
        context.counters.lock_waits.add(context.now().saturating_sub(began));
        core
    }

    /// Gives a caller at the gate time to wake up and lock. Called by the owner of the turn between
    /// steps of a visit.
    pub(crate) fn offer_lock(&self) {
        self.lock.offer();
    }

    /// Holds the lock until the worker sleeps for it, and then calls `held`.
    #[cfg(all(test, not(timer_loom)))]
    pub(crate) fn hold_up_worker(&self, has_locked: impl FnOnce(), held: impl FnOnce()) {
        let core = self.lock.lock();
        has_locked();
        while !self.lock.worker_sleeps() {
            crate::sync::yield_now();
        }
        held();
        self.unlock(core);
    }

    /// Relinks entries that were taken out and have been moved to a later deadline, unless they
    /// have ended. Called by the owner of the turn. If the shard is closed, the entries stay in
    /// `entries`.
    pub(crate) fn give_back(&self, entries: &mut Vec<(u64, Timeout)>, context: &TimerContext) {
        while !entries.is_empty() {
            let mut chunk = entries.split_off(entries.len().saturating_sub(MAX_PER_LOCK));
            chunk.iter().for_each(|(_, timeout)| timeout.prefetch());
            let mut core = self.lock.lock_or_reserve().unwrap_or_else(|| self.wait_for_lock(context));
            let mut drop_after_unlock = Vec::new();
            // The owner of the turn keeps the lease, so a closed shard is the only refusal.
            if core.lease.serving(self.id()).is_some() {
                for (tick, timeout) in chunk.drain(..) {
                    let _ = self.reconcile(&mut core, Request { timeout, tick }, &mut drop_after_unlock);
                }
            }
            let _free_after_unlock = core.wheel.base_mut().take_discarded();
            drop(core);
            if !chunk.is_empty() {
                return entries.append(&mut chunk);
            }
        }
    }

    /// Serves all waiting requests. Returns entries that the caller drops after it has unlocked.
    fn serve_all(&self, core: &mut Core) -> Vec<Timeout> {
        let mut drop_after_unlock = Vec::new();
        // Requests that other threads push now come last and need not be served.
        let mut drains = 0..=CROWDED_CAPACITY / MAX_HELPED;
        while self.inbox.has_requests() && drains.next().is_some() {
            for request in *self.inbox.drain() {
                let _ = self.reconcile(core, request, &mut drop_after_unlock);
            }
        }
        drop_after_unlock
    }

    /// Serves all waiting requests and takes all entries out. The caller links those again that are
    /// to stay. They go into a hashed wheel, which compares, because the other ones have locations
    /// of the former wheel. Futures register no deadlines here from now on. Called by `drain`.
    pub(crate) fn take_all(&self) -> impl Iterator<Item = Timeout> + use<> {
        let mut core = self.lock.lock();
        let drop_after_unlock = self.serve_all(&mut core);
        let wheel = std::mem::replace(&mut core.wheel, EntryWheel::new(WheelKind::Hashed { ticks_per_wheel: 512 }));
        self.lease_hint.close();
        self.unlock(core);
        drop(drop_after_unlock);
        wheel.into_entries()
    }

    /// Serves all waiting requests and returns the earliest tick at which an entry may be due.
    /// Returns `None` if no entry is linked. Called by drivers of virtual time.
    pub(crate) fn earliest(&self) -> Option<u64> {
        let mut core = self.lock.lock();
        let drop_after_unlock = self.serve_all(&mut core);
        let earliest = if core.wheel.base().has_overdue() { Some(IMMEDIATE) } else { core.wheel.earliest() };
        // The driver may sleep until this tick, so callers must not compare with a lower one.
        // ORDERING: Relaxed, as in `link`.
        self.next.store(earliest.unwrap_or(NO_TICK), Ordering::Relaxed);
        self.unlock(core);
        drop(drop_after_unlock);
        earliest
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use crate::clock::Present;
    use crate::config::{Config, WheelKind};
    use crate::deadline::Deadline;
    use crate::entry::Closure;
    use crate::resolution::Resolution;
    use crate::shard::inbox::{MAX_HELPED, PushOutcome, RequestKind};
    use crate::shard::pool;
    use crate::sync::Arc;

    /// Drops the entries that a step has taken out, and returns their number.
    fn taken(out: &mut Slots) -> u64 {
        let entries = out.take_all().map(|(_, linked)| drop(linked.into_timeout()));
        entries.count() as u64
    }

    #[test]
    fn an_empty_wheel_catches_up_with_the_clock() {
        const TICK: u64 = 1_000_000;
        const SECOND: u64 = 1_000_000_000;
        const MANY: u64 = 1000;
        let context = Arc::new(TimerContext::new(&Config::default(), Present::real(), Resolution::ticks(TICK)));
        for wheel in [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 512 }] {
            let block = pool().lease(1);
            block.open(&context, wheel);
            let shard = block.shards[0];
            // A new shard, and one that was idle for a long time.
            for now in [20_000 * SECOND, 205_000 * SECOND] {
                let deadlines = (0..MANY).map(|nth| now + SECOND * (10 + 3 * nth));
                for deadline in deadlines.clone() {
                    let (_, timeout) = Timeout::new(shard.id(), Deadline::up(deadline), Closure(|_: &Timeout| {}));
                    assert!(shard.schedule(timeout, now).is_some());
                }
                let mut seen = 0;
                for due in deadlines {
                    let visit = |out: &mut Slots| shard.visit(VisitStep::Next, due / TICK, out, &context);
                    let mut out = Slots::default();
                    while visit(&mut out) == VisitOutcome::Step {
                        // A bucket of 262 s has 88 of the entries.
                        assert!(out.values < 100, "{wheel:?}: {} at once", out.values);
                        seen += taken(&mut out);
                    }
                    seen += taken(&mut out);
                }
                assert_eq!(seen, MANY);
            }
            drop(shard.close());
        }
    }

    fn exact() -> Arc<TimerContext> {
        Arc::new(TimerContext::new(&Config::default(), Present::real(), Resolution::Exact(0)))
    }

    /// Between the steps, another caller schedules timeouts that are due first, and cancels them.
    #[test]
    fn a_visit_to_a_hashed_wheel_ends_although_bounds_become_stale() {
        const LISTS: u64 = 8;
        let context = exact();
        let block = pool().lease(1);
        block.open(&context, WheelKind::Hashed { ticks_per_wheel: LISTS as usize });
        let shard = block.shards[0];
        let schedule = |tick| {
            let (timeout, linked) = Timeout::new(shard.id(), Deadline::up(tick), Closure(|_: &Timeout| {}));
            assert!(shard.schedule(linked, 0).is_some());
            timeout
        };
        (0..12 * LISTS).for_each(|nth| drop(schedule((1 << 40) + nth)));
        (1..=LISTS).for_each(|tick| drop(schedule(tick)));
        let mut all = 0;
        let mut steps = 0;
        loop {
            let mut out = Slots::default();
            let outcome = shard.visit(VisitStep::Next, LISTS, &mut out, &context);
            all += taken(&mut out);
            steps += 1;
            if outcome == VisitOutcome::Last {
                break;
            }
            for tick in LISTS + 1..=2 * LISTS {
                for timeout in [schedule(tick), schedule(tick)] {
                    drop(timeout.clone().cancel_by_stop());
                    shard.unlink_cancelled(&timeout);
                }
            }
            assert!(steps < 1_000);
        }
        assert!(all == LISTS && steps <= 1 + LISTS, "{steps} steps read {LISTS} lists");
        assert_eq!(shard.earliest(), Some(LISTS + 1), "a bound of the caller");
        drop(shard.close());
    }

    #[test]
    fn timeouts_after_a_long_pause_do_not_cascade() {
        let (context, block) = (exact(), pool().lease(1));
        block.open(&context, WheelKind::Hierarchical);
        let shard = block.shards[0];
        for (now, by_request) in [(1 << 30, false), (1 << 40, false), (1 << 50, true)] {
            context.present.set(now);
            for delay in [3, 5] {
                let (_, timeout) = Timeout::new(shard.id(), Deadline::up(now + delay), Closure(|_: &Timeout| {}));
                if by_request {
                    assert!(shard.submit(timeout, now + delay).is_ok());
                } else {
                    assert!(shard.schedule(timeout, now).is_some());
                }
            }
            for delay in [3, 5] {
                let mut out = Slots::default();
                let _ = shard.visit(VisitStep::Next, now + delay, &mut out, &context);
                assert_eq!((taken(&mut out), context.counters.cascaded.get()), (1, 0));
            }
        }
        drop(shard.close());
    }

    #[test]
    fn removals_leave_no_memory_to_be_freed() {
        for wheel in [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 512 }] {
            removals_leave_none(wheel);
        }
    }

    fn removals_leave_none(wheel: WheelKind) {
        let block = pool().lease(1);
        block.open(&exact(), wheel);
        let shard = block.shards[0];
        let schedule = |_| {
            let (timeout, linked) = Timeout::new(shard.id(), Deadline::up(1 << 40), Closure(|_: &Timeout| {}));
            assert!(shard.schedule(linked, 0).is_some());
            timeout
        };
        let timeouts: Vec<Timeout> = (0..1_000).map(schedule).collect();
        for (nth, timeout) in timeouts.iter().enumerate() {
            drop(timeout.clone().cancel_by_stop());
            match nth % 2 {
                0 => shard.unlink_cancelled(timeout),
                _ => assert!(shard.try_unlink_all(&[timeout])),
            }
            let core = shard.lock.lock();
            assert!(core.wheel.base().discarded.is_empty(), "after {nth}");
            shard.unlock(core);
        }
        drop(shard.close());
    }

    #[test]
    fn the_earliest_of_many_requests() {
        let context = exact();
        let block = pool().lease(1);
        block.open(&context, WheelKind::Hierarchical);
        let shard = block.shards[0];
        for nth in 0..3 * MAX_HELPED as u64 {
            // The quota is per millisecond.
            context.present.set(nth << 20);
            let tick = (1 << 40) + nth;
            let (_, timeout) = Timeout::new(shard.id(), Deadline::up(tick), Closure(|_: &Timeout| {}));
            assert!(matches!(
                shard.inbox.push(Request { timeout, tick }, RequestKind::New, false),
                PushOutcome::Accepted { .. }
            ));
        }
        assert_eq!(shard.earliest(), Some(1 << 40));
        drop(shard.close());
    }
}
