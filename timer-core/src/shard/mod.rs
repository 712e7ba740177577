//! A shard: a wheel behind a lock, with an inbox, and the counts of what was accepted and cancelled here.
//!
//! There is one per CPU and timer: as many threads run at once as there are CPUs, so two meet at a shard only if one was
//! preempted in the few dozen nanoseconds of its critical section, or moved. A caller that finds the lock taken leaves a request
//! ([`inbox`]), and beyond its quota waits at the gate of the lock ([`crate::sync::Lock`]). A request, like every change here, makes
//! the wheel agree with the state word of one entry (`reconcile` below), so it may be read late, early or twice.
//!
//! `next` is the earliest tick in the wheel or an earlier one; only the lock's holder writes it. A holder that lowers it wakes the
//! worker after leaving ([`crate::alarm`]).
//!
//! `stop` closes a shard in three steps ([`Shard::close`]): it shuts the inbox, and takes its requests; it locks the shard, shuts it, and
//! takes the wheel as a whole; with nothing held, it resolves what it has got. A caller sees under either lock that the shard is
//! shut, or that it serves another timer by now ([`mod@pool`]).
//!
//! Ground rules: nothing of the user's runs or is dropped while the lock is held. Entries that leave the wheel are put aside until
//! then. *What is done with the lock held*: one entry's work, or a chunk of at most [`MAX_PER_LOCK`]; at most [`inbox::HELP`] requests; by
//! the worker, one step of the wheel is made, which swaps out a bucket, reads 16,384 places, or empties 2,048. An insertion into a
//! bucket of n entries may move its array, and a removal may compact it: O(n) then, amortised O(1). A hashed wheel's worker walks the bucket: O(n).

mod callers;
mod entry_wheel;
mod inbox;
mod pool;
mod register;
mod visit;

pub(crate) use entry_wheel::{EntryWheel, Slot, Slots};
pub(crate) use pool::{Lease, LeaseId, pool, shard_of};
pub(crate) use register::Arrival;
pub(crate) use visit::{Patience, Take, Taken};

use crate::clock::Present;
use crate::config::WheelKind;
use crate::context::Context;
use crate::counters::Counter;
use crate::entry::{ShardId, Timeout};
use crate::sync::{Arc, AtomicBool, AtomicU16, AtomicU64, Guard, Lock, Ordering, Owed};
use crate::time::{IMMEDIATE, NO_TICK, Nanos};
use inbox::{Inbox, Request};

/// How many entries are handled under one lock.
pub(crate) const MAX_PER_LOCK: usize = 64;

/// One of the parts among which callers are spread. Its own cache lines: no caller on another CPU touches them, but one that was moved
/// there, and the worker. What these and the callers here write by turns is on one line: the end of a hierarchical wheel and of the lock,
/// and what stands behind it.
#[repr(C, align(128))]
pub(crate) struct Shard {
    /// Virtual time, where the timer is on it.
    present: Present,
    inbox: Inbox,
    index: u16,
    generation: AtomicU16,
    /// Whether it is open, for those who do not lock it: written with the lock held.
    open: AtomicBool,
    lock: Lock<Core>,
    next: AtomicU64,
    scheduled: Counter,
    cancelled: Counter,
}

/// What the lock guards.
#[repr(C)]
pub(crate) struct Core {
    context: Option<Arc<Context>>,
    wheel: EntryWheel,
    open: bool,
    generation: u16,
}

/// What a shard is told when a timer leases it.
pub(crate) struct Serving {
    pub(crate) context: Arc<Context>,
    pub(crate) wheel: WheelKind,
}

/// A shard that takes no more; the entry comes back.
#[derive(Debug)]
pub(crate) struct Closed(pub(crate) Timeout);

/// What `stop` has taken out of a shard.
pub(crate) struct Contents {
    requests: Vec<Request>,
    wheel: EntryWheel,
}

impl Contents {
    /// References to all entries that may wait.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = Timeout> {
        self.requests.into_iter().map(|request| request.timeout).chain(self.wheel.into_entries())
    }
}

