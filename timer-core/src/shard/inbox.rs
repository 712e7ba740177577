//! The inbox of a shard, a bounded queue of requests.
//!
//! A caller that finds the shard locked rarely waits. It pushes a request into the inbox and
//! returns. The worker serves the request later. Other callers that hold the shard's lock may serve
//! it earlier, but they do not have to.
//!
//! # Pushing a request (caller)
//!
//! 1. Lock the queue. This lock is a leaf: its holder neither blocks nor calls user code. Fail if
//!    the inbox is closed or if the shard has been leased to another timer since.
//! 2. Push the request and count the operation. A new timeout also acquires its permit. If the
//!    thread has used up its quota ([`QUOTA`] requests per millisecond) or if the inbox is full
//!    ([`CAPACITY`]), continue with step 4 instead. The quota keeps a fast caller from leaving all
//!    of its work to the worker.
//! 3. Lower `due`, the tick by which the worker must serve the inbox, to the tick of this request
//!    or to [`MAX_DELAY`] from now, whichever is earlier. If this changes `due`, or if the request
//!    moves a timeout, wake the worker before that tick (see [`crate::alarm`]).
//! 4. If no other caller waits for the lock, wait for it and do the work under it. If one does,
//!    repeat steps 1 to 3 without the quota and with the greater bound [`CROWDED_CAPACITY`], and
//!    give up the CPU, because the holder of the lock or the waiting caller needs it. A thread
//!    pauses for 0.1 ms, at most 8 times within 8 ms, and otherwise yields. A worker, a task, a
//!    call on a future and a timer that forbids sleeping always yield. If the greater bound is
//!    reached too, wait for the lock.
//!
//! # Serving requests
//!
//! - A caller that is about to unlock the shard serves up to [`MAX_HELPED`] requests. If the queue
//!   is locked, it leaves them to the worker.
//! - The worker serves up to [`MAX_HELPED`] requests whenever it visits a shard that has any.
//!   Otherwise it does not touch the queue, because that cache line belongs to the callers.
//!
//! # No request is forgotten
//!
//! The critical case is a request that is pushed right after the holder of the shard's lock has
//! looked at the inbox. No holder serves it, so the worker has to wake up in time:
//!
//! - The caller lowers `due` while it holds the queue's lock, and wakes the worker afterwards.
//!   These are steps 1 and 2 of the alarm's protocol, which guarantees that the worker does not
//!   sleep past `due`.
//! - `due` is raised only under the queue's lock, by the thread that has just removed the last
//!   request. It can therefore not overwrite a value that belongs to a request still in the queue.
//!
//! # Bounds
//!
//! At most [`CROWDED_CAPACITY`] requests are in an inbox, and they are served in their order. A
//! call serves at most [`MAX_HELPED`] requests of others (about 6 us). A request among the first
//! [`CAPACITY`] is served within about 2 ms plus one turn. In a crowded inbox, each further
//! [`CAPACITY`] requests take up to one more turn.
//!
//! # Why only one caller waits for the lock
//!
//! Threads that queue for a lock are scheduled one after the other. If many more threads than CPUs
//! are busy, each of them takes milliseconds, and the timeout of a waiting thread is in no wheel
//! until that thread has the lock. With 200 threads on 2 cores, 170 of them waited in such queues.

use super::lease::Lease;
use crate::counters::Counter;
use crate::deadline::NO_TICK;
use crate::entry::state::Runs;
use crate::entry::{ShardId, Timeout};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, may_pause, within_quota};
use crate::timer_context::TimerContext;
use std::collections::VecDeque;

/// A request to make the wheel agree with an entry's state word: to link the entry under this tick
/// at the latest if it waits, and to unlink it if it has ended.
pub(crate) struct Request {
    pub(crate) timeout: Timeout,
    pub(crate) tick: u64,
}

/// The kind of a request. It decides which counter the request increments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A new timeout. `push` acquires its permit and computes its tick.
    New,
    Cancelled,
    Moved,
}

