//! Moving timeouts of blocked topics to their shelves, and beginning them from there.

use super::super::head::Tag;
use super::super::unwritten::{Collection, Origin};
use super::Keeper;
use super::begin::add_ready;
use super::gates::Gate;
use super::places::Places;
use crate::TimeoutId;
use crate::store::{Micros, Position, Store, StoreError};
use crate::time::micros;
use crate::transaction::Operation;
use std::sync::Arc;

/// The pause before the next look at a shelf whose timeouts run here or are in the batch already.
const PAUSE: Micros = 10_000;

/// The most timeouts that a batch moves to shelves, and the pause before the next such batch,
/// because others wait for the batch.
const MAX_SHELVED: usize = 16;
const SHELVING_PAUSE: Micros = 20_000;

impl<S: Store> Keeper<S> {
    /// Tells the store which topics are blocked for the begins of a batch.
    pub(super) fn block(&mut self, batch: &[Operation]) -> Result<(), StoreError> {
        if self.gates.gates.is_empty() || !batch.iter().any(|operation| matches!(operation, Operation::Begin(_))) {
            return Ok(());
        }
        let (mut begins, mut unknown) = (vec![0; self.gates.topics().len() + 1], 0);
        for operation in batch {
            let Operation::Begin(id) = operation else { continue };
            match self.tag_of(*id) {
                Some(Tag::UNKNOWN) => unknown += 1,
                Some(tag) => begins[tag.section()] += 1,
                // The store does not block those of a shelf.
                None => unknown += usize::from(!self.gates.from_shelf.contains_key(id)),
            }
        }
        let now = self.store.now();
        let is_blocked = |(name, gate): &(&Arc<str>, &Gate)| {
            let begins = begins[gate.tag.section()] + unknown;
            gate.has_shelf || gate.is_shelving || gate.room(now) < begins.max(1) || self.lanes.is_rejecting(name)
        };
        let blocked = self.gates.gates.iter().filter(is_blocked);
        let blocked: Vec<Arc<str>> = blocked.map(|(name, _)| name.clone()).collect();
        if blocked != self.gates.blocked {
            self.store.set_blocked(&blocked)?;
            self.gates.blocked = blocked;
        }
        Ok(())
    }

    /// Notes that a timeout is on the shelf of its topic.
    pub(super) fn shelve(&mut self, id: TimeoutId, topic: &str, now: Micros) {
        self.remove(id);
        self.gates.get(topic, now).note_shelf(now);
    }

    /// Adds timeouts to the batch that it moves to shelves, because those of a blocked topic fill
    /// their part of the memory.
    pub(super) fn add_crowded(&mut self, collection: &mut Collection, places: &Places, now: Micros) {
        self.gates.gates.values_mut().for_each(|gate| gate.is_shelving = false);
        if now < self.gates.next_shelving {
            return;
        }
        let aside = self.unwritten.begins();
        let is_taken = |id: &TimeoutId| self.running.contains_key(id) || aside.contains(id);
        let mut left = MAX_SHELVED;
        for head in [&mut self.overdue, &mut self.current] {
            for section in places.blocked().filter(|section| head.is_crowded(*section)).collect::<Vec<_>>() {
                let Some(gate) = self.gates.of_section_mut(section) else { continue };
                gate.is_shelving = true;
                let mut places = places.of_shelf(section, left);
                left -= add_ready(head, is_taken, collection, &mut places, left, false);
            }
        }
        if left < MAX_SHELVED {
            self.gates.next_shelving = now.saturating_add(SHELVING_PAUSE);
        }
    }

    /// Adds timeouts of shelves whose topics have room to the batch. Like overdue ones, they use at
    /// most half of the places.
    pub(super) fn add_shelved(
        &mut self,
        collection: &mut Collection,
        places: &Places,
        now: Micros,
    ) -> Result<(), StoreError> {
        if self.gates.next_shelf(&self.lanes, now).is_none_or(|next| next > now) {
            return Ok(());
        }
        let mut free = places.for_overdue();
        let present = self.present();
        let next_aside = self.unwritten.next().map(|next| next.saturating_duration_since(present));
        let lanes = &self.lanes;
        let has_room = |(name, gate): &(&Arc<str>, &mut Gate)| {
            gate.has_shelf && gate.next_look <= now && gate.room(now) > 0 && !lanes.is_rejecting(name)
        };
        // The topic that was looked at least recently comes first.
        let mut ready: Vec<(&Arc<str>, &mut Gate)> = self.gates.gates.iter_mut().filter(has_room).collect();
        ready.sort_by_key(|(_, gate)| gate.next_look);
        let share = (free / ready.len().max(1)).max(1);
        // Begins that wait aside are still on the shelf.
        let aside = self.unwritten.begins();
        for (topic, gate) in ready {
            let max = gate.room(now).min(share).min(free);
            if max == 0 {
                break;
            }
            let mut page: Vec<Position> = Vec::new();
            self.store.load_shelf(topic, max.saturating_add(aside.len()), &mut page)?;
            gate.has_shelf = !page.is_empty();
            let is_free = |position: &&Position| {
                let id = position.id;
                !self.running.contains_key(&id) && !aside.contains(&id) && !collection.has(id)
            };
            let ids: Vec<TimeoutId> = page.iter().filter(is_free).map(|position| position.id).take(max).collect();
            let waits_aside = page.iter().all(|position| aside.contains(&position.id));
            gate.next_look = match next_aside.filter(|_| waits_aside) {
                _ if !ids.is_empty() => now,
                None => now.saturating_add(PAUSE),
                Some(next) => now.saturating_add(micros(next)),
            };
            free -= ids.len();
            for id in ids {
                self.gates.from_shelf.insert(id, topic.clone());
                collection.push(Operation::Begin(id), Origin::Begin);
            }
        }
        Ok(())
    }
}
