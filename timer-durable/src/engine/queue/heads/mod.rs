//! The heads of the lists of all topics, in memory.
//!
//! Each topic has a list of its own, in a range of due times. Its head keeps one invariant:
//!
//! > **Every pending timeout of the topic whose position is before its bound is in memory.**
//!
//! A bound advances when a page is loaded, which happens while the head has less than its part of
//! the memory and its bound is at most [`HORIZON`] (71.6 minutes) away. If all heads together have
//! more entries than the memory, the latest entries of the largest ones are dropped and their
//! bounds retreat. So a topic that may not begin neither fills the memory nor delays other
//! topics.
//!
//! An entry is an id, a due time and the number of its topic. Nothing else is kept in memory
//! until the timeout begins. The module uses no store, no threads and no clocks.

mod head;

use crate::TimeoutId;
use crate::engine::id_map::IdMap;
use crate::store::{Micros, Position};
use head::{Entry, Head};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Range;
use timer_core::wheel::{HierarchicalWheel, TimingWheel};

/// The distance of the bound below which the next page is loaded, in microseconds. It gives a store
/// time to put its rows in order, and equals the width of a slot of the SQLite store.
const HORIZON: Micros = 1 << 32;

/// How far ahead the head of a topic is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Its timeouts begin when they are due.
    Open,
    /// It is limited, so it takes no more than an equal part of the memory.
    Limited,
    /// None begins, so only the first one is needed, for the age of the topic.
    Paused,
}

/// A page to load.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) topic: usize,
    pub(crate) range: Range<Position>,
    /// The largest number of positions.
    pub(crate) max: usize,
}

/// The ready topics in the order of their first timeouts.
pub(super) type ReadyOrder = BinaryHeap<Reverse<(Position, usize)>>;

/// The heads of all topics in a range of due times. They share one memory.
pub(super) struct Heads {
    range: Range<Position>,
    capacity: usize,
    wheel: HierarchicalWheel<TimeoutId>,
    entries: IdMap<Entry>,
    /// By the numbers of their topics.
    heads: Vec<Head>,
    /// The topics with ready entries, or with stale ones.
    ready: BTreeSet<usize>,
    /// The topic that may ask for the next page first.
    turn: usize,
}

impl Heads {
    /// Creates the heads of `topics` topics that the store may have timeouts of.
    pub(super) fn new(range: Range<Position>, capacity: usize, topics: usize) -> Self {
        let heads = (0..topics).map(|_| Head::new(range.start)).collect();
        let capacity = capacity.max(2);
        let wheel = HierarchicalWheel::new();
        Self { range, capacity, wheel, entries: IdMap::default(), heads, ready: BTreeSet::new(), turn: 0 }
    }

    /// Empties the memory, so that it is loaded again.
    pub(super) fn clear(&mut self, topics: usize) {
        *self = Self::new(self.range.clone(), self.capacity, topics);
    }

    pub(super) fn covers(&self, position: Position) -> bool {
        self.range.contains(&position)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if a position is before the bound of a topic.
    pub(super) fn may_have(&self, position: Position) -> bool {
        self.range.contains(&position) && self.heads.iter().any(|head| position < head.bound)
    }

    /// Adds or moves a timeout if it lies before the bound of its topic. Removes it otherwise,
    /// because its old entry would be wrong. A topic that is new has no timeouts in the store.
    pub(super) fn put(&mut self, position: Position, topic: usize, now: Micros) {
        let Position { due, id } = position;
        if self.entries.get(&id).is_some_and(|entry| entry.due == due) {
            return;
        }
        self.remove(id);
        while self.heads.len() <= topic {
            self.heads.push(Head::new(self.range.end));
        }
        let head = &mut self.heads[topic];
        if !self.range.contains(&position) || position >= head.bound {
            return;
        }
        head.len += 1;
        let key = if due <= now {
            head.due += 1;
            head.ready.push_back(id);
            self.ready.insert(topic);
            None
        } else {
            if self.wheel.is_empty() {
                // Times are far from zero, so an empty wheel begins now.
                self.wheel.advance(tick(now), |_| ());
            }
            Some(self.wheel.insert(tick(due), id))
        };
        self.entries.insert(id, Entry::new(due, key, topic));
    }

    pub(super) fn remove(&mut self, id: TimeoutId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        let head = &mut self.heads[entry.topic()];
        head.len -= 1;
        match entry.key {
            Some(key) => _ = self.wheel.remove(key),
            None => {
                head.due -= 1;
                head.forget_stale(&self.entries);
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
                expired.push((Position { due: entry.due, id }, entry.topic()));
            }
        });
        // A wheel that passes several ticks at once gives them in no particular order.
        expired.sort_unstable_by_key(|(position, _)| *position);
        for (position, topic) in expired {
            self.heads[topic].due += 1;
            self.heads[topic].ready.push_back(position.id);
            self.ready.insert(topic);
        }
    }

