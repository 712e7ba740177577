//! The hashed wheel: scheme 6 of Varghese & Lauck (1987), as in Netty.
//!
//! One ring of buckets; a deadline belongs to the slot of its low bits, whatever its round. Entries of later rounds
//! stay where they are until their round comes, so nothing cascades and a value moves only when its bucket, having become sparse,
//! closes up.
//!
//! A bucket is visited only when the earliest deadline in it is due, then it is walked once. What the original pays
//! for, a visit to every slot on every tick and a look at all who wait there, is absent: the pages of buckets know
//! which bucket is next, so a jump of any length costs what is due and no more. The cost that stays is that of a slot
//! shared by many rounds: each visit reads all of the bucket. With as many slots as values, that is a few.
//!
//! Absent here: clocks, keys, locks, and any work per tick.

use super::bucket::{Bucket, Entry, OVERDUE, Place};
use super::location::{Location, Tracker};
use super::min_tree::MinTree;
use super::raw::RawWheel;

/// The most slots that a wheel has.
const MOST_SLOTS: usize = 1 << 30;

/// The hashed wheel below its keys.
pub(crate) struct RawHashed<V, P> {
    now: u64,
    len: usize,
    /// A power of two less one.
    mask: u32,
    buckets: MinTree<V>,
    /// What was due when it came in.
    overdue: Bucket<V>,
    tracker: P,
}

impl<V, P: Tracker<V>> RawHashed<V, P> {
    /// `ticks_per_wheel` is brought into 1..=2^30 and rounded up to a power of two.
    pub(crate) fn new(ticks_per_wheel: usize, tracker: P) -> Self {
        let slots = ticks_per_wheel.clamp(1, MOST_SLOTS).next_power_of_two() as u32;
        RawHashed {
            now: 0,
            len: 0,
            mask: slots - 1,
            buckets: MinTree::new(slots.ilog2()),
            overdue: Bucket::new(),
            tracker,
        }
    }

    pub(crate) fn ticks_per_wheel(&self) -> usize {
        self.mask as usize + 1
    }
}

impl<V, P: Tracker<V>> RawWheel<V> for RawHashed<V, P> {
    type Tracker = P;

    fn insert(&mut self, deadline: u64, value: V) {
        if deadline <= self.now {
            self.overdue.push(OVERDUE, deadline, value, &mut self.tracker);
        } else {
            self.buckets.push(deadline as u32 & self.mask, deadline, value, &mut self.tracker);
        }
        self.len += 1;
    }

    fn remove(&mut self, location: Location, wanted: impl Fn(&V) -> bool) -> Option<V> {
        let value = match location.bucket() {
            OVERDUE => self.overdue.remove_and_compact(OVERDUE, location.position(), wanted, &mut self.tracker),
            slot if slot <= self.mask => self.buckets.remove(slot, location.position(), wanted, &mut self.tracker),
            _ => None,
        }?;
        self.len -= 1;
        Some(value)
    }

    fn wind(&mut self, now: u64) {
        debug_assert!(self.len == 0);
        self.now = self.now.max(now);
    }

    fn get(&self, location: Location) -> Option<(u64, &V)> {
        match location.bucket() {
            OVERDUE => self.overdue.get(location.position()),
            slot if slot <= self.mask => self.buckets.bucket(slot)?.get(location.position()),
            _ => None,
        }
    }

    fn take_overdue(&mut self, out: &mut Vec<Place<V>>) {
        self.len -= self.overdue.len();
        self.overdue.swap_out(out);
    }

    /// Takes out what is due of one bucket: the others stay where they are. O(the bucket's places).
    fn take_next(&mut self, now: u64, out: &mut Vec<Place<V>>) -> bool {
        debug_assert!(out.is_empty());
        // At once, so that each bucket is read once, however many of its rounds are due.
        self.now = self.now.max(now);
        while self.buckets.earliest().is_some_and(|earliest| earliest <= self.now) {
            self.buckets.take_earliest(self.now, out, &mut self.tracker);
            if !out.is_empty() {
                self.len -= out.len();
                return true;
            }
        }
        false
    }

    fn earliest(&self) -> Option<u64> {
        self.buckets.earliest()
    }

    fn has_overdue(&self) -> bool {
        !self.overdue.is_empty()
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.len
    }

    fn drain(&mut self, out: &mut Vec<Entry<V>>) {
        out.reserve(self.len);
        let mut places = Vec::new();
        self.overdue.swap_out(&mut places);
        while self.buckets.earliest().is_some() {
            self.buckets.take_any(&mut places);
        }
        out.extend(places.into_iter().filter_map(|(deadline, value)| Some((deadline, value?))));
        self.buckets.clear();
        self.len = 0;
    }

    fn tracker(&self) -> &P {
        &self.tracker
    }

    fn tracker_mut(&mut self) -> &mut P {
        &mut self.tracker
    }
}

#[cfg(test)]
mod tests;
