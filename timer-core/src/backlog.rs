//! The backlog, the queued timeouts of a timer in the order of their hand-over.
//!
//! An executor never sees the timeouts. All tasks that it gets are alike. Each of them starts the
//! first timeout of the backlog that is still queued. A timeout that is cancelled or moved
//! therefore leaves its task to another timeout, and no executor has to know which tasks are dead.
//!
//! # The number of tasks
//!
//! The executor has as many tasks as timeouts are queued, and *spare* ones. Each step keeps this
//! balance:
//!
//! - The worker adds timeouts and one task for each. It adds fewer tasks if there are more than
//!   [`MAX_SPARE`] spare ones in addition to one per queued timeout ([`push`](Backlog::push)). If
//!   the executor rejects or drops a task, a spare one takes its place
//!   ([`take_spare`](Backlog::take_spare)).
//! - A thread that cancels or moves a queued timeout turns its task into a spare one, after the
//!   state word has decided ([`leave`](Backlog::leave)).
//! - A task starts a timeout. If it finds none, it counts as a spare one and ends
//!   ([`start_next`](Backlog::start_next)).
//!
//! A task that finds no timeout may come before the thread that has cancelled its timeout reaches
//! `leave`. Therefore the number of spare tasks can be negative for a moment.
//!
//! # No timeout is left without a task
//!
//! The critical case is a task that finds the backlog empty and ends, while the worker adds a
//! timeout and relies on a spare task:
//!
//! - The worker adds the timeout before it reads the number of spare tasks.
//! - The task decrements that number before it looks at the backlog again.
//!
//! If the task comes first, the worker finds one spare task fewer. Otherwise the task finds the
//! timeout.
//!
//! # Memory
//!
//! A timeout that has left the queue leaves an item behind. A thread that cancels or moves a
//! timeout reads one chunk of the backlog if more than half of the items are of this kind, and
//! removes those in the chunk.

use crate::counters::LateCause;
use crate::deadline::Nanos;
use crate::entry::Timeout;
use crate::lateness::Timeline;
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering};
use std::collections::VecDeque;

/// The number of items that are read under one lock.
const CHUNK: usize = if cfg!(all(test, timer_loom)) { 1 } else { 64 };

/// The number of spare tasks, in addition to one per queued timeout, that the worker leaves unused.
const MAX_SPARE: usize = if cfg!(all(test, timer_loom)) { 0 } else { 64 };

/// The value of `spare` that stands for zero.
const ZERO: usize = 1 << 30;

/// The lateness of a task when it was handed over to an executor.
#[derive(Clone, Default)]
pub(crate) struct Handover {
    /// The time at which it was due.
    pub(crate) due: Nanos,
    /// The beginning of the batch with which it was handed over.
    pub(crate) at: Nanos,
    /// The worker's timeline up to `at`. `None` if the task was late by a short time.
    pub(crate) before: Option<Arc<Timeline<LateCause>>>,
}

/// A timeout that was handed over.
pub(crate) type Item = (Timeout, Handover);

pub(crate) struct Backlog {
    items: Mutex<Items>,
    /// The number of spare tasks, plus [`ZERO`].
    spare: AtomicUsize,
    /// Tasks that the executor has rejected or dropped, and that are not spare.
    abandoned: AtomicUsize,
}

/// The items in chunks, so that no step of the list takes long.
#[derive(Default)]
struct Items {
    chunks: VecDeque<VecDeque<Item>>,
    len: usize,
    /// The chunk to sweep next.
    next: usize,
}

impl Backlog {
    pub(crate) fn new() -> Self {
        Self { items: Mutex::new(Items::default()), spare: AtomicUsize::new(ZERO), abandoned: AtomicUsize::new(0) }
    }

