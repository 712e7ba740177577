//! Maps whose entries expire: `DelayMap`, and a hash map beside a delay queue.

use crate::peer::{Queue, TtlMap};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use timer_core::Timer;
use timer_core::delay_queue::DelayMap;

impl TtlMap for DelayMap<u64, u64> {
    const HAS_THREAD: bool = true;

    fn new() -> Self {
        DelayMap::new(Timer::global())
    }

    #[inline]
    fn get(&mut self, key: u64) -> Option<u64> {
        DelayMap::get(self, &key).copied()
    }

    #[inline]
    fn set(&mut self, key: u64, value: u64, lifetime: Duration) {
        self.insert(key, value, lifetime);
    }

    #[inline]
    fn change(&mut self, key: u64, by: impl FnOnce(&mut u64)) -> bool {
        self.get_mut(&key).map(by).is_some()
    }

    #[inline]
    fn remove(&mut self, key: u64) {
        DelayMap::remove(self, &key);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.next_deadline()
    }

    #[inline]
    fn try_next(&mut self, _: &mut Context<'_>) -> Option<u64> {
        self.try_next().map(|expired| *expired.get_ref())
    }

    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<u64>> {
        self.poll_expired(context).map(|expired| Some(*expired?.get_ref()))
    }
}

/// A hash map, and a delay queue of its keys.
pub(crate) struct Pair<Q: Queue> {
    entries: HashMap<u64, (u64, Q::Key)>,
    keys: Q,
}

impl<Q: Queue> TtlMap for Pair<Q> {
    fn new() -> Self {
        Self { entries: HashMap::new(), keys: Q::new() }
    }

    #[inline]
    fn get(&mut self, key: u64) -> Option<u64> {
        self.entries.get(&key).map(|(value, _)| *value)
    }

    #[inline]
    fn set(&mut self, key: u64, value: u64, lifetime: Duration) {
        match self.entries.entry(key) {
            Entry::Occupied(mut entry) => {
                let (former, place) = entry.get_mut();
                *former = value;
                self.keys.reset(*place, lifetime);
            }
            Entry::Vacant(entry) => {
                entry.insert((value, self.keys.insert(key, lifetime)));
            }
        }
    }

    #[inline]
    fn change(&mut self, key: u64, by: impl FnOnce(&mut u64)) -> bool {
        self.entries.get_mut(&key).map(|(value, _)| by(value)).is_some()
    }

    #[inline]
    fn remove(&mut self, key: u64) {
        if let Some((_, place)) = self.entries.remove(&key) {
            self.keys.remove(place);
        }
    }

    #[inline]
    fn try_next(&mut self, context: &mut Context<'_>) -> Option<u64> {
        let key = self.keys.try_next(context)?;
        self.entries.remove(&key).map(|(value, _)| value)
    }

    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<u64>> {
        self.keys.poll(context).map(|key| self.entries.remove(&key?).map(|(value, _)| value))
    }
}