    /// Returns the ready topics in the order of their first timeouts.
    pub(super) fn ready_order(&mut self) -> ReadyOrder {
        let heads = &mut self.heads;
        let entries = &self.entries;
        let mut order = ReadyOrder::new();
        self.ready.retain(|topic| {
            let first = heads[*topic].first_ready(entries);
            order.extend(first.map(|position| Reverse((position, *topic))));
            first.is_some()
        });
        order
    }

    /// Removes the first ready entry of the topics that `may_begin` accepts from its ready list,
    /// and returns it with its topic. The entry itself stays until the timeout has begun, so that
    /// a failed commit loses nothing. A topic that is not accepted leaves the order.
    pub(super) fn pop_ready(
        &mut self,
        order: &mut ReadyOrder,
        may_begin: impl Fn(usize) -> bool,
    ) -> Option<(TimeoutId, usize)> {
        while let Some(Reverse((position, topic))) = order.pop() {
            if may_begin(topic) {
                let head = &mut self.heads[topic];
                head.ready.pop_front();
                order.extend(head.first_ready(&self.entries).map(|next| Reverse((next, topic))));
                return Some((position.id, topic));
            }
        }
        None
    }

    /// Puts back an entry that could not begin.
    pub(super) fn push_ready(&mut self, id: TimeoutId) {
        if let Some(entry) = self.entries.get(&id).filter(|entry| entry.key.is_none()) {
            self.heads[entry.topic()].ready.push_back(id);
            self.ready.insert(entry.topic());
        }
    }

    /// Returns the topics with ready entries.
    pub(super) fn ready_topics(&self) -> impl Iterator<Item = usize> {
        self.ready.iter().copied().filter(|topic| !self.heads[*topic].ready.is_empty())
    }

    /// Returns `true` if timeouts of a topic are due and have not begun.
    pub(super) fn is_behind(&self, topic: usize, now: Micros) -> bool {
        let end = self.range.end.min(Position::at(now.saturating_add(1)));
        self.heads.get(topic).is_some_and(|head| head.due > 0 || head.bound < end)
    }

    /// Returns `true` if the store has no pending timeout of a topic.
    pub(super) fn has_none(&self, topic: usize) -> bool {
        self.heads.get(topic).is_none_or(|head| head.len == 0 && head.bound == self.range.end)
    }

    /// Frees the number of a topic without timeouts for another one.
    pub(super) fn forget(&mut self, topic: usize) {
        self.ready.remove(&topic);
        if let Some(head) = self.heads.get_mut(topic) {
            *head = Head::new(self.range.end);
        }
    }

    /// Returns the number of entries that are due.
    pub(super) fn due_len(&self) -> usize {
        self.heads.iter().map(|head| head.due).sum()
    }

