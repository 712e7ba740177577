//! The items of a queue in a wheel that counts the ticks of a timer.

use super::Expired;
use crate::clock;
use crate::handle::Timer;
use crate::resolution::Resolution;
use crate::time::{Deadline, Nanos};
use crate::wheel::{Key, QueueWheel, Ranked};
use std::time::Instant;

/// Items with deadlines on the clock of a timer. The rank of an item is its deadline, which is
/// finer than the tick.
pub(super) struct TimedWheel<T> {
    pub(super) wheel: QueueWheel<T>,
    timer: Timer,
}

impl<T> TimedWheel<T> {
    pub(super) fn new(timer: &Timer) -> Self {
        Self { wheel: QueueWheel::new(), timer: timer.clone() }
    }

    #[inline]
    fn resolution(&self) -> Resolution {
        self.timer.engine().context.resolution
    }

    /// Reads the clock.
    #[inline]
    pub(super) fn now(&self) -> Nanos {
        self.timer.engine().context.now()
    }

    /// Inserts an item and returns its key and its tick.
    #[inline]
    pub(super) fn insert(&mut self, value: T, deadline: Deadline, now: Nanos) -> (Key, u64) {
        let resolution = self.resolution();
        let tick = resolution.tick_from(deadline, now);
        let key = self.wheel.insert(tick, Ranked::new(deadline.to_bits(), value), resolution.tick_at(now));
        (key, tick)
    }

    /// Moves an item and returns its new tick, or `None` if it is gone.
    pub(super) fn reset(&mut self, key: Key, deadline: Deadline, now: Nanos) -> Option<u64> {
        let resolution = self.resolution();
        let tick = resolution.tick_from(deadline, now);
        self.wheel.relink(key, tick, deadline.to_bits(), resolution.tick_at(now)).then_some(tick)
    }

    #[inline]
    pub(super) fn remove(&mut self, key: Key) -> Option<Expired<T>> {
        Some(expired(key, self.wheel.remove(key)?))
    }

    /// Takes an item that is due. Reads the clock only if no item of the current tick is left, and
    /// returns the reading if nothing is due.
    #[inline]
    pub(super) fn take_due(&mut self) -> Result<Expired<T>, Nanos> {
        loop {
            if let Some((key, item)) = self.wheel.pop() {
                return Ok(expired(key, item));
            }
            let (now, resolution) = (self.now(), self.resolution());
            let tick_of = |rank| resolution.tick_of(Deadline::from_bits(rank));
            if !self.wheel.collect(resolution.tick_at(now), tick_of) {
                return Err(now);
            }
        }
    }

    /// Returns the tick at which something may be due, or `None` if there is no item.
    #[inline]
    pub(super) fn next(&self) -> Option<u64> {
        self.wheel.next()
    }

    /// Returns the beginning of a tick.
    pub(super) fn start_of(&self, tick: u64) -> Nanos {
        self.resolution().start_of(tick)
    }

    pub(super) fn get(&self, key: Key) -> Option<&T> {
        self.wheel.get(key).map(|item| &item.value)
    }

    pub(super) fn deadline(&self, key: Key) -> Option<Instant> {
        self.wheel.get(key).map(instant)
    }

    pub(super) fn peek(&self) -> Option<Key> {
        let resolution = self.resolution();
        self.wheel.peek(|rank| resolution.tick_of(Deadline::from_bits(rank)))
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.wheel.len()
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Expired<T>> + use<T> {
        self.wheel.drain().map(|(key, item)| expired(key, item))
    }
}

/// Returns the deadline of an item.
fn instant<T>(item: &Ranked<T>) -> Instant {
    clock::instant(Deadline::from_bits(item.rank()).nanos())
}

fn expired<T>(key: Key, item: Ranked<T>) -> Expired<T> {
    Expired { key, deadline: instant(&item), value: item.value }
}
