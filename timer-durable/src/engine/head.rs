//! The head of the list of timeouts, in memory.
//!
//! A head covers a range of due times. It keeps one invariant:
//!
//! > **Every pending timeout of the range whose position is before the bound is in memory.**
//!
//! The bound advances when a page is loaded, which happens while the head is less than half full
//! and the bound is at most [`HORIZON`] (71.6 minutes) away. If the head grows beyond its capacity,
//! the latest entries are dropped and the bound retreats to the first of them.
//!
//! An entry is an id and a due time. Nothing else is kept in memory until the timeout begins.
//! The module uses no store, no threads and no clocks.

use crate::TimeoutId;
use crate::store::{Micros, Position};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use timer_core::wheel::{HierarchicalWheel, Key, TimingWheel};

/// The distance of the bound below which the next page is loaded, in microseconds. It gives a store
/// time to put its rows in order, and equals the width of a slot of the SQLite store.
const HORIZON: Micros = 1 << 32;

/// The number of stale ids in the ready list that are always allowed.
const MAX_STALE: usize = 64;

/// Hashes an id, whose bits are well mixed already except for the time, or a hash of a key.
#[derive(Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(5) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 ^= hash;
    }

    fn write_u128(&mut self, id: u128) {
        // Ids of one millisecond differ only in their lowest bits. Both halves of the product are
        // needed, since the map takes the place from the lowest bits of the hash and a check from
        // the highest ones.
        let mixed = ((id >> 64) as u64).rotate_left(32) ^ id as u64;
        let product = u128::from(mixed) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// A map by id.
pub(super) type IdMap<V> = HashMap<TimeoutId, V, BuildHasherDefault<IdHasher>>;

/// A set of ids.
pub(super) type IdSet = HashSet<TimeoutId, BuildHasherDefault<IdHasher>>;

struct Entry {
    due: Micros,
    /// The place in the wheel, or `None` once the entry has become due.
    key: Option<Key>,
}

/// The head of a range of the list.
pub(super) struct Head {
    range: Range<Position>,
    bound: Position,
    capacity: usize,
    wheel: HierarchicalWheel<TimeoutId>,
    entries: IdMap<Entry>,
    /// Due entries, in the order in which they became ready or were put back. Entries that were
    /// removed or moved since are skipped.
    ready: VecDeque<TimeoutId>,
    /// An upper bound of the ids in `ready` whose entries were removed.
    stale: usize,
    /// The number of entries that are due.
    due: usize,
}

impl Head {
    pub(super) fn new(range: Range<Position>, capacity: usize) -> Self {
        Self {
            bound: range.start,
            range,
            capacity: capacity.max(2),
            wheel: HierarchicalWheel::new(),
            entries: IdMap::default(),
            ready: VecDeque::new(),
            stale: 0,
            due: 0,
        }
    }

    pub(super) fn covers(&self, position: Position) -> bool {
        self.range.contains(&position)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds or moves a timeout if it lies before the bound. Removes it otherwise, because its old
    /// entry would be wrong.
    pub(super) fn put(&mut self, position: Position, now: Micros) {
        let Position { due, id } = position;
        if self.entries.get(&id).is_some_and(|entry| entry.due == due) {
            return;
        }
        self.remove(id);
        if !self.covers(position) || position >= self.bound {
            return;
        }
        if due <= now {
            self.due += 1;
            self.ready.push_back(id);
            self.entries.insert(id, Entry { due, key: None });
            return;
        }
        if self.wheel.is_empty() {
            // Times are far from zero, so an empty wheel begins now.
            self.wheel.advance(tick(now), |_| ());
        }
        let key = self.wheel.insert(tick(due), id);
        self.entries.insert(id, Entry { due, key: Some(key) });
    }

    pub(super) fn remove(&mut self, id: TimeoutId) {
        match self.entries.remove(&id) {
            Some(Entry { key: Some(key), .. }) => _ = self.wheel.remove(key),
            Some(Entry { key: None, .. }) => {
                self.due -= 1;
                self.forget_stale();
            }
            None => {}
        }
    }

    /// Drops ids of removed entries from the ready list once they may be more than half of it.
    /// While all handlers are busy, nothing else drops them.
    fn forget_stale(&mut self) {
        self.stale += 1;
        if self.stale > MAX_STALE.max(self.ready.len() / 2) {
            let entries = &self.entries;
            self.ready.retain(|id| entries.get(id).is_some_and(|entry| entry.key.is_none()));
            self.stale = 0;
        }
    }

    /// Moves the entries that are due at `now` to the ready list.
    pub(super) fn expire(&mut self, now: Micros) {
        let before = self.ready.len();
        let (entries, ready) = (&mut self.entries, &mut self.ready);
        self.wheel.advance(tick(now), |id| {
            if let Some(entry) = entries.get_mut(&id) {
                entry.key = None;
                ready.push_back(id);
            }
        });
        self.due += ready.len() - before;
        if ready.len() - before > 1 {
            // A wheel that passes several ticks at once gives them in no particular order.
            let position = |id: &TimeoutId| (entries.get(id).map(|entry| entry.due), *id);
            ready.make_contiguous()[before..].sort_unstable_by_key(position);
        }
    }

    /// Removes the next ready entry from the ready list. The entry itself stays until the timeout
    /// has begun, so that a failed commit loses nothing.
    pub(super) fn pop_ready(&mut self) -> Option<TimeoutId> {
        while let Some(id) = self.ready.pop_front() {
            if self.entries.get(&id).is_some_and(|entry| entry.key.is_none()) {
                return Some(id);
            }
        }
        None
    }

    /// Puts back an entry that could not begin.
    pub(super) fn push_ready(&mut self, id: TimeoutId) {
        if self.entries.get(&id).is_some_and(|entry| entry.key.is_none()) {
            self.ready.push_back(id);
        }
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the number of entries that are due.
    pub(super) fn due_len(&self) -> usize {
        self.due
    }

    /// Returns the first due time of the entries that are due. Visits all entries.
    pub(super) fn first_due(&self) -> Option<Micros> {
        self.entries.values().filter(|entry| entry.key.is_none()).map(|entry| entry.due).min()
    }

    /// Returns the entries that are due.
    pub(super) fn due_ids(&self) -> impl Iterator<Item = TimeoutId> {
        self.entries.iter().filter(|(_, entry)| entry.key.is_none()).map(|(id, _)| *id)
    }

    pub(super) fn due_of(&self, id: TimeoutId) -> Option<Micros> {
        self.entries.get(&id).map(|entry| entry.due)
    }

    /// Returns a time not later than the first due time that is not ready yet.
    pub(super) fn next_due(&self) -> Option<Micros> {
        self.wheel.next_deadline().map(|tick| Micros::try_from(tick).unwrap_or(Micros::MAX))
    }

    /// Returns the time from which a page can be loaded, or `None` if the head is at least half
    /// full or has everything.
    pub(super) fn next_page(&self) -> Option<Micros> {
        let wants = self.bound < self.range.end && self.len() < self.capacity / 2;
        wants.then(|| self.bound.due.saturating_sub(HORIZON))
    }

    /// Returns the range to load next and the number of positions to ask for, or `None` before
    /// [`next_page`](Self::next_page).
    pub(super) fn wants(&self, page: usize, now: Micros) -> Option<(Range<Position>, usize)> {
        self.next_page().filter(|time| *time <= now)?;
        Some((self.bound..self.range.end, page.min(self.capacity - self.len())))
    }

    /// Adds a page that was loaded for [`wants`](Self::wants). It has everything before `bound`.
    pub(super) fn add_page(&mut self, page: &[Position], bound: Position, now: Micros) {
        // The bound first, because only positions before it are put into memory.
        self.bound = bound;
        for position in page {
            self.put(*position, now);
        }
    }

    /// Drops the latest entries if there are more than the capacity. Returns how many.
    pub(super) fn retreat(&mut self) -> usize {
        if self.len() <= self.capacity {
            return 0;
        }
        let keep = self.capacity * 3 / 4;
        let positions = self.entries.iter().map(|(id, entry)| Position { due: entry.due, id: *id });
        let mut positions: Vec<Position> = positions.collect();
        let (_, first, _) = positions.select_nth_unstable(keep);
        self.bound = self.bound.min(*first);
        let dropped = positions.split_off(keep);
        for position in &dropped {
            self.remove(position.id);
        }
        dropped.len()
    }
}

fn tick(due: Micros) -> u64 {
    u64::try_from(due).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    fn at(due: Micros, id: u128) -> Position {
        Position { due, id: TimeoutId::from_u128(id) }
    }

    fn ready(head: &mut Head, now: Micros) -> Vec<u128> {
        head.expire(now);
        std::iter::from_fn(|| head.pop_ready()).map(TimeoutId::as_u128).collect()
    }

    #[test]
    fn ids_of_one_moment_have_different_hashes() {
        let hash = |_| BuildHasherDefault::<IdHasher>::default().hash_one(TimeoutId::new());
        let hashes: Vec<u64> = (0..1_024).map(hash).collect();
        for shift in [0, 57] {
            let mut places: Vec<u64> = hashes.iter().map(|hash| hash >> shift & 0x3ff).collect();
            places.sort_unstable();
            places.dedup();
            let most = if shift == 0 { 1_024 } else { 128 };
            assert!(places.len() > most / 2, "{} places of {most} from bit {shift}", places.len());
        }
    }

    #[test]
    fn only_positions_before_the_bound_are_kept() {
        let mut head = Head::new(Position::START..Position::END, 100);
        assert_eq!(head.wants(2, 0), Some((Position::START..Position::END, 2)));
        head.put(at(1, 1), 0);
        assert_eq!(head.len(), 0, "nothing was loaded yet");
        head.add_page(&[at(1, 1), at(5, 2)], at(5, 3), 0);
        head.put(at(4, 3), 0);
        head.put(at(6, 4), 0);
        assert_eq!((head.len(), head.next_due()), (3, Some(1)));
        assert_eq!(head.wants(2, 0).unwrap().0.start, at(5, 3));
        head.add_page(&[at(6, 4)], Position::END, 0);
        assert_eq!(head.wants(2, 0), None, "it has everything");
        assert_eq!(ready(&mut head, 5), [1, 3, 2]);
    }

    #[test]
    fn a_full_head_drops_the_latest_entries() {
        let mut head = Head::new(Position::START..Position::END, 8);
        head.add_page(&[], Position::END, 0);
        (0..12).for_each(|n| head.put(at(100 - n, n as u128), 0));
        assert_eq!((head.retreat(), head.len()), (6, 6));
        let from = head.wants(10, 0).map(|(range, _)| range.start);
        assert_eq!(from, None, "it is more than half full");
        assert_eq!(ready(&mut head, 94), [11, 10, 9, 8, 7, 6]);
        head.put(at(95, 5), 94);
        assert!(!head.entries.contains_key(&TimeoutId::from_u128(5)), "it lies behind the bound");
    }

    #[test]
    fn removed_entries_do_not_fill_the_ready_list() {
        let mut head = Head::new(Position::START..Position::END, 1_000);
        head.add_page(&[], Position::END, 0);
        for n in 0..10_000 {
            head.put(at(5, n), 5);
            head.remove(TimeoutId::from_u128(n));
        }
        assert!(head.ready.len() <= 2 * MAX_STALE, "{} stale ids", head.ready.len());
        assert_eq!(head.due_len(), 0);
        head.put(at(5, 1), 5);
        assert_eq!(head.due_len(), 1);
        assert_eq!(ready(&mut head, 5), [1]);
    }

    #[test]
    fn a_moved_entry_is_ready_at_its_new_time_only() {
        let mut head = Head::new(Position::START..Position::END, 8);
        head.add_page(&[], Position::END, 0);
        head.put(at(5, 1), 0);
        head.expire(5);
        head.put(at(9, 1), 5);
        assert_eq!(ready(&mut head, 8), []);
        assert_eq!(ready(&mut head, 9), [1]);
        head.push_ready(TimeoutId::from_u128(1));
        head.remove(TimeoutId::from_u128(1));
        assert_eq!(ready(&mut head, 9), [], "it has ended");
    }
}