/// Some requests in their order.
#[allow(clippy::box_collection, reason = "a shard fits into six cache lines")]
pub(crate) type Requests = Box<VecDeque<Request>>;

/// The number of requests that a thread may push within a millisecond.
const QUOTA: u64 = 8;

/// The number of pauses of a thread within 8 ms. A batch that pauses and is slowed down after it
/// takes less than 10 ms.
pub(crate) const MAX_PAUSES: u64 = 8;

/// The number of requests that may wait in an inbox.
pub(crate) const CAPACITY: usize = if cfg!(all(test, timer_loom)) { 1 } else { 1024 };

/// The number of requests that may wait in an inbox while a caller waits for the lock. If the
/// holder of the lock is preempted, each busy thread adds one request per time slice until the
/// holder runs again.
pub(crate) const CROWDED_CAPACITY: usize = 16 * CAPACITY;

/// The number of requests that are served under one lock.
pub(crate) const MAX_HELPED: usize = 64;

/// The time for which a request may wait, in nanoseconds.
const MAX_DELAY: u64 = 2_000_000;

/// The outcome of [`Inbox::push`].
#[must_use]
pub(crate) enum PushOutcome {
    /// The request is in the queue.
    Accepted {
        /// The caller must wake the worker of this timer before this tick.
        wake: Option<(Arc<TimerContext>, u64)>,
        /// The caller pauses in step 4 instead of yielding.
        may_pause: bool,
    },
    /// The inbox is full or the thread's quota is used up. The caller continues with step 4.
    Full(Request),
    /// The timer is stopped or has left the shard, or its bound is reached. A cancelled timeout has
    /// been counted if its timer still leases the shard.
    Refused,
}

/// The requests of one shard.
pub(crate) struct Inbox {
    /// The tick by which the worker must serve the first request, or [`NO_TICK`] if there is none.
    /// Written under the queue's lock.
    due: AtomicU64,
    /// Operations that were counted under the queue's lock.
    pub(crate) scheduled: Counter,
    pub(crate) cancelled: Counter,
    /// The number of requests so far, for [`TimerStats`](crate::TimerStats).
    pub(crate) pushed: Counter,
    queue: Mutex<Queue>,
}

