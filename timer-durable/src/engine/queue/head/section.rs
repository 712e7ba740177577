//! The sections of a head.

use crate::TimeoutId;
use crate::engine::id_map::IdMap;
use crate::store::{Micros, Position};
use std::collections::VecDeque;
use timer_core::wheel::Key;

/// The number of stale ids in the ready list that are always allowed.
pub(super) const MAX_STALE: usize = 64;

/// The section of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::queue) struct Tag(u16);

impl Tag {
    /// The topic has no gate.
    pub(in crate::engine::queue) const OPEN: Self = Self(0);
    /// Nobody has looked at the topic. The entry is in the section of the open topics.
    pub(in crate::engine::queue) const UNKNOWN: Self = Self(u16::MAX);

    /// Returns the tag of the topic with this number, or [`UNKNOWN`](Self::UNKNOWN) if there are
    /// too many.
    pub(in crate::engine::queue) fn of_gate(number: usize) -> Self {
        u16::try_from(number.saturating_add(1)).map_or(Self::UNKNOWN, Self)
    }

    /// Returns the number of the section.
    pub(in crate::engine::queue) fn section(self) -> usize {
        if self == Self::UNKNOWN { 0 } else { usize::from(self.0) }
    }
}

/// A timeout in memory.
pub(super) struct Entry {
    pub(super) due: Micros,
    /// The place in the wheel, or `None` once the entry has become due.
    pub(super) key: Option<Key>,
    pub(super) tag: Tag,
}

impl Entry {
    fn is_ready_in(&self, section: usize) -> bool {
        self.key.is_none() && self.tag.section() == section
    }
}

/// The entries of one topic that may be blocked, or of all others.
pub(super) struct Section {
    /// Every pending timeout of the section before it is in memory.
    pub(super) bound: Position,
    /// The number of entries beyond which the latest ones are dropped.
    pub(super) capacity: usize,
    pub(super) len: usize,
    /// The number of entries that are due.
    pub(super) due: usize,
    /// Due entries, in the order in which they became ready or were put back. Entries that were
    /// removed or moved since are skipped.
    pub(super) ready: VecDeque<TimeoutId>,
    /// An upper bound of the ids in `ready` whose entries were removed.
    stale: usize,
}

impl Section {
    pub(super) fn new(bound: Position, capacity: usize) -> Self {
        Self { bound, capacity, len: 0, due: 0, ready: VecDeque::new(), stale: 0 }
    }

    /// Returns `true` if the section is less than half full and has not everything before `end`.
    pub(super) fn wants(&self, end: Position) -> bool {
        self.bound < end && self.len < self.capacity / 2
    }

    /// Returns the first ready entry, and drops the stale ids before it.
    pub(super) fn first_ready(&mut self, number: usize, entries: &IdMap<Entry>) -> Option<Position> {
        while let Some(id) = self.ready.front() {
            if let Some(entry) = entries.get(id).filter(|entry| entry.is_ready_in(number)) {
                return Some(Position { due: entry.due, id: *id });
            }
            self.ready.pop_front();
        }
        None
    }

    /// Drops ids of removed entries from the ready list once they may be more than half of it.
    /// While all handlers are busy, nothing else drops them.
    pub(super) fn forget_stale(&mut self, number: usize, entries: &IdMap<Entry>) {
        self.stale += 1;
        if self.stale > MAX_STALE.max(self.ready.len() / 2) {
            self.ready.retain(|id| entries.get(id).is_some_and(|entry| entry.is_ready_in(number)));
            self.stale = 0;
        }
    }
}