impl Shard {
    /// For the pool: a shard that serves no timer.
    fn leak(index: u16) -> &'static Shard {
        let wheel = EntryWheel::new(WheelKind::Hierarchical);
        Box::leak(Box::new(Shard {
            lock: Lock::new(Core { wheel, open: false, generation: 0, context: None }),
            next: AtomicU64::new(NO_TICK),
            scheduled: Counter::default(),
            cancelled: Counter::default(),
            present: Present::real(),
            index,
            generation: AtomicU16::new(0),
            open: AtomicBool::new(false),
            inbox: Inbox::new(),
        }))
    }

    /// For the pool: serves a timer from now on.
    fn open(&self, serving: Serving) {
        let mut core = self.lock.lock();
        [&self.scheduled, &self.cancelled].into_iter().for_each(Counter::clear);
        core.wheel = EntryWheel::new(serving.wheel);
        core.context = Some(serving.context.clone());
        core.open = true;
        self.inbox.open(core.generation, serving.context);
        // ORDERING: Release pairs with the Acquire in `serves`: with it, the generation is seen.
        self.open.store(true, Ordering::Release);
        self.unlock(core);
    }

    /// For the pool: serves no timer from now on. The next generation.
    fn vacate(&self) -> u16 {
        self.inbox.vacate();
        let mut core = self.lock.lock();
        let (context, wheel) = (core.context.take(), core.take_wheel());
        core.open = false;
        core.generation = core.generation.saturating_add(1);
        let generation = core.generation;
        // ORDERING: Relaxed, the pool's lock hands it on.
        self.generation.store(generation, Ordering::Relaxed);
        self.present.set_real();
        self.unlock(core);
        drop((context, wheel));
        generation
    }

    pub(crate) fn index(&self) -> u16 {
        self.index
    }

    /// Its name for entries of the timer that it serves.
    #[inline]
    pub(crate) fn id(&self) -> ShardId {
        // ORDERING: Relaxed, constant while a timer has the shard on lease, and only that timer asks.
        ShardId { index: self.index, generation: self.generation.load(Ordering::Relaxed) }
    }

    /// Whether it serves the timer of this name, and that is not stopped. A reading of the moment.
    #[inline]
    pub(crate) fn serves(&self, id: ShardId) -> bool {
        // ORDERING: Acquire pairs with the Release in `open`: a shard that is open for a later timer shows its generation. Relaxed, as
        // just said.
        self.open.load(Ordering::Acquire) && self.generation.load(Ordering::Relaxed) == id.generation
    }

    /// The present of the timer of this name, as long as it has the shard on lease.
    pub(crate) fn now_of(&self, id: ShardId) -> Option<Nanos> {
        let now = self.present.now();
        // ORDERING: Relaxed, the reading just made acquires: if it was of a later timer's time, its generation is seen.
        (self.generation.load(Ordering::Relaxed) == id.generation).then_some(now)
    }

    /// The time that the timer goes by which it serves.
    #[inline]
    pub(crate) fn present(&self) -> &Present {
        &self.present
    }

    /// As [`unlink_cancelled`](Self::unlink_cancelled), with no look at the generation.
    #[cfg(all(test, timer_loom))]
    pub(crate) fn unlink_of_any_generation(&self) {
        let core = self.lock.lock();
        self.cancelled.add(1);
        if let Some(context) = &core.context {
            context.release_permit();
        }
        self.unlock(core);
    }

    /// As [`submit`](Self::submit), with no look at the generation.
    #[cfg(all(test, timer_loom))]
    pub(crate) fn submit_of_any_generation(&self, timeout: Timeout, tick: u64) {
        let mut core = self.lock.lock();
        let mut aside = Vec::new();
        let _ = self.reconcile(&mut core, Request { timeout, tick }, &mut aside);
        self.unlock(core);
    }

    /// The timer of this entry, as long as it has the shard on lease.
    pub(crate) fn context_of(&self, timeout: &Timeout) -> Option<Arc<Context>> {
        self.context_by_id(timeout.shard_id())
    }

    /// The timer of this name, as long as it has the shard on lease.
    pub(crate) fn context_by_id(&self, id: ShardId) -> Option<Arc<Context>> {
        self.inbox.context(id.generation)
    }

    /// For `stop`: takes no more from now on, and gives out everything that is in it.
    pub(crate) fn close(&self) -> Contents {
        let requests = self.inbox.close();
        let mut core = self.lock.lock();
        core.open = false;
        let wheel = core.take_wheel();
        // ORDERING: Relaxed, what has to be exact asks under the lock; as in `link`.
        self.open.store(false, Ordering::Relaxed);
        self.next.store(NO_TICK, Ordering::Relaxed);
        self.unlock(core);
        Contents { requests, wheel }
    }

    /// How many timeouts were cancelled here.
    pub(crate) fn cancelled(&self) -> u64 {
        self.cancelled.get() + self.inbox.cancelled.get()
    }

    /// How many timeouts were accepted here.
    pub(crate) fn scheduled(&self) -> u64 {
        self.scheduled.get() + self.inbox.scheduled.get()
    }

    /// How often a caller left a request.
    pub(crate) fn requests(&self) -> u64 {
        self.inbox.pushed.get()
    }

    /// The holder's way out.
    #[inline]
    fn unlock(&self, core: Guard<'_, Core>) {
        if self.inbox.has_requests() {
            return self.help_and_unlock(core);
        }
        let owed = core.unlock();
        if !owed.nothing() {
            self.answer(owed);
        }
    }

    #[cold]
    #[inline(never)]
    fn help_and_unlock(&self, core: Guard<'_, Core>) {
        let mut core = core;
        let (mut aside, mut wake_before) = (Vec::new(), NO_TICK);
        // Before it is in the wheel it is in `next`: a driver that looks meanwhile must not take it for gone.
        let lower_next = |tick| {
            // ORDERING: Relaxed, as in `link`; the inbox's `due` publishes it.
            if tick < self.next.load(Ordering::Relaxed) {
                self.next.store(tick, Ordering::Relaxed);
                wake_before = tick;
            }
        };
        for request in self.inbox.try_drain(lower_next) {
            wake_before = wake_before.min(self.reconcile(&mut core, request, &mut aside));
        }
        let context = core.context.clone().filter(|_| wake_before != NO_TICK);
        self.answer(core.unlock());
        if let Some(context) = context {
            context.alarm.wake_before(wake_before);
        }
    }

    /// Pays what a holder owes the worker when it has unlocked.
    #[cold]
    #[inline(never)]
    fn answer(&self, owed: Owed) {
        if !owed.wake() && !owed.ring() {
            return;
        }
        self.lock.take_wake();
        if let Some(context) = self.inbox.any_context() {
            if owed.ring() {
                context.alarm.ring();
            }
            if owed.wake() {
                context.alarm.wake_before(IMMEDIATE);
            }
        }
    }

    /// Makes the wheel agree with the entry's state word. The tick before which to wake the worker.
    fn reconcile(&self, core: &mut Core, request: Request, aside: &mut Vec<Timeout>) -> u64 {
        let Request { timeout, tick } = request;
        let waits = timeout.state().is_waiting();
        match core.wheel.linked(&timeout) {
            None if waits => self.link(core, tick, timeout),
            Some(linked) if !waits || tick < linked => {
                aside.extend(core.wheel.remove(&timeout));
                if waits {
                    self.link(core, tick, timeout)
                } else {
                    aside.push(timeout);
                    NO_TICK
                }
            }
            _ => {
                aside.push(timeout);
                NO_TICK
            }
        }
    }

    /// Links an entry that came in at `now`. As [`link`](Self::link).
    #[inline]
    fn link_new(&self, core: &mut Core, tick: u64, timeout: Timeout, now: Nanos, context: &Context) -> u64 {
        core.wheel.fast_forward_if_empty(|| context.resolution.tick_at(now));
        self.link(core, tick, timeout)
    }

    /// Links an entry that is not linked. The tick before which to wake the worker, or [`NO_TICK`].
    #[inline]
    fn link(&self, core: &mut Core, tick: u64, timeout: Timeout) -> u64 {
        core.wheel.insert(tick, timeout);
        // ORDERING: Relaxed load, only the holder writes it. The store is published by the lock's release and, for the
        // sleeper, by the alarm's word.
        if tick >= self.next.load(Ordering::Relaxed) {
            return NO_TICK;
        }
        self.next.store(tick, Ordering::Relaxed);
        tick
    }
}

