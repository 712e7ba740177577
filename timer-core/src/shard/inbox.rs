//! Requests of callers that found the lock of a shard taken. The worker owes their reading; lock holders help before they unlock.
//!
//! A caller (step numbers of [`crate::sync::Lock`] go before these):
//!
//! 1. locks the queue, a leaf: nothing is waited for and nothing foreign is called with it held. If the inbox is closed, or the
//!    shard serves another timer by now, it says so.
//! 2. If the caller is within its quota ([`QUOTA`] requests per thread and millisecond) and there is room ([`ROOM`]), pushes the
//!    request, and counts what it stands for. Else it waits at the gate of the lock and does the work itself.
//! 3. Lowers `due` to the tick by which the request wants to be read: its own, or two milliseconds from now if that is sooner.
//!    If that lowered it, the caller wakes the worker before that tick ([`crate::alarm`]).
//!
//! A holder, before it unlocks: if `waiting` is not 0, tries to lock the queue, takes at most [`HELP`] requests, and does them. A queue
//! whose lock is taken is the worker's.
//!
//! The worker, at a shard whose `due` has come, or where it sees requests: locks the shard, then the queue, takes at most [`HELP`], does
//! them. (Else it leaves the queue alone, and its cache line to callers.)
//!
//! *The race*: a request is pushed after the holder has looked. *Proof that it is read*: `due` was lowered under the queue's lock, before
//! `wake_before`; that is the alarm's caller's step 1 and 2, so the worker does not sleep beyond it. `due` rises only under the
//! queue's lock, by a thread that has just taken the last request.
//!
//! *Bounds*: at most [`ROOM`] requests wait per shard; a call does at most [`HELP`] of others, about 6 us; a request is read within
//! about two milliseconds and a turn.

use crate::context::Context;
use crate::counters::Counter;
use crate::entry::Timeout;
use crate::error::RejectReason;
use crate::sync::{Arc, AtomicU32, AtomicU64, Mutex, Ordering, within_quota};
use crate::time::NO_TICK;

/// "Look at this entry; if it waits, link it under this tick at the latest; if it has ended, unlink it."
pub(crate) struct Request {
    pub(crate) timeout: Timeout,
    pub(crate) tick: u64,
}

/// For what a request is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    New,
    Cancelled,
    Moved,
    /// As `New`, and the permit, the tick and the entry's release are seen to here.
    Future,
}

/// How many requests a thread may leave within a millisecond.
const QUOTA: u64 = 8;

/// How many requests wait at the most.
pub(crate) const ROOM: usize = if cfg!(all(test, timer_loom)) { 1 } else { 1024 };

/// How many requests are read under one lock.
pub(crate) const HELP: usize = 64;

/// How long a request may wait, in nanoseconds.
const PATIENCE: u64 = 2_000_000;

/// What became of a request.
#[must_use]
pub(crate) enum Pushed {
    /// It will be read. `Some`: wake the worker before this tick.
    Accepted(Option<(Arc<Context>, u64)>),
    /// No room, or beyond the quota: do it under the lock.
    Full(Request),
    /// The timer is stopped. What was cancelled has been counted.
    Closed(Request),
    /// The shard serves another timer by now.
    Gone(Request),
    /// A future's: there is no permit.
    Refused(Request, RejectReason),
}

/// The requests of one shard.
pub(crate) struct Inbox {
    /// How many requests there are; a hint for holders.
    waiting: AtomicU32,
    /// The tick by which the first has to be read; written under the queue's lock.
    due: AtomicU64,
    /// What was counted under the queue's lock.
    pub(crate) scheduled: Counter,
    pub(crate) cancelled: Counter,
    /// How many were pushed, for people.
    pub(crate) pushed: Counter,
    queue: Mutex<Queue>,
}

