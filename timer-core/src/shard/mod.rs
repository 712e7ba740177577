//! A shard, with a wheel behind a lock, an inbox, and the counters of timeouts that were accepted
//! or cancelled here.
//!
//! A timer has one shard per CPU, and a caller schedules in the shard of its CPU. As many threads
//! run at once as there are CPUs, so two such callers meet at a shard only if one of them was
//! preempted in the few dozen nanoseconds of its critical section or moved to another CPU. A caller
//! that cancels a timeout or moves it earlier uses the shard of that timeout, so it may meet others
//! there. A caller that finds the lock taken leaves a request in the [`inbox`]. Beyond its quota it
//! waits at the gate of the lock ([`crate::sync::Lock`]), unless another caller waits there. A
//! request, like every other change here, makes the wheel agree with the state word of one entry
//! (`reconcile`), so it may be served late, early or twice.
//!
//! `next` is the earliest tick in the wheel, or an earlier one. Only the holder of the lock writes
//! it. A holder that lowers it wakes the worker after unlocking ([`crate::alarm`]).
//!
//! # Stopping
//!
//! A shard is closed in three steps, the first two of which are [`Shard::close`]:
//!
//! 1. It closes the lease behind the inbox's lock and takes the requests.
//! 2. It closes the lease behind the shard's lock and takes the whole wheel.
//! 3. With nothing held, `stop` ends the entries that it got.
//!
//! A caller therefore sees under either lock that the shard is closed, or that it has been leased
//! to another timer since ([`lease`]).
//!
//! # Under the lock
//!
//! No user code runs and no user value is dropped while the lock is held. After it has unlocked,
//! the holder drops the entries that have left the wheel and frees the arrays that the wheel and
//! the inbox have given up. A holder does one of the following:
//!
//! - A caller handles one entry, or at most [`MAX_PER_LOCK`] entries, and serves at most
//!   [`inbox::MAX_HELPED`] requests. An insertion allocates at most one chunk of 64 slots and one
//!   piece of the table of chunks. A removal moves at most a quarter of a chunk.
//! - The worker serves as many requests and makes one step of the wheel, or relinks at most
//!   [`MAX_PER_LOCK`] entries. A step swaps out a bucket, or reads and empties four chunks. In
//!   a hashed wheel it reads at most five chunks.
//! - A reader of the [timetable](crate::timetable) reads the numbers of values of all buckets, of
//!   which there are at most 1,025, or about as many slots as a chunk has, or compares
//!   [`MAX_PER_LOCK`] entries.

mod callers;
mod entry_wheel;
mod inbox;
mod lease;
mod pool;
mod reading;
mod timeout;
mod visit;

pub(crate) use entry_wheel::{EntryWheel, Part, SlotChunk, Slots};
pub(crate) use pool::{Block, BlockId, pool, shard_of};
pub(crate) use reading::COMPARISON;
pub(crate) use timeout::contain;
pub(crate) use visit::{VisitOutcome, VisitStep};

use crate::clock;
use crate::config::WheelKind;
use crate::counters::Counter;
use crate::deadline::{IMMEDIATE, NO_TICK, Nanos};
use crate::entry::{ShardId, Timeout};
use crate::sync::{Arc, AtomicU64, Guard, Lock, Ordering};
use crate::timer_context::TimerContext;
use inbox::{Inbox, Request};
use lease::{Lease, LeaseHint};

/// The number of entries that are handled under one lock.
pub(crate) const MAX_PER_LOCK: usize = 64;

/// One of the parts among which the callers of a timer are spread.
///
/// A shard shares no cache line with others. The worker, the callers on its CPU, and callers that
/// cancel or move one of its timeouts touch it. One line contains the fields that both the worker
/// and the callers write. They are the end of a hierarchical wheel, the word of the lock, and the
/// fields after it.
#[repr(C, align(128))]
pub(crate) struct Shard {
    inbox: Inbox,
    index: u16,
    lease_hint: LeaseHint,
    lock: Lock<Core>,
    next: AtomicU64,
    scheduled: Counter,
    cancelled: Counter,
}

/// The state behind the shard's lock.
#[repr(C)]
pub(crate) struct Core {
    lease: Lease,
    wheel: EntryWheel,
}

