//! `Mutex<BinaryHeap>` and a thread. Cancelled and moved entries stay inside until their deadline,
//! because a heap cannot remove them.

use super::shared::{Ordered, Shared};
use super::{Job, Peer};
use std::cmp::Ordering as Order;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The state that handle and heap share. An entry is valid only while it has the number in this
/// slot. No entry has 0.
pub(super) struct Slot {
    number: AtomicU64,
    task: Box<dyn Fn() + Send + Sync>,
}

struct Entry {
    deadline: Instant,
    number: u64,
    slot: Arc<Slot>,
}

impl Ord for Entry {
    /// Reverses the order, because the top of the heap is its greatest entry.
    fn cmp(&self, other: &Self) -> Order {
        (other.deadline, other.number).cmp(&(self.deadline, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Order::Equal
    }
}

impl Eq for Entry {}

#[derive(Default)]
pub(super) struct Tasks {
    heap: BinaryHeap<Entry>,
    number: u64,
}

impl Tasks {
    fn push(&mut self, deadline: Instant, slot: Arc<Slot>) {
        self.number += 1;
        // ORDERING: Relaxed, because the lock orders all other data.
        slot.number.store(self.number, Ordering::Relaxed);
        self.heap.push(Entry { deadline, number: self.number, slot });
    }
}

impl Ordered for Tasks {
    type Due = Arc<Slot>;

    fn first(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.deadline)
    }

    fn take_first(&mut self) -> Option<Arc<Slot>> {
        let entry = self.heap.pop()?;
        // ORDERING: Relaxed, because this word alone decides, and the slot itself never changes.
        let won = entry.slot.number.compare_exchange(entry.number, 0, Ordering::Relaxed, Ordering::Relaxed);
        won.is_ok().then_some(entry.slot)
    }

    fn run(slot: Arc<Slot>) {
        (slot.task)();
    }
}

#[derive(Clone)]
pub(super) struct Heap {
    tasks: Shared<Tasks>,
}

pub(super) struct CapturedJob<J>(J);

impl Peer for Heap {
    const NAME: &'static str = "heap";
    type Handle = Arc<Slot>;
    type Work<J: Job> = CapturedJob<J>;

    fn build(_: Duration) -> Self {
        Self { tasks: Shared::start() }
    }

    fn work<J: Job>(job: J) -> Self::Work<J> {
        CapturedJob(job)
    }

    fn schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> Arc<Slot> {
        let job = work.0;
        let slot = Arc::new(Slot { number: AtomicU64::new(0), task: Box::new(move || job.run()) });
        let handle = slot.clone();
        let deadline = Instant::now() + delay;
        self.tasks.add(deadline, |tasks| tasks.push(deadline, slot));
        handle
    }

    fn cancel(&mut self, slot: Arc<Slot>) {
        // ORDERING: Relaxed, because this word alone decides.
        slot.number.store(0, Ordering::Relaxed);
    }

    fn reset(&mut self, slot: &mut Arc<Slot>, delay: Duration) {
        let (deadline, slot) = (Instant::now() + delay, slot.clone());
        self.tasks.add(deadline, |tasks| tasks.push(deadline, slot));
    }

    fn pending(&self) -> Option<usize> {
        Some(self.tasks.read(|tasks| tasks.heap.len()))
    }

    fn stop(self) {
        self.tasks.stop();
    }
}
