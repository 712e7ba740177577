//! The items of a queue in a wheel that counts the ticks of a timer.

use super::Expired;
use crate::clock;
use crate::handle::Timer;
use crate::time::{Deadline, Nanos};
use crate::wheel::{Key, QueueWheel, Ranked};
use std::time::Instant;

/// A value and its deadline, which is finer than the tick.
struct Timed<T> {
    deadline: Deadline,
    value: T,
}

impl<T> Ranked for Timed<T> {
    fn rank(&self) -> u64 {
        self.deadline.to_bits()
    }
}

impl<T> Timed<T> {
    fn expired(self, key: Key) -> Expired<T> {
        Expired { key, deadline: clock::instant(self.deadline.nanos()), value: self.value }
    }
}

/// Items with deadlines on the clock of a timer.
pub(super) struct Items<T> {
    wheel: QueueWheel<Timed<T>>,
    timer: Timer,
}

impl<T> Items<T> {
    pub(super) fn new(timer: &Timer) -> Self {
        Self { wheel: QueueWheel::new(), timer: timer.clone() }
    }

    /// Reads the clock.
    #[inline]
    pub(super) fn now(&self) -> Nanos {
        self.timer.engine().context.now()
    }

    /// Inserts an item and returns its key and its tick.
    #[inline]
    pub(super) fn insert(&mut self, value: T, deadline: Deadline, now: Nanos) -> (Key, u64) {
        let resolution = self.timer.engine().context.resolution;
        let tick = resolution.tick_from(deadline, now);
        let key = self.wheel.insert(tick, Timed { deadline, value }, resolution.tick_at(now));
        (key, tick)
    }

    /// Moves an item and returns its new tick, or `None` if it is gone.
    pub(super) fn reset(&mut self, key: Key, deadline: Deadline, now: Nanos) -> Option<u64> {
        let resolution = self.timer.engine().context.resolution;
        let tick = resolution.tick_from(deadline, now);
        let change = |item: &mut Timed<T>| {
            item.deadline = deadline;
            tick
        };
        self.wheel.relink(key, resolution.tick_at(now), change).then_some(tick)
    }

    #[inline]
    pub(super) fn remove(&mut self, key: Key) -> Option<Expired<T>> {
        Some(self.wheel.remove(key)?.expired(key))
    }

    /// Takes an item that was due when the clock was read last.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Expired<T>> {
        let (key, item) = self.wheel.pop()?;
        Some(item.expired(key))
    }

    /// Collects items that are due at `now`. Call it when [`pop`](Self::pop) finds none. Returns
    /// `false` if nothing is due.
    pub(super) fn collect(&mut self, now: Nanos) -> bool {
        self.wheel.collect(self.timer.engine().context.resolution.tick_at(now))
    }

    /// Returns the tick at which something may be due, or `None` if there is no item.
    #[inline]
    pub(super) fn next(&self) -> Option<u64> {
        self.wheel.next()
    }

    /// Returns the beginning of a tick.
    pub(super) fn start_of(&self, tick: u64) -> Nanos {
        self.timer.engine().context.resolution.start_of(tick)
    }

    pub(super) fn get(&self, key: Key) -> Option<&T> {
        self.wheel.get(key).map(|item| &item.value)
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.wheel.get_mut(key).map(|item| &mut item.value)
    }

    pub(super) fn deadline(&self, key: Key) -> Option<Instant> {
        self.wheel.get(key).map(|item| clock::instant(item.deadline.nanos()))
    }

    pub(super) fn peek(&self) -> Option<Key> {
        self.wheel.peek()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.wheel.len()
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Expired<T>> + use<T> {
        self.wheel.drain().into_iter().map(|(key, item)| item.expired(key))
    }

    pub(super) fn reserve(&mut self, additional: usize) {
        self.wheel.reserve(additional);
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.wheel.shrink_to_fit();
    }
}
