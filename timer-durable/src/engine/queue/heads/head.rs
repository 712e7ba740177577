//! The head of the list of one topic.

use crate::TimeoutId;
use crate::engine::id_map::IdMap;
use crate::store::{Micros, Position};
use std::collections::VecDeque;
use timer_core::wheel::Key;

/// The number of stale ids in the ready list that are always allowed.
pub(super) const MAX_STALE: usize = 64;

/// A timeout in memory.
pub(super) struct Entry {
    pub(super) due: Micros,
    /// The place in the wheel, or `None` once the entry has become due.
    pub(super) key: Option<Key>,
    /// The number of the topic. There are no more topics than entries.
    topic: u32,
}

impl Entry {
    pub(super) fn new(due: Micros, key: Option<Key>, topic: usize) -> Self {
        Self { due, key, topic: topic as u32 }
    }

    pub(super) fn topic(&self) -> usize {
        self.topic as usize
    }
}

/// The head of one topic.
pub(super) struct Head {
    /// Every pending timeout of the topic before it is in memory.
    pub(super) bound: Position,
    pub(super) len: usize,
    /// The number of entries that are due.
    pub(super) due: usize,
    /// Due entries, in the order in which they became ready or were put back. Entries that were
    /// removed or moved since are skipped.
    pub(super) ready: VecDeque<TimeoutId>,
    /// An upper bound of the ids in `ready` whose entries were removed.
    stale: usize,
}

impl Head {
    pub(super) fn new(bound: Position) -> Self {
        Self { bound, len: 0, due: 0, ready: VecDeque::new(), stale: 0 }
    }

    /// Returns the first ready entry, and drops the stale ids before it.
    pub(super) fn first_ready(&mut self, entries: &IdMap<Entry>) -> Option<Position> {
        while let Some(id) = self.ready.front() {
            if let Some(entry) = entries.get(id).filter(|entry| entry.key.is_none()) {
                return Some(Position { due: entry.due, id: *id });
            }
            self.ready.pop_front();
        }
        None
    }

    /// Drops ids of removed entries from the ready list once they may be more than half of it.
    /// While all handlers are busy, nothing else drops them.
    pub(super) fn forget_stale(&mut self, entries: &IdMap<Entry>) {
        self.stale += 1;
        if self.stale > MAX_STALE.max(self.ready.len() / 2) {
            self.ready.retain(|id| entries.get(id).is_some_and(|entry| entry.key.is_none()));
            self.stale = 0;
        }
    }
}