    /// Adds timeouts and returns the number of tasks that the executor needs for them. `queued` is
    /// the number of all queued timeouts, including the added ones.
    pub(crate) fn push(&self, items: &mut Vec<Item>, queued: u64) -> usize {
        let added = items.len();
        self.items.lock().extend(items);
        let keep = usize::try_from(queued).unwrap_or(ZERO).saturating_add(ZERO + MAX_SPARE);
        let settle = |spare: usize| spare.max(ZERO) - spare.saturating_sub(keep).min(added);
        // ORDERING: Relaxed, because the lock orders it; see the module's head.
        let before = self.spare.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |spare| Some(settle(spare)));
        let before = before.unwrap_or_else(|spare| spare);
        added + settle(before) - before
    }

    /// Offers queued timeouts to `start` until it returns `true`. Called once for each task of the
    /// executor.
    pub(crate) fn start_next(&self, mut start: impl FnMut(Timeout, &Handover) -> bool) {
        loop {
            while let Some((timeout, handover)) = self.pop() {
                if start(timeout, &handover) {
                    return;
                }
            }
            // ORDERING: Relaxed, because the lock orders it; see the module's head.
            if self.spare.fetch_sub(1, Ordering::Relaxed) > ZERO || self.items.lock().len == 0 {
                return;
            }
            // ORDERING: Relaxed, as above.
            self.spare.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn pop(&self) -> Option<Item> {
        self.items.lock().pop()
    }

    /// Turns the task of a timeout that has left the queue into a spare one. `queued` timeouts
    /// remain in the queue.
    pub(crate) fn leave(&self, queued: u64) {
        // ORDERING: Relaxed, because the number is exact by read-modify-writes alone.
        self.spare.fetch_add(1, Ordering::Relaxed);
        // If the list is locked, another thread sweeps it later.
        if let Some(mut items) = self.items.try_lock() {
            if items.len as u64 > (2 * queued).saturating_add(CHUNK as u64) {
                items.sweep();
            }
        }
    }

    /// Uses up a spare task. Returns `false` if there is none.
    pub(crate) fn take_spare(&self) -> bool {
        // ORDERING: Relaxed, as in `leave`.
        self.spare.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |spare| (spare > ZERO).then(|| spare - 1)).is_ok()
    }

    #[cfg(all(test, timer_loom))]
    pub(crate) fn has_no_spare(&self) -> bool {
        // ORDERING: Relaxed, because the other threads have ended.
        self.spare.load(Ordering::Relaxed) == ZERO
    }

    /// Notes that the executor has lost a task.
    pub(crate) fn abandon(&self) {
        // ORDERING: AcqRel pairs with `take_abandoned`, whose caller sees the hand-over.
        self.abandoned.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns `true` if the caller has to do the work of a task that the executor has lost.
    pub(crate) fn take_abandoned(&self) -> bool {
        // ORDERING: AcqRel, as in `abandon`. A failure takes nothing and needs no order.
        self.abandoned.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |tasks| tasks.checked_sub(1)).is_ok()
    }

    /// Returns `true` if the executor has lost a task whose work is not done.
    pub(crate) fn has_abandoned(&self) -> bool {
        // ORDERING: Relaxed, because the alarm orders it.
        self.abandoned.load(Ordering::Relaxed) > 0
    }
}

impl Items {
    fn extend(&mut self, items: &mut Vec<Item>) {
        self.len += items.len();
        for item in items.drain(..) {
            match self.chunks.back_mut() {
                Some(chunk) if chunk.len() < CHUNK => chunk.push_back(item),
                _ => self.chunks.push_back(VecDeque::from([item])),
            }
        }
    }

    fn pop(&mut self) -> Option<Item> {
        while let Some(chunk) = self.chunks.front_mut() {
            if let Some(item) = chunk.pop_front() {
                self.len -= 1;
                return Some(item);
            }
            if self.chunks.len() == 1 {
                break;
            }
            self.chunks.pop_front();
            self.next = self.next.saturating_sub(1);
        }
        None
    }

    /// Removes the items of one chunk whose timeouts have left the queue, and joins the chunk with
    /// the one before if both have room in one.
    fn sweep(&mut self) {
        let at = if self.next < self.chunks.len() { self.next } else { 0 };
        let Some(chunk) = self.chunks.get_mut(at) else { return };
        let before = chunk.len();
        // The tasks of the other timeouts have been taken out, so no user code is dropped.
        chunk.retain(|(timeout, handover)| timeout.state().is_queued_since(handover.at));
        let left = chunk.len();
        self.len -= before - left;
        self.next = at + 1;
        if at > 0 && self.chunks[at - 1].len() + left <= CHUNK {
            let rest = self.chunks.remove(at).unwrap_or_default();
            self.chunks[at - 1].extend(rest);
            self.next = at;
        }
    }
}
