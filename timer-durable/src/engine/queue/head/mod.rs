//! The head of the list of timeouts, in memory.
//!
//! A head covers a range of due times. It has a *section* for each topic with a gate, that is, each
//! topic that may be blocked, and one for all others. Each section keeps one invariant:
//!
//! > **Every pending timeout of the section whose position is before its bound is in memory.**
//!
//! A bound advances when a page is loaded, which happens while a section is less than half full and
//! its bound is at most [`HORIZON`] (71.6 minutes) away. A page has timeouts of all sections. If a
//! section grows beyond its capacity, its latest entries are dropped and its bound retreats to the
//! first of them. So the timeouts of a blocked topic take a small part of the memory, and neither
//! fill it nor are in front of others.
//!
//! An entry is an id, a due time and the number of its section. Nothing else is kept in memory
//! until the timeout begins. The module uses no store, no threads and no clocks.

mod section;

pub(super) use section::Tag;

use crate::TimeoutId;
use crate::engine::id_map::IdMap;
use crate::store::{Micros, Position};
use section::{Entry, Section};
use std::ops::Range;
use timer_core::wheel::{HierarchicalWheel, TimingWheel};

/// The distance of the bound below which the next page is loaded, in microseconds. It gives a store
/// time to put its rows in order, and equals the width of a slot of the SQLite store.
const HORIZON: Micros = 1 << 32;

/// The part of the capacity for all topics with gates.
const GATED_PART: usize = 2;

/// The part of a section's capacity that due entries may fill while their topic is blocked.
const CROWDED_PART: usize = 4;

/// The head of a range of the list.
pub(super) struct Head {
    range: Range<Position>,
    capacity: usize,
    wheel: HierarchicalWheel<TimeoutId>,
    entries: IdMap<Entry>,
    /// The section of the open topics, and those of the topics with gates.
    sections: Vec<Section>,
    /// The section that may ask for the next page first.
    turn: usize,
}

impl Head {
    /// Creates an empty head with the sections of `gates` topics.
    pub(super) fn new(range: Range<Position>, capacity: usize, gates: usize) -> Self {
        let capacity = capacity.max(2);
        let share = (capacity / GATED_PART).checked_div(gates).unwrap_or(0).max(2);
        let open = capacity.saturating_sub(share * gates).max(2);
        let mut sections = vec![Section::new(range.start, open)];
        sections.extend((0..gates).map(|_| Section::new(range.start, share)));
        Self { range, capacity, wheel: HierarchicalWheel::new(), entries: IdMap::default(), sections, turn: 0 }
    }

    /// Empties the head, so that it is loaded again with the sections of `gates` topics.
    pub(super) fn clear(&mut self, gates: usize) {
        *self = Self::new(self.range.clone(), self.capacity, gates);
    }

