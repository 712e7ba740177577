//! Moving timeouts of blocked topics to their shelves, and beginning them from there.

use super::Queue;
use super::begins::add_ready;
use super::gates::Gate;
use super::head::Tag;
use super::places::Places;
use crate::TimeoutId;
use crate::engine::executors::Executors;
use crate::engine::unwritten::Collection;
use crate::store::Micros;
use crate::transaction::Operation;
use std::collections::HashMap;
use std::sync::Arc;

/// The pause before the next look at a shelf whose timeouts run here or are in the batch already.
const PAUSE: Micros = 10_000;

/// The largest number of timeouts that a batch moves to shelves. Other calls wait for the batch.
const MAX_SHELVED: usize = 16;

/// The pause before the next batch that moves timeouts to shelves.
const SHELVING_PAUSE: Micros = 20_000;

impl Queue {
    /// Returns the topics that are blocked for the begins of a batch, unless the store knows them.
    pub(crate) fn newly_blocked(
        &self,
        batch: &[Operation],
        executors: &Executors,
        now: Micros,
    ) -> Option<Vec<Arc<str>>> {
        if self.gates.gates.is_empty() || !batch.iter().any(|operation| matches!(operation, Operation::Begin(_))) {
            return None;
        }
        let mut begins = vec![0; self.topics().len() + 1];
        let mut unknown = 0;
        for operation in batch {
            let Operation::Begin(id) = operation else { continue };
            match self.tag_of(*id) {
                Some(Tag::UNKNOWN) => unknown += 1,
                Some(tag) => begins[tag.section()] += 1,
                // The store does not block those of a shelf.
                None => unknown += usize::from(!self.gates.from_shelf.contains_key(id)),
            }
        }
        let is_blocked = |(name, gate): &(&Arc<str>, &Gate)| {
            let begins = begins[gate.tag.section()] + unknown;
            gate.has_shelf || gate.is_shelving || gate.room(now) < begins.max(1) || executors.is_rejecting(name)
        };
        let blocked = self.gates.gates.iter().filter(is_blocked);
        let blocked: Vec<Arc<str>> = blocked.map(|(name, _)| name.clone()).collect();
        Some(blocked).filter(|blocked| *blocked != self.gates.blocked)
    }

    /// Notes that the store knows the topics that are blocked.
    pub(crate) fn set_blocked(&mut self, topics: Vec<Arc<str>>) {
        self.gates.blocked = topics;
    }

    /// Returns the topics with gates, in order.
    pub(crate) fn gated(&self) -> Vec<Arc<str>> {
        self.gates.gates.keys().cloned().collect()
    }

    /// Notes that a timeout is on the shelf of its topic.
    pub(crate) fn shelve(&mut self, id: TimeoutId, topic: &str, now: Micros) {
        self.remove(id);
        self.gates.get(topic, now).note_shelf(now);
    }

    /// Adds timeouts to the batch that it moves to shelves, because those of a blocked topic fill
    /// their part of the memory.
    pub(crate) fn add_crowded(
        &mut self,
        collection: &mut Collection,
        places: &Places,
        is_taken: impl Fn(TimeoutId) -> bool,
        now: Micros,
    ) {
        self.gates.gates.values_mut().for_each(|gate| gate.is_shelving = false);
        if now < self.gates.next_shelving {
            return;
        }
        let mut left = MAX_SHELVED;
        for head in [&mut self.overdue, &mut self.current] {
            for section in places.blocked().filter(|section| head.is_crowded(*section)).collect::<Vec<_>>() {
                let Some(gate) = self.gates.of_section_mut(section) else { continue };
                gate.is_shelving = true;
                let mut places = places.of_shelf(section, left);
                left -= add_ready(head, &is_taken, collection, &mut places, left, false);
            }
        }
        if left < MAX_SHELVED {
            self.gates.next_shelving = now.saturating_add(SHELVING_PAUSE);
        }
    }

    /// Returns the topics whose shelves may have timeouts that may begin. The topic that was looked
    /// at least recently comes first.
    pub(crate) fn ready_shelves(&self, executors: &Executors, now: Micros) -> Vec<Arc<str>> {
        let has_room = |(name, gate): &(&Arc<str>, &Gate)| {
            gate.has_shelf && gate.next_look <= now && gate.room(now) > 0 && !executors.is_rejecting(name)
        };
        let mut ready: Vec<(&Arc<str>, &Gate)> = self.gates.gates.iter().filter(has_room).collect();
        ready.sort_by_key(|(_, gate)| gate.next_look);
        ready.into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the number of timeouts of a topic that may begin now.
    pub(crate) fn room(&mut self, topic: &str, now: Micros) -> usize {
        self.gates.get(topic, now).room(now)
    }

    /// Notes a look at the shelf of a topic, from which the timeouts `ids` begin. If there are
    /// none, the next look comes after `pause`, or after a short one.
    pub(crate) fn begin_from_shelf(
        &mut self,
        topic: &Arc<str>,
        is_empty: bool,
        ids: &[TimeoutId],
        pause: Option<Micros>,
        now: Micros,
    ) {
        let gate = self.gates.get(topic, now);
        gate.has_shelf = !is_empty;
        gate.next_look = if ids.is_empty() { now.saturating_add(pause.unwrap_or(PAUSE)) } else { now };
        self.gates.from_shelf.extend(ids.iter().map(|id| (*id, topic.clone())));
    }

    /// Returns `true` if a timeout that waited aside may begin. The store does not block it if it
    /// is on a shelf. `added` counts the begins of the batch by their topics.
    pub(crate) fn admits(&self, id: TimeoutId, added: &mut HashMap<Arc<str>, usize>, now: Micros) -> bool {
        let Some(topic) = self.gates.from_shelf.get(&id) else { return true };
        let added = added.entry(topic.clone()).or_default();
        *added += 1;
        self.gates.gates.get(topic).is_none_or(|gate| gate.room(now) >= *added)
    }

    /// Forgets a timeout of a shelf that did not begin.
    pub(crate) fn forget_shelf(&mut self, id: TimeoutId) {
        self.gates.from_shelf.remove(&id);
    }
}
