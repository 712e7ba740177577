//! Delay queues compared with a sorted map, on virtual time.

use crate::support::random::{Draw, Rng};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use timer_core::delay_queue::{DelayQueue, Expired, Key};
use timer_core::{ManualDriver, Timer};

#[derive(Debug, Clone)]
enum Step {
    Insert(Duration),
    InsertAt(Duration, bool),
    Remove(usize),
    Reset(usize, Duration),
    Change(usize),
    Advance(Duration),
    Poll,
    PollMany(usize),
    Peek,
    Clear,
    Drain,
    Shrink,
}

/// Items by deadline. Items of one deadline come out in any order.
struct Model {
    timer: Timer,
    driver: ManualDriver,
    queue: DelayQueue<u32>,
    items: BTreeMap<(Instant, u32), Key>,
    /// All items that were ever inserted.
    all: Vec<Key>,
    /// Whether an item was inserted or moved after it was due. Items that were collected earlier
    /// come first then.
    is_unordered: bool,
}

impl Model {
    fn new() -> Self {
        let (timer, driver) = Timer::builder().build_manual().unwrap();
        let queue = DelayQueue::new(&timer);
        Self { timer, driver, queue, items: BTreeMap::new(), all: Vec::new(), is_unordered: false }
    }

    fn find(&self, id: usize) -> Option<(Instant, u32)> {
        let key = *self.all.get(id % self.all.len().max(1))?;
        self.items.iter().find(|(_, it)| **it == key).map(|(at, _)| *at)
    }

    fn key(&self, id: usize) -> Option<Key> {
        self.all.get(id % self.all.len().max(1)).copied()
    }

    fn inserted(&mut self, key: Key, deadline: Instant) {
        let id = self.all.len() as u32;
        self.all.push(key);
        self.items.insert((deadline, id), key);
        self.is_unordered |= deadline <= self.timer.now();
    }

    /// Checks an item that came out.
    fn came_out(&mut self, expired: &Expired<u32>) {
        let at = (expired.deadline(), *expired.get_ref() & 0xffff);
        assert!(expired.deadline() <= self.timer.now(), "early");
        assert_eq!(self.items.remove(&at), Some(expired.key()), "the model has another item");
        if !self.is_unordered {
            let first = self.items.keys().next();
            assert!(first.is_none_or(|(deadline, _)| *deadline >= expired.deadline()), "out of order");
        }
    }

    fn is_due(&self) -> bool {
        self.items.keys().next().is_some_and(|(deadline, _)| *deadline <= self.timer.now())
    }

    fn settle(&mut self) {
        self.is_unordered &= self.is_due();
    }

    fn step(&mut self, step: &Step) {
        let mut cx = Context::from_waker(Waker::noop());
        match *step {
            Step::Insert(delay) => {
                let key = self.queue.insert(self.all.len() as u32, delay);
                let deadline = self.queue.deadline(&key).unwrap();
                assert!(delay > Duration::from_secs(1 << 40) || deadline == self.timer.now() + delay);
                self.inserted(key, deadline);
            }
            Step::InsertAt(by, past) => {
                let now = self.timer.now();
                let at = if past { now.checked_sub(by).unwrap_or(now) } else { now + by };
                let key = self.queue.insert_at(self.all.len() as u32, at);
                let deadline = self.queue.deadline(&key).unwrap();
                self.inserted(key, deadline);
            }
            Step::Remove(id) => {
                let Some(key) = self.key(id) else { return };
                let known = self.find(id);
                let removed = self.queue.remove(&key);
                assert_eq!(removed.as_ref().map(Expired::deadline), known.map(|(deadline, _)| deadline));
                if let Some(at) = known {
                    self.items.remove(&at);
                }
                assert!(self.queue.get(&key).is_none() && self.queue.remove(&key).is_none());
            }
            Step::Reset(id, delay) => self.reset(id, delay),
            Step::Change(id) => {
                let Some(key) = self.key(id) else { return };
                let known = self.find(id);
                assert_eq!(self.queue.get(&key).map(|value| value & 0xffff), known.map(|(_, id)| id));
                if let Some(value) = self.queue.get_mut(&key) {
                    *value ^= 1 << 20;
                }
            }
            Step::Advance(by) => {
                self.driver.advance(by);
            }
            Step::Poll => match self.queue.poll_expired(&mut cx) {
                Poll::Pending => assert!(!self.items.is_empty() && !self.is_due(), "the queue missed a due item"),
                Poll::Ready(None) => assert!(self.items.is_empty()),
                Poll::Ready(Some(expired)) => self.came_out(&expired),
            },
            Step::PollMany(max) => self.poll_many(max),
            Step::Peek => self.peek(),
            Step::Clear => {
                self.queue.clear();
                self.items.clear();
            }
            Step::Drain => self.drain(),
            Step::Shrink => {
                self.queue.shrink_to_fit();
                self.queue.reserve(5);
            }
        }
        assert_eq!((self.queue.len(), self.queue.is_empty()), (self.items.len(), self.items.is_empty()));
        self.settle();
    }

