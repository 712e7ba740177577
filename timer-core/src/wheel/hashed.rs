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

use super::bucket::{Bucket, Entry, OVERDUE};
use super::pages::Pages;
use super::raw::RawWheel;
use super::spot::{Places, Spot};

/// The most slots that a wheel has.
const MOST_SLOTS: usize = 1 << 30;

/// The hashed wheel below its keys.
pub(crate) struct Ring<V, P> {
    now: u64,
    len: usize,
    /// A power of two less one.
    mask: u32,
    pages: Pages<V>,
    /// What was due when it came in.
    overdue: Bucket<V>,
    places: P,
}

impl<V, P: Places<V>> Ring<V, P> {
    /// `ticks_per_wheel` is brought into 1..=2^30 and rounded up to a power of two.
    pub(crate) fn new(ticks_per_wheel: usize, places: P) -> Self {
        let slots = ticks_per_wheel.clamp(1, MOST_SLOTS).next_power_of_two() as u32;
        Ring { now: 0, len: 0, mask: slots - 1, pages: Pages::new(slots.ilog2()), overdue: Bucket::new(), places }
    }

    pub(crate) fn ticks_per_wheel(&self) -> usize {
        self.mask as usize + 1
    }
}

impl<V, P: Places<V>> RawWheel<V> for Ring<V, P> {
    type Places = P;

    fn insert(&mut self, deadline: u64, value: V) {
        if deadline <= self.now {
            self.overdue.push(OVERDUE, deadline, value, &mut self.places);
        } else {
            self.pages.push(deadline as u32 & self.mask, deadline, value, &mut self.places);
        }
        self.len += 1;
    }

    fn remove(&mut self, spot: Spot, wanted: impl FnOnce(&V) -> bool) -> Option<V> {
        let value = match spot.bucket() {
            OVERDUE => self.overdue.remove(OVERDUE, spot.position(), wanted, &mut self.places),
            slot if slot <= self.mask => self.pages.remove(slot, spot.position(), wanted, &mut self.places),
            _ => None,
        }?;
        self.len -= 1;
        Some(value)
    }

    fn get(&self, spot: Spot) -> Option<(u64, &V)> {
        match spot.bucket() {
            OVERDUE => self.overdue.get(spot.position()),
            slot if slot <= self.mask => self.pages.bucket(slot)?.get(spot.position()),
            _ => None,
        }
    }

    fn take_overdue(&mut self, due: &mut Vec<Entry<V>>) {
        if !self.overdue.is_empty() {
            self.len -= self.overdue.len();
            self.overdue.take(due);
        }
    }

    fn take_due(&mut self, now: u64, due: &mut Vec<Entry<V>>) -> bool {
        // At once, so that each bucket is read once, however many of its rounds are due.
        self.now = self.now.max(now);
        let before = due.len();
        while due.len() == before {
            if self.pages.earliest().is_none_or(|earliest| earliest > self.now) {
                return false;
            }
            self.pages.take_earliest(self.now, due, &mut self.places);
        }
        self.len -= due.len() - before;
        true
    }

    fn next_expiry(&self) -> Option<u64> {
        let next = self.now.saturating_add(1);
        if !self.overdue.is_empty() {
            return Some(next);
        }
        self.pages.earliest().map(|earliest| earliest.max(next))
    }

    fn has_overdue(&self) -> bool {
        !self.overdue.is_empty() || self.pages.earliest().is_some_and(|earliest| earliest <= self.now)
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.len
    }

    fn drain(&mut self, out: &mut Vec<Entry<V>>) {
        out.reserve(self.len);
        self.take_overdue(out);
        while self.pages.earliest().is_some() {
            self.pages.take_any(out);
        }
        self.pages.clear();
        self.overdue = Bucket::new();
        self.len = 0;
    }

    fn cascaded(&self) -> u64 {
        0
    }

    fn places(&self) -> &P {
        &self.places
    }

    fn places_mut(&mut self) -> &mut P {
        &mut self.places
    }
}

#[cfg(test)]
mod tests;
