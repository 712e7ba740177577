//! The hashed wheel: scheme 6 of Varghese & Lauck (1987), as in Netty.
//!
//! The wheel is one ring of lists. A deadline belongs to the list of its low bits, whatever its
//! round. Values of later rounds stay in their list until their round comes, so nothing cascades.
//!
//! A list is read only when its bound is due. The original reads every list at every tick. Here a
//! tree of [minima] finds the next list, so a jump of any length costs only the lists in which
//! values are due. Each of them is read as a whole, also the values of later rounds. A list is a
//! bucket, like those of the hierarchical wheel, so it is read in sequence, a chunk at a time.
//!
//! A list has a second bound, which covers all values but the earliest one. A removal of that value
//! falls back to it, so a value that is inserted and soon removed leaves no trace. After other
//! removals from a long list, the bound may be too low. When nothing is due, the wheel reads the
//! first list again if its bound is stale. If the owner takes these steps too before it goes to
//! sleep, it wakes up for values that are gone at most once. A list is read once for each time of
//! the clock, so the steps end even if others make bounds stale as fast.
//!
//! This module knows no clocks, keys or locks, and does no work per tick.

use super::bucket::{Bucket, CHUNK, CHUNKS_PER_STEP, Dated, OVERDUE};
use super::location::{Location, Tracker};
use super::raw::{Base, BucketParts, BucketSpan, RawWheel};
use minima::Minima;

mod minima;

/// The largest number of ticks in a round.
const MAX_TICKS: usize = 1 << 30;

/// The largest number of lists. More would take more memory than they save time.
const MAX_LISTS: usize = 1 << 14;

/// Returns the number of lists for a round of `ticks`. Each tick has a list in rounds of up to
/// 1,024. A longer round has one for each 16 ticks, but at least 1,024 and at most [`MAX_LISTS`].
/// The lists are short, because a removal may cause the reading of a whole one.
fn lists_for(ticks: usize) -> usize {
    ticks.min(1024).max(ticks / 16).min(MAX_LISTS)
}

/// The hashed wheel without keys. It is aligned because a thread that uses one wheel must not delay
/// those that use the wheels next to it in memory.
#[repr(align(128))]
pub(crate) struct RawHashed<V, P> {
    ticks_per_wheel: usize,
    /// One list for each tick of a round, or for several. The number is a power of two.
    lists: Box<[Bucket<V>]>,
    minima: Minima,
    bounds: Box<[Bound]>,
    /// The list that is being read.
    reading: Option<Reading>,
    base: Base<V, P>,
}

/// The state of the bound of a list. The bound itself is the minimum of the list.
#[derive(Clone)]
struct Bound {
    /// A lower bound of all values but one.
    second: u64,
    /// The time of the clock at which the list was read last.
    read_at: u64,
    /// Whether the bound may be too low although it is after `now`.
    is_stale: bool,
}

/// The progress in a list that is read in several steps. Until its end, the minimum of the list
/// covers only the chunks that were read and values that were inserted since.
#[derive(Clone, Copy)]
struct Reading {
    list: usize,
    /// The next chunk to read.
    chunk: usize,
    /// The minimum of the list before the reading.
    bound: u64,
}

impl<V, P: Tracker<V>> RawHashed<V, P> {
    /// Creates a wheel of `ticks_per_wheel` ticks in a round. The number is clamped to 1..=2^30 and
    /// rounded up to a power of two.
    pub(crate) fn new(ticks_per_wheel: usize, tracker: P) -> Self {
        let ticks_per_wheel = ticks_per_wheel.clamp(1, MAX_TICKS).next_power_of_two();
        let count = lists_for(ticks_per_wheel);
        let lists = (0..count as u32).map(Bucket::new).collect();
        let bounds = vec![Bound { second: u64::MAX, read_at: 0, is_stale: false }; count].into();
        RawHashed {
            ticks_per_wheel,
            lists,
            minima: Minima::new(count),
            bounds,
            reading: None,
            base: Base::new(tracker),
        }
    }

    pub(crate) fn ticks_per_wheel(&self) -> usize {
        self.ticks_per_wheel
    }

    /// Begins to read the list with the earliest bound, if that is due or stale.
    fn begin_reading(&mut self) -> Option<Reading> {
        let bound = self.minima.earliest();
        if bound > self.base.now && !self.has_stale_bound() {
            return None;
        }
        let list = match bound {
            // An empty list has the same minimum as one whose values are all at the last tick.
            u64::MAX => self.lists.iter().position(|list| list.values > 0)?,
            _ => self.minima.first(),
        };
        self.lists[list].earliest = u64::MAX;
        self.bounds[list] = Bound { second: u64::MAX, read_at: self.base.now, is_stale: false };
        Some(Reading { list, chunk: 0, bound })
    }

    /// Reads a chunk of a list and returns the cost.
    fn read(&mut self, reading: Reading, due: &mut Bucket<V>) -> usize {
        let Reading { list, chunk, .. } = reading;
        let Base { tracker, discarded, now, len, .. } = &mut self.base;
        let bucket = &mut self.lists[list];
        let cost = 1 + bucket.slots_from(chunk * CHUNK).map_or(0, |slots| slots.len());
        let needs_upkeep = bucket.extract(
            chunk,
            |deadline| deadline <= *now,
            |_| (),
            |dated| {
                due.insert(dated, discarded, |_, _| ());
                *len -= 1;
            },
        );
        let next = bucket.next_chunk(chunk + 1);
        self.reading = (next < bucket.chunks()).then_some(Reading { chunk: next, ..reading });
        if needs_upkeep {
            // Values that this moves were read already.
            bucket.keep_up((chunk * CHUNK) as u32, u64::MAX, tracker, discarded);
        }
        let earliest = bucket.earliest;
        self.set_bound(list, earliest);
        cost
    }

