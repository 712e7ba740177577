//! The hierarchical wheel: scheme 7 of Varghese & Lauck (1987), as in Kafka.
//!
//! A tick is read as a number of [`LEVELS`] digits of [`BITS`] bits. A deadline belongs to the level of the highest
//! digit in which it differs from `now`, and there to the slot of its own digit. From this follows, at any time:
//!
//! - the slots up to and including the one `now` is in are empty, on every level: nothing ever wraps round;
//! - everything on a level is due before everything on the next one, and likewise slot by slot within a level: the
//!   first occupied bucket holds the earliest deadline, and its cached minimum is the next expiry;
//! - all 64 bits are covered: there is no overflow list and no longest delay.
//!
//! When `now` enters a slot of an upper level, what is in there is carried down (cascades). Since `next_expiry` names
//! a bucket's earliest deadline and not the slot's beginning, nobody has to wake merely to cascade: a jump does it for
//! the one slot in which it ends, and hands out what lies before that slot without sorting it first.
//!
//! Absent here: clocks, keys, locks, and any work per tick.

use super::bucket::{Bucket, Entry, OVERDUE, append};
use super::raw::RawWheel;
use super::spot::{Places, Spot};

/// Bits of a tick that one level resolves. The 64 slots of a level are marked in one word.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;

/// The hierarchical wheel below its keys.
pub(crate) struct Levels<V, P> {
    now: u64,
    len: usize,
    cascaded: u64,
    /// Bit n: level n is not empty.
    occupied: u32,
    /// Each is allocated when it is first needed.
    levels: [Option<Box<Level<V>>>; LEVELS],
    /// What was due when it came in: all deadlines are <= now.
    overdue: Bucket<V>,
    places: P,
}

struct Level<V> {
    /// Bit n: bucket n is not empty.
    occupied: u64,
    buckets: [Bucket<V>; SLOTS],
}

impl<V> Level<V> {
    /// Not inlined: it needs room on the stack that whoever links would have to make each time.
    #[cold]
    #[inline(never)]
    fn new() -> Box<Self> {
        Box::new(Level { occupied: 0, buckets: std::array::from_fn(|_| Bucket::new()) })
    }
}

/// The level and slot of a deadline that is beyond `now`.
#[inline]
fn place(now: u64, deadline: u64) -> (usize, usize) {
    let level = (u64::BITS - 1 - (deadline ^ now).leading_zeros()) / BITS;
    (level as usize, (deadline >> (level * BITS)) as usize % SLOTS)
}

/// First and last tick of a slot, seen from `now`.
#[inline]
fn span(now: u64, level: usize, slot: usize) -> (u64, u64) {
    let shift = level as u32 * BITS;
    let lap = u64::MAX.checked_shl(shift + BITS).unwrap_or(0);
    let start = now & lap | (slot as u64) << shift;
    (start, start | !(u64::MAX << shift))
}

impl<V, P: Places<V>> Levels<V, P> {
    pub(crate) fn new(places: P) -> Self {
        Levels {
            now: 0,
            len: 0,
            cascaded: 0,
            occupied: 0,
            levels: [const { None }; LEVELS],
            overdue: Bucket::new(),
            places,
        }
    }

    /// Puts a value where it belongs as seen from `now`. Does not count it.
    fn link(&mut self, deadline: u64, value: V) {
        if deadline <= self.now {
            self.overdue.push(OVERDUE, deadline, value, &mut self.places);
            return;
        }
        let (at, slot) = place(self.now, deadline);
        let level = self.levels[at].get_or_insert_with(Level::new);
        let id = (at * SLOTS + slot) as u32;
        level.buckets[slot].push(id, deadline, value, &mut self.places);
        level.occupied |= 1 << slot;
        self.occupied |= 1 << at;
    }

    /// The first occupied bucket, which holds the earliest deadline that is not overdue.
    fn first(&self) -> Option<(usize, usize, &Bucket<V>)> {
        let at = self.occupied.trailing_zeros() as usize;
        let level = self.levels.get(at)?.as_deref()?;
        let slot = level.occupied.trailing_zeros() as usize % SLOTS;
        Some((at, slot, &level.buckets[slot]))
    }