struct Queue {
    requests: Vec<Request>,
    open: bool,
    generation: u16,
    context: Option<Arc<Context>>,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            waiting: AtomicU32::new(0),
            due: AtomicU64::new(NO_TICK),
            scheduled: Counter::default(),
            cancelled: Counter::default(),
            pushed: Counter::default(),
            queue: Mutex::new(Queue { requests: Vec::new(), open: false, generation: 0, context: None }),
        }
    }

    /// For the pool: serves a timer from now on.
    pub(crate) fn open(&self, generation: u16, context: Arc<Context>) {
        let mut queue = self.queue.lock();
        [&self.scheduled, &self.cancelled, &self.pushed].into_iter().for_each(Counter::clear);
        *queue = Queue { requests: Vec::new(), open: true, generation, context: Some(context) };
    }

    /// For the pool: serves no timer any more.
    pub(crate) fn vacate(&self) {
        let context = self.queue.lock().context.take();
        drop(context);
    }

    /// For `stop`: takes no more, and hands over those that wait.
    pub(crate) fn close(&self) -> Vec<Request> {
        let mut queue = self.queue.lock();
        queue.open = false;
        self.publish(0);
        std::mem::take(&mut queue.requests)
    }

    /// The caller's way in.
    pub(crate) fn push(&self, mut request: Request, what: For) -> Pushed {
        let generation = request.timeout.shard_id().generation;
        let mut guard = self.queue.lock();
        let queue = &mut *guard;
        let Some(context) = queue.context.as_ref().filter(|_| queue.generation == generation) else {
            drop(guard);
            return Pushed::Gone(request);
        };
        if !queue.open {
            if what == For::Cancelled {
                self.count(what, context);
            }
            drop(guard);
            return Pushed::Closed(request);
        }
        let now = context.now();
        if queue.requests.len() >= ROOM || !within_quota(now >> 20, QUOTA) {
            drop(guard);
            return Pushed::Full(request);
        }
        if what == For::Future {
            if let Err(reason) = context.acquire_permit() {
                drop(guard);
                return Pushed::Refused(request, reason);
            }
            let state = request.timeout.state();
            request.tick = context.resolution.tick_from(state.deadline(), now);
            // Readers of requests find that it waits.
            state.release();
        }
        self.count(what, context);
        self.pushed.add(1);
        let due = request.tick.min(context.resolution.tick_at(now.saturating_add(PATIENCE)));
        queue.requests.push(request);
        self.publish(queue.requests.len());
        // ORDERING: Relaxed, written under the queue's lock; the alarm's word orders it for the sleeper.
        let lowered = due < self.due.load(Ordering::Relaxed);
        if lowered {
            // ORDERING: Relaxed, as above.
            self.due.store(due, Ordering::Relaxed);
        }
        Pushed::Accepted(lowered.then(|| (context.clone(), due)))
    }

    fn count(&self, what: For, context: &Context) {
        match what {
            For::New | For::Future => self.scheduled.add(1),
            For::Cancelled => {
                self.cancelled.add(1);
                context.release_permit();
            }
            For::Moved => {}
        }
    }

    fn publish(&self, waiting: usize) {
        // ORDERING: Relaxed, a hint for holders. Release pairs with the load in `due`: who sees it risen sees what the holder has made of
        // `next`.
        self.waiting.store(waiting as u32, Ordering::Relaxed);
        if waiting == 0 {
            self.due.store(NO_TICK, Ordering::Release);
        }
    }

    /// Whether a holder should help.
    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        // ORDERING: Relaxed, a hint: what is overlooked the worker reads.
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Whether the worker reads requests in its turn of `tick`: it has to, or there are some.
    pub(crate) fn is_due(&self, tick: u64) -> bool {
        self.due() <= tick || self.has_requests()
    }

    /// By when the worker has to read.
    #[inline]
    pub(crate) fn due(&self) -> u64 {
        // ORDERING: Acquire pairs with the Release in `publish`; the alarm's word orders this load after the store that lowers it.
        self.due.load(Ordering::Acquire)
    }

    /// For a holder of the shard's lock: some requests, if the queue's lock is free just now.
    pub(crate) fn try_drain(&self, lower_next: impl FnOnce(u64)) -> Vec<Request> {
        // A caller that was descheduled in there must not stop this one.
        self.queue.try_lock().map_or_else(Vec::new, |mut queue| self.take(&mut queue.requests, lower_next))
    }

    /// For the worker, with the shard's lock held: some requests.
    pub(crate) fn drain(&self) -> Vec<Request> {
        self.take(&mut self.queue.lock().requests, |_| {})
    }

    /// `lower_next` is told their earliest tick before `due` rises.
    fn take(&self, requests: &mut Vec<Request>, lower_next: impl FnOnce(u64)) -> Vec<Request> {
        let taken = match requests.len() {
            0..=HELP => std::mem::take(requests),
            len => requests.split_off(len - HELP),
        };
        lower_next(taken.iter().map(|request| request.tick).min().unwrap_or(NO_TICK));
        self.publish(requests.len());
        taken
    }

    /// The timer that is served, if it is the one of this generation.
    pub(crate) fn context(&self, generation: u16) -> Option<Arc<Context>> {
        let queue = self.queue.lock();
        queue.context.clone().filter(|_| queue.generation == generation)
    }

    /// The timer that is served: for what is owed to its worker.
    pub(crate) fn any_context(&self) -> Option<Arc<Context>> {
        self.queue.lock().context.clone()
    }
}