    /// Replaces both bounds of a list.
    fn set_bound(&mut self, list: usize, earliest: u64) {
        self.bounds[list].second = earliest;
        self.minima.set(list, earliest);
    }
}

impl<V, P: Tracker<V>> RawWheel for RawHashed<V, P> {
    type Value = V;
    type Tracker = P;

    #[inline]
    fn insert(&mut self, deadline: u64, value: V) {
        self.base.len += 1;
        if deadline <= self.base.now {
            return self.base.insert_overdue((deadline, value));
        }
        let list = deadline as usize & (self.lists.len() - 1);
        let Base { tracker, discarded, .. } = &mut self.base;
        let second = &mut self.bounds[list].second;
        *second = (*second).min(self.lists[list].earliest.max(deadline));
        self.lists[list].push((deadline, value), tracker, discarded);
        self.minima.lower(list, deadline);
    }

    #[inline]
    fn bucket(&self, number: u32) -> Option<&Bucket<V>> {
        if number == OVERDUE { Some(&self.base.overdue) } else { self.lists.get(number as usize) }
    }

    fn spans(&self) -> impl Iterator<Item = BucketSpan> {
        let overdue = BucketSpan::new(OVERDUE, (0, self.base.now), &self.base.overdue);
        let lists = self.lists.iter().enumerate();
        // A list has values of any round.
        let lists = lists.filter_map(|(id, list)| BucketSpan::new(id as u32, (0, u64::MAX), list));
        overdue.into_iter().chain(lists)
    }

    #[inline(always)]
    fn bucket_mut(&mut self, number: u32) -> Option<BucketParts<'_, V, P>> {
        let Base { tracker, overdue, discarded, .. } = &mut self.base;
        let bucket = if number == OVERDUE { overdue } else { self.lists.get_mut(number as usize)? };
        Some((bucket, tracker, discarded))
    }

    #[inline]
    fn removed(&mut self, number: u32, deadline: u64) {
        let list = number as usize;
        if let Some(bucket) = self.lists.get_mut(list).filter(|list| list.earliest == deadline) {
            self.bounds[list].is_stale = true;
            // While the list is read, the value may be one that the bounds do not cover yet.
            if self.reading.is_none_or(|reading| reading.list != list) {
                bucket.earliest = self.bounds[list].second;
                self.minima.set(list, bucket.earliest);
            }
        }
    }

    fn has_stale_bound(&self) -> bool {
        let is_stale = |bound: &Bound| bound.is_stale && bound.read_at < self.base.now;
        self.reading.is_some() || (self.minima.earliest() != u64::MAX && is_stale(&self.bounds[self.minima.first()]))
    }

    #[cold]
    fn keep_up(&mut self, location: Location, removed: u64) {
        let list = location.number() as usize;
        let reading = self.reading.filter(|reading| reading.list == list);
        let is_unread = reading.is_some_and(|reading| location.position as usize / CHUNK >= reading.chunk);
        let is_stale = self.bounds.get(list).is_some_and(|bound| bound.is_stale);
        let Some((bucket, tracker, discarded)) = self.bucket_mut(location.number()) else { return };
        let removed = if is_stale { bucket.earliest } else { removed };
        let is_empty = bucket.values == 0;
        // Values of a chunk that will be read must not move to one that was read.
        if is_empty || !is_unread {
            bucket.keep_up(location.position, removed, tracker, discarded);
        }
        let earliest = bucket.earliest;
        if reading.is_some() && is_empty {
            self.reading = None;
        }
        if location.number() != OVERDUE {
            self.set_bound(list, earliest);
        }
    }

    fn take_next(&mut self, now: u64, due: &mut Bucket<V>) -> bool {
        // The clock moves at once, so that each list is read once, however many of its rounds are
        // due.
        self.base.now = self.base.now.max(now);
        let mut cost = 0;
        while cost < CHUNK * CHUNKS_PER_STEP {
            let Some(reading) = self.reading.or_else(|| self.begin_reading()) else { break };
            cost += self.read(reading, due);
        }
        cost > 0
    }

    fn earliest(&self) -> Option<u64> {
        let earliest = self.minima.earliest().min(self.reading.map_or(u64::MAX, |reading| reading.bound));
        (self.base.len > self.base.overdue.values as usize).then_some(earliest)
    }

    fn drain(&mut self) -> impl Iterator<Item = Dated<V>> {
        self.reading = None;
        self.base.len = 0;
        self.minima = Minima::new(self.lists.len());
        self.bounds.iter_mut().for_each(|bound| bound.second = u64::MAX);
        let overdue = self.base.overdue.take_all();
        let lists = self.lists.iter_mut().map(Bucket::take_all).collect::<Vec<_>>();
        overdue.chain(lists.into_iter().flatten())
    }

    fn base(&self) -> &Base<V, P> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<V, P> {
        &mut self.base
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