    fn bucket(&self, id: u32) -> Option<&Bucket<V>> {
        if id == OVERDUE {
            return Some(&self.overdue);
        }
        let level = self.levels.get(id as usize / SLOTS)?.as_deref()?;
        Some(&level.buckets[id as usize % SLOTS])
    }

    /// The bucket was emptied.
    fn unmark(&mut self, at: usize, slot: usize) {
        if let Some(level) = &mut self.levels[at] {
            level.occupied &= !(1 << slot);
            if level.occupied == 0 {
                self.occupied &= !(1 << at);
            }
        }
    }

    /// Moves a whole bucket to the end of `out`.
    fn take(&mut self, at: usize, slot: usize, out: &mut Vec<Entry<V>>) {
        if let Some(level) = &mut self.levels[at] {
            level.buckets[slot].take(out);
        }
        self.unmark(at, slot);
    }

    /// Carries down the values of the slot that `now` has entered; those that are due go to the end of `due`.
    fn cascade(&mut self, at: usize, slot: usize, due: &mut Vec<Entry<V>>) {
        self.unmark(at, slot);
        let Some(level) = &mut self.levels[at] else { return };
        let mut places = level.buckets[slot].take_places();
        for (deadline, value) in places.drain(..) {
            let Some(value) = value else { continue };
            if deadline <= self.now {
                self.len -= 1;
                append(due, deadline, value);
            } else {
                self.cascaded += 1;
                self.link(deadline, value);
            }
        }
        if let Some(level) = &mut self.levels[at] {
            level.buckets[slot].reuse(places);
        }
    }
}

impl<V, P: Places<V>> RawWheel<V> for Levels<V, P> {
    type Places = P;

    fn insert(&mut self, deadline: u64, value: V) {
        self.link(deadline, value);
        self.len += 1;
    }

    fn remove(&mut self, spot: Spot, wanted: impl FnOnce(&V) -> bool) -> Option<V> {
        let id = spot.bucket();
        if id == OVERDUE {
            let value = self.overdue.remove(id, spot.position(), wanted, &mut self.places)?;
            self.len -= 1;
            return Some(value);
        }
        let (at, slot) = (id as usize / SLOTS, id as usize % SLOTS);
        let bucket = &mut self.levels.get_mut(at)?.as_mut()?.buckets[slot];
        let value = bucket.remove(id, spot.position(), wanted, &mut self.places)?;
        if bucket.is_empty() {
            self.unmark(at, slot);
        }
        self.len -= 1;
        Some(value)
    }

    fn get(&self, spot: Spot) -> Option<(u64, &V)> {
        self.bucket(spot.bucket())?.get(spot.position())
    }

    fn take_overdue(&mut self, due: &mut Vec<Entry<V>>) {
        if !self.overdue.is_empty() {
            self.len -= self.overdue.len();
            self.overdue.take(due);
        }
    }

    fn take_due(&mut self, now: u64, due: &mut Vec<Entry<V>>) -> bool {
        let to = self.now.max(now);
        let before = due.len();
        while let Some((at, slot, bucket)) = self.first() {
            let (start, end) = span(self.now, at, slot);
            if start > to {
                break;
            }
            if end <= to {
                // All of it is due. The clock goes with it, so that whatever is put back is overdue.
                let len = bucket.len();
                self.now = end;
                self.len -= len;
                self.take(at, slot, due);
            } else {
                self.now = to;
                self.cascade(at, slot, due);
            }
            if due.len() > before {
                return true;
            }
        }
        self.now = to;
        false
    }

    fn next_expiry(&self) -> Option<u64> {
        if !self.overdue.is_empty() {
            return Some(self.now.saturating_add(1));
        }
        self.first().map(|(_, _, bucket)| bucket.earliest())
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
        self.take_overdue(out);
        while let Some((at, slot, _)) = self.first() {
            self.take(at, slot, out);
        }
        self.levels = [const { None }; LEVELS];
        self.overdue = Bucket::new();
        self.len = 0;
    }

    fn cascaded(&self) -> u64 {
        self.cascaded
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