impl Shard {
    /// Allocates a shard that serves no timer and is never freed. Called by the pool.
    fn leak(index: u16) -> &'static Shard {
        let wheel = EntryWheel::new(WheelKind::Hierarchical);
        Box::leak(Box::new(Shard {
            lock: Lock::new(Core { lease: Lease::default(), wheel }),
            next: AtomicU64::new(NO_TICK),
            scheduled: Counter::default(),
            cancelled: Counter::default(),
            index,
            lease_hint: LeaseHint::default(),
            inbox: Inbox::new(),
        }))
    }

    /// Serves the timer of `context` from now on. Called by the pool.
    fn open(&self, generation: u16, context: &Arc<TimerContext>, wheel: WheelKind) {
        let mut core = self.lock.lock();
        [&self.scheduled, &self.cancelled].into_iter().for_each(Counter::clear);
        core.wheel = EntryWheel::new(wheel);
        core.lease = Lease::new(generation, context.clone());
        self.inbox.open(generation, context.clone());
        self.lease_hint.open(generation, context.present.is_virtual());
        self.unlock(core);
    }

    /// Ends the lease, so that the shard serves no timer. Returns the generation of the next lease.
    /// Called by the pool. The wheel is empty, because `close` has taken it or nothing was ever
    /// scheduled.
    fn vacate(&self) -> u16 {
        let generation = self.id().generation.saturating_add(1);
        self.inbox.vacate();
        let mut core = self.lock.lock();
        let ended = std::mem::take(&mut core.lease);
        self.lease_hint.vacate(generation);
        self.unlock(core);
        drop(ended);
        generation
    }

    /// Returns the name of this shard for entries of the timer that it serves.
    #[inline]
    pub(crate) fn id(&self) -> ShardId {
        // Constant while a timer leases the shard. A thread of an earlier lease asks only under the
        // shard's lock, and gets the name of the current lease.
        ShardId { index: self.index, generation: self.lease_hint.generation() }
    }

    /// Returns the current time of the timer that leases the shard under the name `id`. Calls
    /// `system` to read the clock if that timer uses the system's clock or is gone.
    #[inline]
    pub(crate) fn now_of(&self, id: ShardId, system: impl FnOnce() -> Nanos) -> Nanos {
        let context = if self.lease_hint.is_virtual() { self.context(id) } else { None };
        context.map_or_else(system, |context| context.now())
    }

    /// Returns the time up to which deadlines of the timer that leases the shard under the name
    /// `id` are due. Returns `None` if the timer is stopped or gone. Reads a coarse clock if `when`
    /// is far away ([`clock::now_or_coarse`]).
    #[inline]
    pub(crate) fn due_by_if_open(&self, id: ShardId, when: Nanos) -> Option<Nanos> {
        let is_virtual = self.lease_hint.is_virtual();
        let now = if is_virtual { self.context(id)?.due_by() } else { clock::now_or_coarse(when) };
        self.lease_hint.is_open(id.generation).then_some(now)
    }

    /// The same as [`unlink_cancelled`](Self::unlink_cancelled), but does not compare the
    /// generation.
    #[cfg(all(test, timer_loom))]
    pub(crate) fn unlink_of_any_generation(&self) {
        let core = self.lock.lock();
        self.cancelled.add(1);
        if let Some(context) = core.lease.context(self.id()) {
            context.release_permit();
        }
        self.unlock(core);
    }

    /// Removes whatever is at the location of an entry, in any generation of its bucket.
    #[cfg(all(test, timer_loom))]
    pub(crate) fn unlink_at_any_generation(&self, timeout: &Timeout) {
        use crate::wheel::{Location, RawWheel};
        let mut core = self.lock.lock();
        self.cancelled.add(1);
        let EntryWheel::Hierarchical(wheel) = &mut core.wheel else { return };
        let location = timeout.location();
        let name = wheel.bucket(location.number()).map_or(0, |bucket| bucket.name);
        if wheel.vacate(Location::new(name, location.position)) {
            timeout.take_over();
        }
        self.unlock(core);
    }

    /// The same as [`submit`](Self::submit), but does not compare the generation.
    #[cfg(all(test, timer_loom))]
    pub(crate) fn submit_of_any_generation(&self, timeout: Timeout, tick: u64) {
        let mut core = self.lock.lock();
        let mut drop_after_unlock = Vec::new();
        let _ = self.reconcile(&mut core, Request { timeout, tick }, &mut drop_after_unlock);
        self.unlock(core);
    }

    /// Returns the context of the timer that leases the shard under the name `id`, stopped or not.
    pub(crate) fn context(&self, id: ShardId) -> Option<Arc<TimerContext>> {
        self.inbox.context(id)
    }

    /// Closes the shard and returns references to all entries that may wait. The wheel is read when
    /// the iterator gets there. Called by `stop`.
    pub(crate) fn close(&self) -> impl Iterator<Item = Timeout> + use<> {
        let requests = self.inbox.close();
        let mut core = self.lock.lock();
        core.lease.close();
        let wheel = std::mem::replace(&mut core.wheel, EntryWheel::new(WheelKind::Hierarchical));
        self.lease_hint.close();
        // ORDERING: Relaxed, as in `link`.
        self.next.store(NO_TICK, Ordering::Relaxed);
        self.unlock(core);
        let in_wheel = std::iter::once(wheel).flat_map(EntryWheel::into_entries);
        requests.into_iter().map(|request| request.timeout).chain(in_wheel)
    }

    /// Returns the number of timeouts that were cancelled here.
    pub(crate) fn cancelled(&self) -> u64 {
        self.cancelled.get() + self.inbox.cancelled.get()
    }

    /// Returns the number of timeouts that were accepted here.
    pub(crate) fn scheduled(&self) -> u64 {
        self.scheduled.get() + self.inbox.scheduled.get()
    }

    /// Returns the number of requests that callers have left.
    pub(crate) fn requests(&self) -> u64 {
        self.inbox.pushed.get()
    }

    /// Unlocks the shard, after serving some pending requests. Frees the memory that the wheel has
    /// given up.
    #[inline]
    fn unlock(&self, core: Guard<'_, Core>) {
        if self.inbox.has_requests() || !core.wheel.base().discarded.is_empty() {
            return self.help_and_unlock(core);
        }
        drop(core);
    }

    #[cold]
    #[inline(never)]
    fn help_and_unlock(&self, core: Guard<'_, Core>) {
        let mut core = core;
        let mut drop_after_unlock = Vec::new();
        let mut wake_before = NO_TICK;
        // A request must be visible in `next` before it leaves the inbox. Otherwise a driver that
        // looks in between would see neither.
        let lower_next = |tick| {
            // ORDERING: Relaxed, as in `link`; the inbox's `due` publishes it.
            if tick < self.next.load(Ordering::Relaxed) {
                self.next.store(tick, Ordering::Relaxed);
                wake_before = tick;
            }
        };
        let mut requests = self.inbox.try_drain(lower_next);
        for request in requests.drain(..) {
            wake_before = wake_before.min(self.reconcile(&mut core, request, &mut drop_after_unlock));
        }
        let context = core.lease.context(self.id()).filter(|_| wake_before != NO_TICK).cloned();
        let _free_after_unlock = core.wheel.base_mut().take_discarded();
        drop(core);
        if let Some(context) = context {
            context.alarm.wake_before(wake_before);
        }
    }

    /// Makes the wheel agree with the entry's state word. Returns the tick before which the worker
    /// must wake up, or [`NO_TICK`].
    fn reconcile(&self, core: &mut Core, request: Request, drop_after_unlock: &mut Vec<Timeout>) -> u64 {
        let Core { lease, wheel } = core;
        let Request { timeout, tick } = request;
        let waits = timeout.state().is_waiting();
        let linked = wheel.linked(&timeout);
        let is_in_time = waits && linked.is_some_and(|linked| linked <= tick);
        if linked.is_some() && !is_in_time {
            drop_after_unlock.extend(wheel.remove(&timeout));
        }
        if waits && !is_in_time {
            let now = |context: &Arc<TimerContext>| context.resolution.tick_at(context.due_by());
            return self.link(wheel, tick, timeout, || lease.context(self.id()).map_or(IMMEDIATE, now));
        }
        drop_after_unlock.push(timeout);
        // The thread that has linked the entry may not have woken the worker yet.
        if is_in_time { tick } else { NO_TICK }
    }

    /// Links an entry that is not linked. Returns the tick before which the worker must wake up, or
    /// [`NO_TICK`].
    #[inline]
    fn link(&self, wheel: &mut EntryWheel, tick: u64, timeout: Timeout, now: impl FnOnce() -> u64) -> u64 {
        wheel.insert(tick, timeout, now);
        // ORDERING: Relaxed load, only the holder writes it. The store is published by the lock's
        // release and, for the sleeper, by the alarm's word.
        if tick >= self.next.load(Ordering::Relaxed) {
            return NO_TICK;
        }
        self.next.store(tick, Ordering::Relaxed);
        tick
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    mod contention;

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn hot_fields_share_a_cache_line() {
        use super::*;
        use crate::entry::{EntryTracker, Linked};
        use crate::wheel::RawHierarchical;
        use std::mem::offset_of;

        let block = pool().lease(1);
        let shard = block.shards[0];
        let core = shard.lock.lock();
        let EntryWheel::Hierarchical(wheel) = &core.wheel else { panic!("the default") };
        let at = std::ptr::from_ref(shard).addr();
        let wheel = std::ptr::from_ref(wheel).addr() - at;
        let word = offset_of!(Shard, lock) + Lock::<Core>::WORD_AT;
        let of_shard = [word, offset_of!(Shard, next), offset_of!(Shard, scheduled), offset_of!(Shard, cancelled)];
        let of_wheel = RawHierarchical::<Linked, EntryTracker>::WRITTEN_AT.map(|field| wheel + field);
        for field in of_wheel.into_iter().chain(of_shard) {
            assert_eq!(field / 64, word / 64, "{of_wheel:?} {of_shard:?}");
        }
        shard.unlock(core);
    }
}
