//! Delay queues for several threads, behind one trait: ours, and a heap behind a mutex with a
//! condition variable.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use timer_core::Timer;
use timer_core::delay_queue::{Expired, SharedDelayQueue};

/// A queue for several producers and consumers. Clones are handles to the same queue.
pub(crate) trait SharedQueue: Clone + Send + 'static {
    /// The name on the command line and in the tables.
    const NAME: &'static str;

    /// Creates an empty queue.
    fn new() -> Self;

    /// Inserts `item`, to come out `delay` from now.
    fn insert(&self, item: u64, delay: Duration);

    /// Blocks until an item is due and returns it. Returns `None` if the queue is closed.
    fn take(&self) -> Option<u64>;

    /// Lets all consumers return.
    fn close(&self);
}

impl SharedQueue for SharedDelayQueue<u64> {
    const NAME: &'static str = super::OURS;

    fn new() -> Self {
        SharedDelayQueue::new(Timer::global())
    }

    fn insert(&self, item: u64, delay: Duration) {
        self.insert(item, delay);
    }

    fn take(&self) -> Option<u64> {
        self.take().map(Expired::into_inner)
    }

    fn close(&self) {
        self.close();
    }
}

#[derive(Default)]
struct State {
    items: BinaryHeap<Reverse<(Instant, u64)>>,
    is_closed: bool,
}

/// A heap behind a mutex. All consumers that wait do so until the first deadline.
#[derive(Clone, Default)]
pub(super) struct Heap(Arc<(Mutex<State>, Condvar)>);

impl Heap {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedQueue for Heap {
    const NAME: &'static str = <super::heap::Heap as super::Peer>::NAME;

    fn new() -> Self {
        Self::default()
    }

    fn insert(&self, item: u64, delay: Duration) {
        let deadline = Instant::now() + delay;
        let mut state = self.lock();
        let is_first = state.items.peek().is_none_or(|Reverse(first)| deadline < first.0);
        state.items.push(Reverse((deadline, item)));
        drop(state);
        if is_first {
            self.0.1.notify_one();
        }
    }

    fn take(&self) -> Option<u64> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            let now = Instant::now();
            let wait = state.items.peek().map(|Reverse(first)| first.0.saturating_duration_since(now));
            state = match wait {
                Some(Duration::ZERO) => {
                    let taken = state.items.pop().map(|Reverse((_, item))| item);
                    let is_empty = state.items.is_empty();
                    drop(state);
                    // Another consumer waits for the next item, because this one may be gone for
                    // long.
                    if !is_empty {
                        self.0.1.notify_one();
                    }
                    return taken;
                }
                Some(wait) => self.0.1.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0,
                None => self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.0.1.notify_all();
    }
}
