//! Delay queues for several threads, behind one trait: ours, and a heap behind a mutex with a
//! condition variable and a leader.

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
    /// The number of the consumer that waits until the first deadline.
    leader: Option<u64>,
    /// The number of leaders so far.
    leaders: u64,
    is_closed: bool,
}

/// A heap behind a mutex, as Java's `DelayQueue` has it. One consumer, the leader, waits until the
/// first deadline, and the others wait to be notified.
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
        if is_first {
            // The notified consumer becomes the leader, and waits for the earlier deadline.
            state.leader = None;
        }
        drop(state);
        if is_first {
            self.0.1.notify_one();
        }
    }

    fn take(&self) -> Option<u64> {
        let mut state = self.lock();
        let taken = loop {
            if state.is_closed {
                return None;
            }
            let now = Instant::now();
            let wait = state.items.peek().map(|Reverse(first)| first.0.saturating_duration_since(now));
            state = match wait {
                Some(Duration::ZERO) => break state.items.pop().map(|Reverse((_, item))| item),
                Some(wait) if state.leader.is_none() => {
                    state.leaders += 1;
                    let number = Some(state.leaders);
                    state.leader = number;
                    let mut state = self.0.1.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
                    if state.leader == number {
                        state.leader = None;
                    }
                    state
                }
                _ => self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        };
        let has_no_leader = state.leader.is_none() && !state.items.is_empty();
        drop(state);
        if has_no_leader {
            self.0.1.notify_one();
        }
        taken
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.0.1.notify_all();
    }
}