    /// Lowers the first due time of each topic to that of its entries that are due. Visits all
    /// entries.
    pub(super) fn lower_first_due(&self, first: &mut [Micros]) {
        for entry in self.entries.values().filter(|entry| entry.key.is_none()) {
            let first = &mut first[entry.topic()];
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

    pub(super) fn topic_of(&self, id: TimeoutId) -> Option<usize> {
        self.entries.get(&id).map(Entry::topic)
    }

    /// Returns a time not later than the first due time that is not ready yet.
    pub(super) fn next_due(&self) -> Option<Micros> {
        self.wheel.next_deadline().map(|tick| Micros::try_from(tick).unwrap_or(Micros::MAX))
    }

    /// Returns the number of entries below which a head is loaded.
    fn least(&self, need: Need) -> usize {
        let share = (self.capacity / self.heads.len().max(1) / 2).max(1);
        match need {
            Need::Open if 2 * self.len() < self.capacity => share.max((self.capacity - self.len()) / 4),
            Need::Open | Need::Limited => share,
            Need::Paused => 1,
        }
    }

    fn wants_page(&self, topic: usize, need: Need) -> bool {
        let head = &self.heads[topic];
        head.bound < self.range.end && head.len < self.least(need)
    }

    /// Returns the time from which a page can be loaded, or `None` if each head has what it needs.
    pub(super) fn next_page(&self, need: impl Fn(usize) -> Need) -> Option<Micros> {
        let wanting = (0..self.heads.len()).filter(|topic| self.wants_page(*topic, need(*topic)));
        wanting.map(|topic| self.heads[topic].bound.due.saturating_sub(HORIZON)).min()
    }

    /// Returns the next page to load, or `None` before [`next_page`](Self::next_page). The topics
    /// take turns.
    pub(super) fn next_wanted(&mut self, page: usize, now: Micros, need: impl Fn(usize) -> Need) -> Option<Wanted> {
        let is_near = |topic: &usize| self.heads[*topic].bound.due.saturating_sub(HORIZON) <= now;
        let mut topics = (self.turn..self.heads.len()).chain(0..self.turn).filter(is_near);
        let topic = topics.find(|topic| self.wants_page(*topic, need(*topic)))?;
        self.turn = (topic + 1) % self.heads.len();
        let head = &self.heads[topic];
        let room = 2 * self.least(need(topic)) - head.len;
        Some(Wanted { topic, range: head.bound..self.range.end, max: page.min(room) })
    }

    /// Adds a page that was loaded for [`next_wanted`](Self::next_wanted). It has everything of the
    /// topic from the beginning of that range to `bound`.
    pub(super) fn add_page(&mut self, topic: usize, page: &[Position], bound: Position, now: Micros) {
        // The bound first, because only positions before it are put into memory.
        self.heads[topic].bound = bound;
        for position in page {
            self.put(*position, topic, now);
        }
    }

    /// Drops the latest entries of the largest heads if all together have more entries than the
    /// memory. Each topic keeps at least one. Returns how many were dropped.
    pub(super) fn retreat(&mut self) -> usize {
        let before = self.len();
        if before > self.capacity {
            let most = self.even_part(self.capacity * 3 / 4);
            let mut positions: Vec<Vec<Position>> = self.heads.iter().map(|_| Vec::new()).collect();
            for (id, entry) in &self.entries {
                if self.heads[entry.topic()].len > most {
                    positions[entry.topic()].push(Position { due: entry.due, id: *id });
                }
            }
            for (topic, positions) in positions.into_iter().enumerate().filter(|(_, positions)| !positions.is_empty()) {
                self.cut(topic, positions, most);
            }
        }
        before - self.len()
    }

    /// Returns the number of entries that each head may keep so that all together keep `total`.
    fn even_part(&self, total: usize) -> usize {
        let mut lens: Vec<usize> = self.heads.iter().map(|head| head.len).collect();
        lens.sort_unstable();
        let mut left = total;
        for (smaller, len) in lens.iter().enumerate() {
            let part = left / (lens.len() - smaller);
            if *len > part {
                return part.max(1);
            }
            left -= len;
        }
        usize::MAX
    }

    /// Drops all but the first `keep` entries of a topic, whose positions are more.
    fn cut(&mut self, topic: usize, mut positions: Vec<Position>, keep: usize) {
        let (_, first, _) = positions.select_nth_unstable(keep);
        let head = &mut self.heads[topic];
        head.bound = head.bound.min(*first);
        for position in positions.split_off(keep) {
            self.remove(position.id);
        }
    }
}

fn tick(due: Micros) -> u64 {
    u64::try_from(due).unwrap_or(0)
}

#[cfg(test)]
mod tests;