    pub(super) fn covers(&self, position: Position) -> bool {
        self.range.contains(&position)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds or moves a timeout if it lies before the bound of its section. Removes it otherwise,
    /// because its old entry would be wrong.
    pub(super) fn put(&mut self, position: Position, tag: Tag, now: Micros) {
        let Position { due, id } = position;
        if self.entries.get(&id).is_some_and(|entry| entry.due == due) {
            return;
        }
        self.remove(id);
        let section = &mut self.sections[tag.section()];
        if !self.range.contains(&position) || position >= section.bound {
            return;
        }
        section.len += 1;
        let key = if due <= now {
            section.due += 1;
            section.ready.push_back(id);
            None
        } else {
            if self.wheel.is_empty() {
                // Times are far from zero, so an empty wheel begins now.
                self.wheel.advance(tick(now), |_| ());
            }
            Some(self.wheel.insert(tick(due), id))
        };
        self.entries.insert(id, Entry { due, key, tag });
    }

    pub(super) fn remove(&mut self, id: TimeoutId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        let number = entry.tag.section();
        let section = &mut self.sections[number];
        section.len -= 1;
        match entry.key {
            Some(key) => _ = self.wheel.remove(key),
            None => {
                section.due -= 1;
                section.forget_stale(number, &self.entries);
            }
        }
    }

    /// Moves the entries that are due at `now` to the ready lists.
    pub(super) fn expire(&mut self, now: Micros) {
        let entries = &mut self.entries;
        let mut expired = Vec::new();
        self.wheel.advance(tick(now), |id| {
            if let Some(entry) = entries.get_mut(&id) {
                entry.key = None;
                expired.push((Position { due: entry.due, id }, entry.tag.section()));
            }
        });
        // A wheel that passes several ticks at once gives them in no particular order.
        expired.sort_unstable_by_key(|(position, _)| *position);
        for (position, section) in expired {
            self.sections[section].due += 1;
            self.sections[section].ready.push_back(position.id);
        }
    }

    /// Removes the first ready entry of the sections that `may_begin` accepts from its ready list,
    /// and returns it with its section. The entry itself stays until the timeout has begun, so that
    /// a failed commit loses nothing.
    pub(super) fn pop_ready(&mut self, may_begin: impl Fn(usize) -> bool) -> Option<(TimeoutId, usize)> {
        let entries = &self.entries;
        let sections = self.sections.iter_mut().enumerate().filter(|(number, _)| may_begin(*number));
        let first = |(number, section): (usize, &mut Section)| Some((section.first_ready(number, entries)?, number));
        let (position, number) = sections.filter_map(first).min()?;
        self.sections[number].ready.pop_front();
        Some((position.id, number))
    }

    /// Puts back an entry that could not begin.
    pub(super) fn push_ready(&mut self, id: TimeoutId) {
        if let Some(entry) = self.entries.get(&id).filter(|entry| entry.key.is_none()) {
            self.sections[entry.tag.section()].ready.push_back(id);
        }
    }

    /// Returns the sections with ready entries.
    pub(super) fn ready_sections(&self) -> impl Iterator<Item = usize> {
        let sections = self.sections.iter().enumerate();
        sections.filter(|(_, section)| !section.ready.is_empty()).map(|(number, _)| number)
    }

    /// Returns `true` if ready entries take so much of a section that its topic must not be blocked
    /// for long.
    pub(super) fn is_crowded(&self, section: usize) -> bool {
        self.sections.get(section).is_some_and(|section| section.ready.len() > section.capacity / CROWDED_PART)
    }

    /// Returns `true` if timeouts of a section are due and have not begun.
    pub(super) fn is_behind(&self, section: usize, now: Micros) -> bool {
        let end = self.range.end.min(Position::at(now.saturating_add(1)));
        self.sections.get(section).is_some_and(|section| section.due > 0 || section.bound < end)
    }

    /// Returns the number of entries that are due.
    pub(super) fn due_len(&self) -> usize {
        self.sections.iter().map(|section| section.due).sum()
    }

    /// Lowers the first due time of each section to that of its entries that are due. Visits all
    /// entries.
    pub(super) fn lower_first_due(&self, first: &mut [Micros]) {
        for entry in self.entries.values().filter(|entry| entry.key.is_none()) {
            let first = &mut first[entry.tag.section()];
            *first = entry.due.min(*first);
        }
    }

    /// Returns the entries that are due.
    pub(super) fn due_ids(&self) -> impl Iterator<Item = TimeoutId> {
        self.entries.iter().filter(|(_, entry)| entry.key.is_none()).map(|(id, _)| *id)
    }

    pub(super) fn due_of(&self, id: TimeoutId) -> Option<Micros> {
        self.entries.get(&id).map(|entry| entry.due)
    }

    pub(super) fn tag_of(&self, id: TimeoutId) -> Option<Tag> {
        self.entries.get(&id).map(|entry| entry.tag)
    }

    /// Returns a time not later than the first due time that is not ready yet.
    pub(super) fn next_due(&self) -> Option<Micros> {
        self.wheel.next_deadline().map(|tick| Micros::try_from(tick).unwrap_or(Micros::MAX))
    }

    /// Returns the time from which a page can be loaded, or `None` if each section is at least half
    /// full or has everything.
    pub(super) fn next_page(&self) -> Option<Micros> {
        let wanting = self.sections.iter().filter(|section| section.wants(self.range.end));
        wanting.map(|section| section.bound.due.saturating_sub(HORIZON)).min()
    }

    /// Returns the range to load next and the number of positions to ask for, or `None` before
    /// [`next_page`](Self::next_page). The sections take turns, because one may have to read many
    /// timeouts of others.
    pub(super) fn wants(&mut self, page: usize, now: Micros) -> Option<(Range<Position>, usize)> {
        let numbers = (self.turn..self.sections.len()).chain(0..self.turn);
        let is_due = |section: &Section| section.bound.due.saturating_sub(HORIZON) <= now;
        let wants = |section: &Section| section.wants(self.range.end) && is_due(section);
        let number = { numbers }.find(|number| wants(&self.sections[*number]))?;
        self.turn = (number + 1) % self.sections.len();
        let room = self.capacity.saturating_sub(self.len()).max(1);
        Some((self.sections[number].bound..self.range.end, page.min(room)))
    }

    /// Adds a page that was loaded for [`wants`](Self::wants). It has everything from the beginning
    /// of that range to `bound`.
    pub(super) fn add_page(&mut self, start: Position, page: &[(Position, Tag)], bound: Position, now: Micros) {
        // The bounds first, because only positions before them are put into memory.
        for section in &mut self.sections {
            if (start..bound).contains(&section.bound) {
                section.bound = bound;
            }
        }
        for (position, tag) in page {
            self.put(*position, *tag, now);
        }
    }

    /// Drops the latest entries of each section that has more than its capacity. Returns how many.
    pub(super) fn retreat(&mut self) -> usize {
        let is_full = |section: &Section| section.len > section.capacity;
        let full: Vec<usize> = (0..self.sections.len()).filter(|number| is_full(&self.sections[*number])).collect();
        full.into_iter().map(|number| self.retreat_section(number)).sum()
    }

    fn retreat_section(&mut self, number: usize) -> usize {
        let section = &mut self.sections[number];
        let keep = section.capacity * 3 / 4;
        let entries = self.entries.iter().filter(|(_, entry)| entry.tag.section() == number);
        let mut positions: Vec<Position> = entries.map(|(id, entry)| Position { due: entry.due, id: *id }).collect();
        let (_, first, _) = positions.select_nth_unstable(keep);
        section.bound = section.bound.min(*first);
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

    fn at(due: Micros, id: u128) -> Position {
        Position { due, id: TimeoutId::from_u128(id) }
    }

    fn pop(head: &mut Head, may_begin: fn(usize) -> bool) -> Vec<u128> {
        std::iter::from_fn(|| head.pop_ready(may_begin)).map(|(id, _)| id.as_u128()).collect()
    }

    fn put(head: &mut Head, position: Position, now: Micros) {
        head.put(position, Tag::OPEN, now);
    }

    /// Adds the next page, whose timeouts have one tag.
    fn add(head: &mut Head, tag: Tag, page: &[Position], bound: Position, now: Micros) {
        let (range, _) = head.wants(1_000, now).unwrap();
        let page: Vec<(Position, Tag)> = page.iter().map(|position| (*position, tag)).collect();
        head.add_page(range.start, &page, bound, now);
    }

    fn ready(head: &mut Head, now: Micros) -> Vec<u128> {
        head.expire(now);
        pop(head, |_| true)
    }

    #[test]
    fn only_positions_before_the_bound_are_kept() {
        let mut head = Head::new(Position::START..Position::END, 100, 0);
        assert_eq!(head.wants(2, 0), Some((Position::START..Position::END, 2)));
        put(&mut head, at(1, 1), 0);
        assert_eq!(head.len(), 0, "nothing was loaded yet");
        add(&mut head, Tag::OPEN, &[at(1, 1), at(5, 2)], at(5, 3), 0);
        put(&mut head, at(4, 3), 0);
        put(&mut head, at(6, 4), 0);
        assert_eq!((head.len(), head.next_due()), (3, Some(1)));
        assert_eq!(head.wants(2, 0).unwrap().0.start, at(5, 3));
        add(&mut head, Tag::OPEN, &[at(6, 4)], Position::END, 0);
        assert_eq!(head.wants(2, 0), None, "it has everything");
        assert_eq!(ready(&mut head, 5), [1, 3, 2]);
    }

    #[test]
    fn a_full_head_drops_the_latest_entries() {
        let mut head = Head::new(Position::START..Position::END, 8, 0);
        add(&mut head, Tag::OPEN, &[], Position::END, 0);
        (0..12).for_each(|n| put(&mut head, at(100 - n, n as u128), 0));
        assert_eq!((head.retreat(), head.len()), (6, 6));
        let from = head.wants(10, 0).map(|(range, _)| range.start);
        assert_eq!(from, None, "it is more than half full");
        assert_eq!(ready(&mut head, 94), [11, 10, 9, 8, 7, 6]);
        put(&mut head, at(95, 5), 94);
        assert!(!head.entries.contains_key(&TimeoutId::from_u128(5)), "it lies behind the bound");
    }

    #[test]
    fn removed_entries_do_not_fill_the_ready_list() {
        let mut head = Head::new(Position::START..Position::END, 1_000, 0);
        add(&mut head, Tag::OPEN, &[], Position::END, 0);
        for n in 0..10_000 {
            put(&mut head, at(5, n), 5);
            head.remove(TimeoutId::from_u128(n));
        }
        assert!(head.sections[0].ready.len() <= 2 * section::MAX_STALE, "{} stale ids", head.sections[0].ready.len());
        assert_eq!(head.due_len(), 0);
        put(&mut head, at(5, 1), 5);
        assert_eq!(head.due_len(), 1);
        assert_eq!(ready(&mut head, 5), [1]);
    }

    #[test]
    fn a_moved_entry_is_ready_at_its_new_time_only() {
        let mut head = Head::new(Position::START..Position::END, 8, 0);
        add(&mut head, Tag::OPEN, &[], Position::END, 0);
        put(&mut head, at(5, 1), 0);
        head.expire(5);
        put(&mut head, at(9, 1), 5);
        assert_eq!(ready(&mut head, 8), []);
        assert_eq!(ready(&mut head, 9), [1]);
        head.push_ready(TimeoutId::from_u128(1));
        head.remove(TimeoutId::from_u128(1));
        assert_eq!(ready(&mut head, 9), [], "it has ended");
    }

    #[test]
    fn a_blocked_topic_does_not_fill_the_memory() {
        let mut head = Head::new(Position::START..Position::END, 32, 2);
        let gated = Tag::of_gate(1);
        let page: Vec<Position> = (0..50).map(|n| at(5, n)).collect();
        add(&mut head, gated, &page, at(5, 50), 0);
        assert_eq!((head.retreat(), head.len()), (44, 6), "eight fit");
        add(&mut head, Tag::OPEN, &[at(5, 60), at(5, 61)], Position::END, 0);
        head.put(at(5, 62), gated, 0);
        assert_eq!(head.len(), 8, "it lies behind the bound of its section");
        head.expire(5);
        assert_eq!(pop(&mut head, |section| section == 0), [60, 61], "they wait for no other");
        assert!(head.is_crowded(2) && !head.is_crowded(1));
        assert_eq!(pop(&mut head, |section| section == 2), [0, 1, 2, 3, 4, 5]);
        (0..6).for_each(|n| head.remove(TimeoutId::from_u128(n)));
        assert!(head.is_behind(2, 5) && !head.is_behind(1, 5));
        let (range, _) = head.wants(500, 0).unwrap();
        assert_eq!(range.start, at(5, 6));
        head.add_page(range.start, &[(at(5, 6), gated), (at(5, 60), Tag::OPEN)], Position::END, 0);
        assert_eq!((head.len(), head.wants(500, 0)), (3, None));
    }
}