    fn reset(&mut self, id: usize, delay: Duration) {
        let Some(key) = self.key(id) else { return };
        let known = self.find(id);
        assert_eq!(self.queue.reset(&key, delay), known.is_some());
        assert_eq!(self.queue.deadline(&key).is_some(), known.is_some());
        if let Some(at) = known {
            self.items.remove(&at);
            let deadline = self.queue.deadline(&key).unwrap();
            self.items.insert((deadline, at.1), key);
            self.is_unordered |= deadline <= self.timer.now();
        }
    }

    fn poll_many(&mut self, max: usize) {
        let mut cx = Context::from_waker(Waker::noop());
        let mut out = Vec::new();
        match self.queue.poll_expired_many(&mut cx, &mut out, max) {
            Poll::Pending => assert!(!self.is_due() && max > 0 && out.is_empty()),
            Poll::Ready(many) => {
                assert_eq!(many, out.len());
                out.iter().for_each(|expired| self.came_out(expired));
                assert!(many == max || !self.is_due());
            }
        }
    }

    fn peek(&mut self) {
        let peeked = self.queue.peek();
        assert_eq!(peeked.is_some(), !self.items.is_empty());
        if let Some(key) = peeked {
            let deadline = self.queue.deadline(&key).unwrap();
            let first = self.items.keys().next().unwrap().0;
            assert!(self.is_unordered || deadline == first, "another item is due first");
        }
    }

    fn drain(&mut self) {
        let mut drained: Vec<_> = self.queue.drain().map(|item| (item.deadline(), item.key())).collect();
        let mut known: Vec<_> = self.items.iter().map(|((deadline, _), key)| (*deadline, *key)).collect();
        drained.sort_unstable();
        known.sort_unstable();
        assert_eq!(drained, known);
        self.items.clear();
    }
}

fn delay() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        (0..20u64).prop_map(Duration::from_nanos),
        (0..5_000u64).prop_map(Duration::from_nanos),
        (0..40u32).prop_map(|bit| Duration::from_nanos(1 << bit)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => delay().prop_map(Step::Insert),
        2 => ((0..5_000u64).prop_map(Duration::from_nanos), any::<bool>()).prop_map(|(by, past)| Step::InsertAt(by, past)),
        3 => any::<usize>().prop_map(Step::Remove),
        4 => (any::<usize>(), delay()).prop_map(|(id, delay)| Step::Reset(id, delay)),
        1 => any::<usize>().prop_map(Step::Change),
        3 => (0..36u32).prop_map(|bit| Step::Advance(Duration::from_nanos(1 << bit))),
        6 => Just(Step::Poll),
        2 => (0..9usize).prop_map(Step::PollMany),
        2 => Just(Step::Peek),
        1 => Just(Step::Shrink),
    ]
}

fn run(steps: &[Step]) {
    let mut model = Model::new();
    steps.iter().for_each(|step| model.step(step));
    // In the end every item comes out, except for those that never come.
    model.driver.advance(Duration::from_secs(1 << 30));
    while model.is_due() {
        model.step(&Step::PollMany(7));
    }
    model.step(&Step::Drain);
}

/// The optimized tests of `ci --long` have time for more.
const CASES: u32 = if cfg!(debug_assertions) { 128 } else { 2_048 };

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_delay_queue_matches_a_sorted_map(steps in prop::collection::vec(step(), 1..200)) {
        run(&steps);
    }

    #[test]
    fn a_cleared_delay_queue_starts_again(
        before in prop::collection::vec(step(), 1..40),
        after in prop::collection::vec(step(), 1..40),
        drained in any::<bool>(),
    ) {
        let steps: Vec<_> = before.into_iter().chain([if drained { Step::Drain } else { Step::Clear }]).chain(after).collect();
        run(&steps);
    }
}

#[test]
fn thousands_of_late_items_come_in_order() {
    let mut model = Model::new();
    let mut random = Rng::with_seed(7);
    for _ in 0..20 {
        for _ in 0..2_000 {
            model.step(&Step::Insert(random.duration(Duration::from_millis(5))));
        }
        model.step(&Step::Advance(Duration::from_millis(3)));
        for _ in 0..200 {
            model.step(&Step::PollMany(7));
        }
        model.step(&Step::Clear);
    }
}
