//! What the owner of the turn does with a shard: visits it when it is due, takes out what is due by
//! then, puts back what was moved.

use super::inbox::Request;
use super::{MAX_PER_LOCK, Shard, Slots};
use crate::context::Context;
use crate::entry::Timeout;
use crate::sync::Ordering;
use crate::time::{IMMEDIATE, NO_TICK};

/// What the owner of the turn may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// What was due when it came in, if there is any; else as `Next`.
    OverdueFirst,
    /// The first bucket in which something may be due. What has become overdue meanwhile is the
    /// next turn's.
    Next,
}

/// What the owner of the turn has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Taken {
    /// Perhaps something: the wheel has made a step, and may have to make more.
    Step,
    /// Nothing, but perhaps something is due of which a request tells that was not read yet.
    Requests,
    /// Perhaps something, and nothing else is due.
    Last,
    /// Nothing: the lock is taken, and its holder will wake the owner of the turn.
    Asked,
}

/// How the owner of the turn gets the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Asks for it and goes on.
    Ask,
    /// Reserves it and waits.
    Reserve,
}

impl Shard {
    /// The earliest tick at which something may be due here, or an earlier one.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        // First the inbox: what has left it is in `next`.
        let due = self.inbox.due();
        // ORDERING: Relaxed, the alarm's word orders this load after the store that matters, or
        // that of `due` does.
        due.min(self.next.load(Ordering::Relaxed))
    }

    /// [`next`](Self::next) for the owner of the turn: [`NO_TICK`] while its wake request stands,
    /// because the holder that takes it off wakes it. (If that was before the worker armed the
    /// alarm, it is seen here: the holder's wake, a read-modify-write of the alarm's word, came
    /// after.)
    #[inline]
    pub(crate) fn next_to_visit(&self) -> u64 {
        if self.lock.is_wake_owed() { NO_TICK } else { self.next() }
    }

    /// Whether `next` says all: the owner of the turn has not asked in vain.
    pub(crate) fn is_quiescent(&self) -> bool {
        !self.lock.is_wake_owed()
    }

    /// For the owner of the turn: reads some requests, and swaps what is asked for with `out`,
    /// which must be empty.
    pub(crate) fn take(&self, what: Take, tick: u64, patience: Patience, out: &mut Slots, context: &Context) -> Taken {
        let mut core = match patience {
            Patience::Reserve => self.lock.lock_reserved(|| context.alarm.park(None)),
            Patience::Ask => match self.lock.try_lock_or_ask() {
                Some(core) => core,
                None => return Taken::Asked,
            },
        };
        let mut drop_after_unlock = Vec::new();
        if self.inbox.is_due(tick) {
            for request in self.inbox.drain() {
                let _ = self.reconcile(&mut core.wheel, request, &mut drop_after_unlock);
            }
        }
        let step = if what == Take::OverdueFirst && core.wheel.has_overdue() {
            core.wheel.take_overdue(out);
            true
        } else {
            core.wheel.take_next(tick, out)
        };
        let cascaded = core.wheel.take_cascaded();
        let earliest = core.wheel.earliest().unwrap_or(NO_TICK);
        let next = if core.wheel.has_overdue() { IMMEDIATE } else { earliest };
        // ORDERING: Relaxed, as in `link`.
        self.next.store(next, Ordering::Relaxed);
        let more = earliest <= tick || core.wheel.has_upkeep();
        self.answer(core.unlock());
        if cascaded > 0 {
            context.counters.cascaded.add(cascaded);
        }
        match (more || self.inbox.due() <= tick, step) {
            (false, _) => Taken::Last,
            (true, true) => Taken::Step,
            (true, false) => Taken::Requests,
        }
    }

    /// For the owner of the turn: puts back what it has taken out and was moved to later, as far as
    /// it waits. What a shut shard does not take stays in `entries`.
    pub(crate) fn give_back(&self, entries: &mut Vec<(u64, Timeout)>, context: &Context) {
        while !entries.is_empty() {
            let mut chunk = entries.split_off(entries.len().saturating_sub(MAX_PER_LOCK));
            chunk.iter().for_each(|(_, timeout)| timeout.prefetch());
            let mut core = self.lock.lock_reserved(|| context.alarm.park(None));
            let mut drop_after_unlock = Vec::new();
            // The owner of the turn keeps the lease, so a closed shard is the only refusal.
            if core.lease.serving(self.id()).is_some() {
                for (tick, timeout) in chunk.drain(..) {
                    let _ = self.reconcile(&mut core.wheel, Request { timeout, tick }, &mut drop_after_unlock);
                }
            }
            self.answer(core.unlock());
            if !chunk.is_empty() {
                return entries.append(&mut chunk);
            }
        }
    }

    /// The exact earliest tick, for drivers of virtual time.
    pub(crate) fn earliest(&self) -> Option<u64> {
        let mut core = self.lock.lock();
        let mut drop_after_unlock = Vec::new();
        // All of them, or it would be that of some; on virtual time the quota, and so their number,
        // does not grow meanwhile.
        while self.inbox.has_requests() {
            for request in self.inbox.drain() {
                let _ = self.reconcile(&mut core.wheel, request, &mut drop_after_unlock);
            }
        }
        let earliest = if core.wheel.has_overdue() { Some(IMMEDIATE) } else { core.wheel.earliest() };
        self.unlock(core);
        earliest
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use crate::backpressure::Backpressure;
    use crate::clock::Present;
    use crate::config::{MissedRuns, WheelKind};
    use crate::entry::Closure;
    use crate::resolution::Resolution;
    use crate::shard::inbox::{MAX_HELPED, PushOutcome, RequestKind};
    use crate::shard::pool;
    use crate::sync::Arc;
    use crate::time::Deadline;

    /// What comes in first is placed as seen from then, however long the clock had run before.
    #[test]
    fn a_first_bucket_is_a_part_of_what_came_in_before_it() {
        const TICK: u64 = 1_000_000;
        const SECOND: u64 = 1_000_000_000;
        const MANY: u64 = 1000;
        let context = Context::new(
            "visit".into(),
            Present::real(),
            Resolution::ticks(TICK),
            MissedRuns::Skip,
            None,
            Backpressure::new(true),
        );
        let context = Arc::new(context);
        for wheel in [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 512 }] {
            let block = pool().lease(1);
            block.open(&context, wheel);
            let shard = block.shards()[0];
            // Twice: a shard that is new, and one that was idle for long.
            for now in [20_000 * SECOND, 205_000 * SECOND] {
                let deadlines = (0..MANY).map(|nth| now + SECOND * (10 + 3 * nth));
                for deadline in deadlines.clone() {
                    let (_, timeout) = Timeout::new(shard.id(), Deadline::up(deadline), Closure(|_: &Timeout| {}));
                    assert!(shard.schedule(timeout, now).is_some());
                }
                let mut seen = 0;
                for due in deadlines {
                    let mut out = Slots::new();
                    let _ = shard.take(Take::Next, due / TICK, Patience::Ask, &mut out, &context);
                    // 262 s, and so 88 of them, in the first bucket; all the others are in others.
                    assert!(out.len() < 100, "{wheel:?}: {} at once", out.len());
                    seen += out.len() as u64;
                }
                assert_eq!(seen, MANY);
            }
            drop(shard.close());
        }
    }

    #[test]
    fn the_earliest_of_many_requests() {
        let context = Context::new(
            "visit".into(),
            Present::real(),
            Resolution::Exact(0),
            MissedRuns::Skip,
            None,
            Backpressure::new(true),
        );
        let context = Arc::new(context);
        let block = pool().lease(1);
        block.open(&context, WheelKind::Hierarchical);
        let shard = block.shards()[0];
        for nth in 0..3 * MAX_HELPED as u64 {
            // Each in a millisecond of its own, for the quota.
            context.present.set(nth << 20);
            let tick = (1 << 40) + nth;
            let (_, timeout) = Timeout::new(shard.id(), Deadline::up(tick), Closure(|_: &Timeout| {}));
            assert!(matches!(shard.inbox.push(Request { timeout, tick }, RequestKind::New), PushOutcome::Accepted(_)));
        }
        assert_eq!(shard.earliest(), Some(1 << 40));
        drop(shard.close());
    }
}