impl Core {
    /// The wheel, in exchange for an empty one.
    fn take_wheel(&mut self) -> EntryWheel {
        std::mem::replace(&mut self.wheel, EntryWheel::new(WheelKind::Hierarchical))
    }
}

#[cfg(all(test, target_pointer_width = "64", not(timer_loom)))]
mod tests {
    use super::*;
    use crate::entry::InEntry;
    use crate::wheel::RawHierarchical;
    use std::mem::offset_of;

    #[test]
    fn what_moves_between_cpus_is_one_line() {
        let lease = pool().lease(1);
        let shard = lease.shards()[0];
        let core = shard.lock.lock();
        let EntryWheel::Hierarchical(wheel) = &core.wheel else { panic!("the default") };
        let at = std::ptr::from_ref(shard).addr();
        let wheel = std::ptr::from_ref(wheel).addr() - at;
        let word = offset_of!(Shard, lock) + Lock::<Core>::WORD_AT;
        let of_shard = [word, offset_of!(Shard, next), offset_of!(Shard, scheduled), offset_of!(Shard, cancelled)];
        let of_wheel = RawHierarchical::<Timeout, InEntry>::WRITTEN_AT.map(|field| wheel + field);
        for field in of_wheel.into_iter().chain(of_shard) {
            assert_eq!(field / 64, word / 64, "{of_wheel:?} {of_shard:?}");
        }
        shard.unlock(core);
    }
}