struct Queue {
    lease: Lease,
    requests: Requests,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            due: AtomicU64::new(NO_TICK),
            scheduled: Counter::default(),
            cancelled: Counter::default(),
            pushed: Counter::default(),
            queue: Mutex::new(Queue { lease: Lease::default(), requests: Requests::default() }),
        }
    }

    /// Serves the timer of `context` from now on. Called by the pool.
    pub(crate) fn open(&self, generation: u16, context: Arc<TimerContext>) {
        let mut queue = self.queue.lock();
        [&self.scheduled, &self.cancelled, &self.pushed].into_iter().for_each(Counter::clear);
        *queue = Queue { lease: Lease::new(generation, context), requests: Requests::default() };
    }

    /// Ends the lease. Called by the pool.
    pub(crate) fn vacate(&self) {
        let ended = std::mem::take(&mut self.queue.lock().lease);
        drop(ended);
    }

    /// Closes the inbox and returns the requests in it. Called by `stop`.
    pub(crate) fn close(&self) -> Requests {
        let mut queue = self.queue.lock();
        queue.lease.close();
        self.raise_due();
        std::mem::take(&mut queue.requests)
    }

    /// Pushes a request by the steps 1 to 3 of the module's head. If another caller waits for the
    /// lock, this is step 4.
    pub(crate) fn push(&self, mut request: Request, kind: RequestKind, has_waiter: bool) -> PushOutcome {
        let id = request.timeout.shard_id();
        let mut guard = self.queue.lock();
        let Queue { lease, requests } = &mut *guard;
        let Some(context) = lease.serving(id) else {
            if let (Some(context), RequestKind::Cancelled) = (lease.context(id), kind) {
                self.count(kind, context);
            }
            drop(guard);
            return PushOutcome::Refused;
        };
        let now = context.now();
        let has_room = match requests.len() {
            len if has_waiter => len < CROWDED_CAPACITY,
            len => len < CAPACITY && within_quota(now >> 20, QUOTA),
        };
        if !has_room {
            drop(guard);
            return PushOutcome::Full(request);
        }
        if kind == RequestKind::New {
            if !context.acquire_permit() {
                drop(guard);
                return PushOutcome::Refused;
            }
            request.tick = context.resolution.tick_from(request.timeout.state().deadline(), now);
        }
        self.count(kind, context);
        self.pushed.add(1);
        let due = request.tick.min(context.resolution.tick_at(now.saturating_add(MAX_DELAY)));
        let may_pause = has_waiter
            && request.timeout.runs() != Runs::Wake
            && context.backpressure.may_sleep()
            && may_pause(now >> 23, MAX_PAUSES);
        requests.push_back(request);
        // ORDERING: Relaxed, written under the queue's lock; the alarm's word orders it for the
        // sleeper.
        let is_earlier = due < self.due.load(Ordering::Relaxed);
        if is_earlier {
            // ORDERING: Release, as in `raise_due`. A thread that sees this value instead of the
            // raised one also sees the holder's change of `next`, because this thread has seen it
            // under the queue's lock.
            self.due.store(due, Ordering::Release);
        }
        // The thread that has lowered `due` may not have woken the worker yet. A timeout that was
        // moved does not wait for that thread.
        let must_wake = is_earlier || kind == RequestKind::Moved;
        PushOutcome::Accepted { wake: must_wake.then(|| (context.clone(), due)), may_pause }
    }

    fn count(&self, kind: RequestKind, context: &TimerContext) {
        match kind {
            RequestKind::New => self.scheduled.add(1),
            RequestKind::Cancelled => {
                self.cancelled.add(1);
                context.release_permit();
            }
            RequestKind::Moved => {}
        }
    }

    /// Notes that the queue is empty.
    fn raise_due(&self) {
        // ORDERING: Release pairs with the load in `due`. A thread that sees the raised value also
        // sees the holder's change of `next`.
        self.due.store(NO_TICK, Ordering::Release);
    }

    /// Returns `true` if a holder of the shard's lock should serve requests before it unlocks. A
    /// holder may overlook some, and the worker serves those.
    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        self.due() != NO_TICK
    }

    /// Returns the tick by which the worker must serve the inbox.
    #[inline]
    pub(crate) fn due(&self) -> u64 {
        // ORDERING: Acquire pairs with the Release in `raise_due`; the alarm's word orders this
        // load after the store that lowers it.
        self.due.load(Ordering::Acquire)
    }

    /// Removes up to [`MAX_HELPED`] requests. Returns nothing if the queue is locked, because its
    /// holder may have been preempted. The caller must hold the shard's lock.
    pub(crate) fn try_drain(&self, lower_next: impl FnOnce(u64)) -> Requests {
        self.queue.try_lock().map_or_else(Requests::default, |mut queue| self.take(&mut queue.requests, lower_next))
    }

    /// Removes up to [`MAX_HELPED`] requests. Called by the worker, which must hold the shard's
    /// lock.
    pub(crate) fn drain(&self) -> Requests {
        self.take(&mut self.queue.lock().requests, |_| {})
    }

    /// Removes up to [`MAX_HELPED`] requests. If no others are left, the result is the buffer
    /// itself, which the caller frees after it has unlocked the shard. Calls `lower_next` with
    /// their earliest tick before it raises `due`.
    fn take(&self, requests: &mut Requests, lower_next: impl FnOnce(u64)) -> Requests {
        let taken = match requests.len() {
            0..=MAX_HELPED => std::mem::take(requests),
            _ => Box::new(requests.drain(..MAX_HELPED).collect()),
        };
        lower_next(taken.iter().map(|request| request.tick).min().unwrap_or(NO_TICK));
        if requests.is_empty() {
            self.raise_due();
        }
        taken
    }

    /// Returns the context of the timer that leases the shard under the name `id`.
    pub(crate) fn context(&self, id: ShardId) -> Option<Arc<TimerContext>> {
        self.queue.lock().lease.context(id).cloned()
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
