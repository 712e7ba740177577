//! The wheel compared with a map of its values, on random operations.
//!
//! Chunks are short in tests, so the bucket of a crowd of values cascades in several steps. Between
//! these steps, runs of the values are moved, taken and removed.

use super::*;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::ops::Range;

const SEEDS: u64 = if cfg!(debug_assertions) { 200 } else { 20_000 };

const STEPS: usize = 150;

/// The most values that a step inserts, moves or removes.
const CROWD: usize = 60;

#[derive(Clone, Copy)]
struct Known {
    key: Key,
    rank: u64,
    tick: u64,
}

struct Model {
    seed: u64,
    random: Rng,
    wheel: QueueWheel<u32>,
    /// The present, which is finer than a tick, as a rank is.
    time: u64,
    /// The values in the wheel by their numbers.
    values: BTreeMap<u32, Known>,
    inserted: u32,
    /// Whether a value was inserted or moved after it was due. Values that were collected earlier
    /// come first then.
    is_unordered: bool,
}

impl Model {
    fn new(seed: u64) -> Self {
        let (random, wheel) = (Rng::with_seed(seed), QueueWheel::new());
        Self { seed, random, wheel, time: 0, values: BTreeMap::new(), inserted: 0, is_unordered: false }
    }

    fn now(&self) -> u64 {
        self.time / RANKS
    }

    /// Returns the tick of a new rank. A value that is due gets tick 0, as in a delay queue.
    fn tick_of_new(&mut self, rank: u64) -> u64 {
        self.is_unordered |= rank <= self.time;
        if rank <= self.time { 0 } else { tick_of(rank) }
    }

    fn delay(&mut self) -> u64 {
        let ticks = [1, 3, 70, 200, 5_000, 300_000][self.random.usize(..6)];
        self.random.u64(..ticks * RANKS)
    }

    /// Draws a function that returns the ranks of a crowd, which are near each other or not.
    fn ranks(&mut self) -> impl FnMut(&mut Self) -> u64 + use<> {
        let (base, apart) = (self.time + self.delay(), [1, RANKS, 400][self.random.usize(..3)]);
        move |model| base + model.random.u64(..apart)
    }

    /// Draws some values with neighboring numbers.
    fn draw_run(&mut self) -> Vec<u32> {
        let (first, len) = (self.random.usize(..self.values.len().max(1)), self.random.usize(..CROWD));
        self.values.keys().copied().skip(first).take(len).collect()
    }

    fn insert_crowd(&mut self) {
        let mut rank = self.ranks();
        for _ in 0..self.random.usize(1..CROWD) {
            let rank = rank(self);
            let tick = self.tick_of_new(rank);
            let key = self.wheel.insert(tick, Ranked::new(rank, self.inserted), self.now());
            self.values.insert(self.inserted, Known { key, rank, tick });
            self.inserted += 1;
        }
    }

    fn move_run(&mut self) {
        let mut rank = self.ranks();
        for id in self.draw_run() {
            let rank = rank(self);
            let tick = self.tick_of_new(rank);
            let key = self.values[&id].key;
            assert!(self.wheel.relink(key, tick, rank, self.now()), "seed {}", self.seed);
            self.values.insert(id, Known { key, rank, tick });
        }
    }

    fn remove_run(&mut self) {
        for id in self.draw_run() {
            let Known { key, rank, .. } = self.values.remove(&id).expect("drawn from the map");
            let removed = self.wheel.remove(key).map(|value| (value.rank(), value.value));
            assert_eq!(removed, Some((rank, id)), "seed {}", self.seed);
            let tick = tick_of(rank);
            assert!(self.wheel.remove(key).is_none() && !self.wheel.relink(key, tick, rank, self.now()));
        }
    }

    /// Takes a value that is due. Returns `false` if there is none.
    fn take(&mut self) -> bool {
        let (now, seed) = (self.now(), self.seed);
        let (key, value) = loop {
            if let Some(popped) = self.wheel.pop() {
                break popped;
            }
            if !self.wheel.collect(now, tick_of) {
                assert!(self.values.values().all(|known| known.tick > now), "seed {seed}: a value is late");
                self.is_unordered = false;
                return false;
            }
        };
        assert!(value.rank() <= self.time, "seed {seed}: a value is early");
        let known = self.values.remove(&value.value).map(|known| (known.key, known.rank));
        assert_eq!(known, Some((key, value.rank())), "seed {seed}");
        let is_first = self.values.values().all(|known| known.rank >= value.rank());
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
        let mut drained: Vec<_> = self.wheel.drain().map(|(key, value)| (value.value, key, value.rank())).collect();
        drained.sort_unstable_by_key(|(id, ..)| *id);
        let known = self.values.iter().map(|(id, known)| (*id, known.key, known.rank));
        assert!(known.eq(drained), "seed {}", self.seed);
        self.values.clear();
    }

    fn step(&mut self) {
        match self.random.u8(..32) {
            0..8 => self.insert_crowd(),
            8..14 => self.move_run(),
            14..18 => self.remove_run(),
            18..21 => self.time += self.delay(),
            21..25 => self.time = self.time.max(self.wheel.next().unwrap_or(0) * RANKS),
            25..29 => self.take_some(1..4),
            29 => self.take_some(CROWD..10 * CROWD),
            30 => self.wheel.shrink_to_fit(),
            _ if self.random.u8(..8) == 0 => self.drain(),
            _ => self.time += 1,
        }
        self.check();
    }

    fn check(&self) {
        let seed = self.seed;
        assert_eq!(self.wheel.len(), self.values.len(), "seed {seed}");
        let tick = self.values.values().map(|known| known.tick).min();
        assert_eq!(self.wheel.next().is_some(), tick.is_some(), "seed {seed}");
        assert!(self.wheel.next() <= tick, "seed {seed}: the wheel would be polled late");
        let first = self.values.values().map(|known| known.rank).min();
        let peeked = self.wheel.peek(tick_of).and_then(|key| self.wheel.get(key)).map(Ranked::rank);
        assert!(peeked == first || (self.is_unordered && peeked > first), "seed {seed}: {peeked:?} {first:?}");
    }
}

#[test]
fn a_queue_wheel_matches_a_sorted_map() {
    for seed in 0..SEEDS {
        let mut model = Model::new(seed);
        (0..STEPS).for_each(|_| model.step());
        model.time = u64::MAX / 2;
        while model.take() {}
        assert_eq!(model.wheel.len(), 0, "seed {seed}");
    }
}
