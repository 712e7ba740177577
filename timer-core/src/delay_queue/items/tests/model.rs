//! The items compared with a map of them, on random operations.
//!
//! Chunks are short in tests, so the bucket of a crowd of items cascades in several steps. Between
//! these steps, runs of the items are moved, taken and removed.

use super::*;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::ops::Range;

const SEEDS: u64 = if cfg!(debug_assertions) { 200 } else { 20_000 };

const STEPS: usize = 150;

/// The largest number of items that a step inserts, moves or removes.
const CROWD: usize = 60;

#[derive(Clone, Copy)]
struct Known {
    key: Key,
    deadline: u64,
    tick: u64,
}

/// Returns the number, the key and the deadline of an item.
fn parts(expired: Expired<u32>) -> (u32, Key, u64) {
    (expired.value, expired.key, clock::nanos_of(expired.deadline))
}

struct Model {
    seed: u64,
    random: Rng,
    items: Items<u32>,
    time: Nanos,
    /// The items by their numbers.
    known: BTreeMap<u32, Known>,
    inserted: u32,
    /// Whether an item was inserted or moved after it was due. Items that were collected earlier
    /// come first then.
    is_unordered: bool,
}

impl Model {
    fn new(seed: u64) -> Self {
        let random = Rng::with_seed(seed);
        let mut items = items();
        // Threads that share a queue may use it between two steps of a collection.
        items.max_steps = if seed % 2 == 0 { usize::MAX } else { 1 };
        Self { seed, random, items, time: 0, known: BTreeMap::new(), inserted: 0, is_unordered: false }
    }

    /// Checks the tick of a new deadline. An item that is due at once has its own tick or none.
    fn check_tick(&mut self, tick: u64, deadline: u64) {
        let is_due = deadline <= self.time;
        self.is_unordered |= is_due;
        let may_be_at_once = is_due && tick == 0;
        let has_ended = !is_due || tick <= self.time / TICK;
        assert!(may_be_at_once || (tick == deadline.div_ceil(TICK) && has_ended), "seed {}", self.seed);
    }

    fn delay(&mut self) -> u64 {
        let ticks = [1, 3, 70, 200, 5_000, 300_000][self.random.usize(..6)];
        self.random.u64(..ticks * TICK)
    }

    /// Draws a function that returns the deadlines of a crowd, near each other or not.
    fn deadlines(&mut self) -> impl FnMut(&mut Self) -> u64 + use<> {
        let base = self.time + self.delay();
        let apart = [1, TICK, 400][self.random.usize(..3)];
        move |model| base + model.random.u64(..apart)
    }

    /// Draws some items with neighboring numbers.
    fn draw_run(&mut self) -> Vec<u32> {
        let first = self.random.usize(..self.known.len().max(1));
        let len = self.random.usize(..CROWD);
        self.known.keys().copied().skip(first).take(len).collect()
    }

    fn insert_crowd(&mut self) {
        let mut deadline = self.deadlines();
        for _ in 0..self.random.usize(1..CROWD) {
            let deadline = deadline(self);
            let (key, tick) = self.items.insert(self.inserted, Deadline::up(deadline), self.time);
            self.check_tick(tick, deadline);
            self.known.insert(self.inserted, Known { key, deadline, tick });
            self.inserted += 1;
        }
    }

    fn move_run(&mut self) {
        let mut deadline = self.deadlines();
        for id in self.draw_run() {
            let deadline = deadline(self);
            let key = self.known[&id].key;
            let Some(tick) = self.items.reset(key, Deadline::up(deadline), self.time) else {
                panic!("{id} is in the queue");
            };
            self.check_tick(tick, deadline);
            self.known.insert(id, Known { key, deadline, tick });
        }
    }

    fn remove_run(&mut self) {
        for id in self.draw_run() {
            let Known { key, deadline, .. } = self.known[&id];
            self.known.remove(&id);
            let removed = self.items.remove(key).map(parts);
            assert_eq!(removed, Some((id, key, deadline)), "seed {}", self.seed);
            assert!(self.items.remove(key).is_none());
            assert!(self.items.reset(key, Deadline::up(deadline), self.time).is_none());
        }
    }

    /// Takes an item that is due, or some steps towards it. Returns `false` if there is none.
    fn take(&mut self) -> bool {
        let now = self.time / TICK;
        let seed = self.seed;
        let is_collected = self.items.collect(now);
        if is_collected == Some(false) {
            assert!(self.known.values().all(|known| known.tick > now), "seed {seed}: an item is late");
            self.is_unordered = false;
            return false;
        }
        if is_collected.is_none() || !self.items.trim_due() {
            return true;
        }
        let Some((id, key, deadline)) = self.items.pop().map(parts) else { panic!("seed {seed}: no item is left") };
        assert!(deadline <= self.time, "seed {seed}: an item is early");
        let known = self.known.remove(&id).map(|known| (known.key, known.deadline));
        assert_eq!(known, Some((key, deadline)), "seed {seed}");
        let is_first = self.known.values().all(|known| known.deadline >= deadline);
        assert!(is_first || self.is_unordered, "seed {seed}: out of order");
        true
    }

    fn take_some(&mut self, number: Range<usize>) {
        for _ in 0..self.random.usize(number) {
            if !self.take() {
                return;
            }
        }
    }

    fn drain(&mut self) {
        let mut drained: Vec<_> = self.items.drain().map(parts).collect();
        drained.sort_unstable_by_key(|(id, ..)| *id);
        let known = self.known.iter().map(|(id, known)| (*id, known.key, known.deadline));
        assert!(known.eq(drained), "seed {}", self.seed);
        self.known.clear();
    }

    fn step(&mut self) {
        match self.random.u8(..32) {
            0..8 => self.insert_crowd(),
            8..14 => self.move_run(),
            14..18 => self.remove_run(),
            18..21 => self.time += self.delay(),
            21..25 => self.time = self.time.max(self.items.next().unwrap_or(0) * TICK),
            25..29 => self.take_some(1..4),
            29 => self.take_some(CROWD..10 * CROWD),
            30 => self.items.shrink_to_fit(),
            _ if self.random.u8(..8) == 0 => self.drain(),
            _ => self.time += 1,
        }
        self.check();
    }

    fn check(&self) {
        let seed = self.seed;
        assert_eq!(self.items.len(), self.known.len(), "seed {seed}");
        let tick = self.known.values().map(|known| known.tick).min();
        if self.items.is_collecting() {
            return assert_eq!(self.items.next(), Some(0), "seed {seed}");
        }
        assert_eq!(self.items.next().is_some(), tick.is_some(), "seed {seed}");
        assert!(self.items.next() <= tick, "seed {seed}: the queue would be polled late");
        if self.items.max_steps == 1 {
            return;
        }
        let first = self.known.values().map(|known| known.deadline).min();
        let peeked = self.items.peek().and_then(|key| self.items.deadline(key)).map(clock::nanos_of);
        assert!(peeked == first || (self.is_unordered && peeked > first), "seed {seed}: {peeked:?} {first:?}");
    }
}

#[test]
fn items_match_a_sorted_map() {
    for seed in 0..SEEDS {
        let mut model = Model::new(seed);
        (0..STEPS).for_each(|_| model.step());
        model.time = u64::MAX / 2;
        while model.take() {}
        assert_eq!(model.items.len(), 0, "seed {seed}");
    }
}
