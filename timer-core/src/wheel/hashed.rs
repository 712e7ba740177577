//! The hashed wheel: scheme 6 of Varghese & Lauck (1987), as in Netty.
//!
//! One ring of buckets; a deadline belongs to the slot of its low bits, whatever its round. Entries of later rounds
//! stay where they are until their round comes, so nothing cascades and a value moves only when a neighbour leaves.
//!
//! A bucket is visited only when the earliest deadline in it is due, then it is walked once. What the original pays
//! for, a visit to every slot on every tick and a look at all who wait there, is absent: the pages of buckets know
//! which bucket is next, so a jump of any length costs what is due and no more. The cost that stays is that of a slot
//! shared by many rounds: each visit reads all of the bucket. With as many slots as values, that is a few.
//!
//! Absent here: clocks, keys, locks, and any work per tick.

use super::bucket::{Bucket, Entry, Leaving, OVERDUE};
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
    /// What was due when it came in, or was not taken by an `expired` that panicked.
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

    /// Hands out entries that are all due, the last one first.
    fn expire(&mut self, entries: Vec<Entry<V>>, expired: &mut impl FnMut(V)) -> Vec<Entry<V>> {
        Leaving { entries, overdue: &mut self.overdue, len: &mut self.len, places: &mut self.places }.hand_out(expired)
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

    fn remove(&mut self, spot: Spot) -> Option<V> {
        let value = match spot.bucket() {
            OVERDUE => self.overdue.remove(OVERDUE, spot.position(), &mut self.places),
            slot if slot <= self.mask => self.pages.remove(slot, spot.position(), &mut self.places),
            _ => None,
        }?;
        self.len -= 1;
        Some(value)
    }

    fn deadline(&self, spot: Spot) -> Option<u64> {
        match spot.bucket() {
            OVERDUE => self.overdue.deadline(spot.position()),
            slot if slot <= self.mask => self.pages.bucket(slot)?.deadline(spot.position()),
            _ => None,
        }
    }

    fn advance(&mut self, now: u64, mut expired: impl FnMut(V)) {
        self.now = self.now.max(now);
        let mut entries = self.overdue.take();
        entries.reverse();
        entries = self.expire(entries, &mut expired);
        while self.pages.earliest().is_some_and(|earliest| earliest <= self.now) {
            self.pages.take_earliest(self.now, &mut entries, &mut self.places);
            entries = self.expire(entries, &mut expired);
        }
        self.overdue.reuse(entries);
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

    fn drain(&mut self, mut taken: impl FnMut(V)) {
        // One by one through `remove`: nothing is out of order should `taken` panic.
        while self.len > 0 {
            let (id, len) = match self.overdue.len() {
                0 => (self.pages.any(), self.pages.bucket(self.pages.any()).map_or(0, Bucket::len)),
                len => (OVERDUE, len),
            };
            if let Some(value) = self.remove(Spot::new(id, (len as u32).wrapping_sub(1))) {
                self.places.gone(&value);
                taken(value);
            }
        }
        self.pages.clear();
        self.overdue = Bucket::new();
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
