//! Topics that are paused, or limited in their attempts or their rate.
//!
//! The memory knows no topics, so it cannot leave out those that may not begin. The store does. A
//! begin of a topic that is *blocked* puts the timeout on the *shelf* of its topic, a separate list
//! in the store. So a topic that hangs or is paused takes no room in memory and no place of a
//! handler, however many of its timeouts are due. Each of them costs one more write.
//!
//! A topic is blocked if its shelf is not empty, or if it has no room for all begins of the batch,
//! whose topics are not known yet. So no limit is exceeded, and timeouts that come later begin
//! later. The keeper takes timeouts from a shelf when their topic has room.

use super::super::attempt::TopicSettings;
use super::super::collect::{Collection, Origin};
use super::super::pace::Pace;
use super::aside::begins_in;
use super::hand_over::Lanes;
use super::late::Pauses;
use super::{Keeper, Settings};
use crate::TimeoutId;
use crate::error::Error;
use crate::lateness::DurableLateCause;
use crate::store::{Micros, Position, Store, StoreError};
use crate::transaction::Operation;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The pause before the next look at a shelf whose timeouts could not be added to a batch.
const PAUSE: Micros = 10_000;

/// A topic that may be blocked.
struct Gate {
    is_paused: bool,
    pauses: Pauses,
    /// Whether the shelf may have timeouts.
    has_shelf: bool,
    running: usize,
    max_running: usize,
    pace: Pace,
    /// Whether its settings limit it, so that the gate stays.
    is_limited: bool,
    /// The time of the next look at the shelf.
    next_look: Micros,
}

impl Gate {
    fn open(now: Micros) -> Self {
        Self {
            is_paused: false,
            pauses: Pauses::default(),
            has_shelf: false,
            running: 0,
            max_running: usize::MAX,
            pace: Pace::new(None, now),
            is_limited: false,
            next_look: Micros::MIN,
        }
    }

    fn set_paused(&mut self, is_paused: bool, now: Micros) {
        self.is_paused = is_paused;
        self.pauses.note(is_paused, now);
    }

    /// Returns the number of attempts that may begin now.
    fn room(&self, now: Micros) -> usize {
        let places = if self.is_paused { 0 } else { self.max_running };
        places.saturating_sub(self.running).min(self.pace.room(now))
    }
}

/// The topics that may be blocked, by their names.
pub(super) struct Gates {
    gates: BTreeMap<Arc<str>, Gate>,
    /// The topics that the store knows as blocked.
    blocked: Vec<Arc<str>>,
    /// Timeouts of shelves whose begins are being written. They count as overdue.
    from_shelf: HashMap<TimeoutId, Arc<str>>,
}

impl Gates {
    pub(super) fn new(settings: &Settings, now: Micros) -> Self {
        let gate = |(name, topic): (&Arc<str>, &TopicSettings)| {
            let is_limited = topic.max_running.is_some() || topic.rate.is_some() || topic.executor.is_some();
            let (max_running, pace) = (topic.max_running.unwrap_or(usize::MAX), Pace::every(topic.rate, now));
            is_limited.then(|| (name.clone(), Gate { is_limited, max_running, pace, ..Gate::open(now) }))
        };
        let gates = settings.topics.iter().filter_map(gate).collect();
        Self { gates, blocked: Vec::new(), from_shelf: HashMap::new() }
    }

    fn get(&mut self, topic: &str, now: Micros) -> &mut Gate {
        self.gates.entry(topic.into()).or_insert_with(|| Gate::open(now))
    }

    /// Notes that an attempt has begun. Returns `true` if it was on a shelf.
    pub(super) fn enter(&mut self, id: TimeoutId, topic: &str, now: Micros) -> bool {
        if let Some(gate) = self.gates.get_mut(topic) {
            gate.running += 1;
            gate.pace.allows(now);
        }
        self.from_shelf.remove(&id).is_some()
    }

    /// Returns `true` if a timeout that waited aside may begin. The store does not block it if it
    /// is on a shelf. `added` counts the begins of the batch by their topics.
    pub(super) fn admits(&self, id: TimeoutId, added: &mut HashMap<Arc<str>, usize>, now: Micros) -> bool {
        let Some(topic) = self.from_shelf.get(&id) else { return true };
        let added = added.entry(topic.clone()).or_default();
        *added += 1;
        self.gates.get(topic).is_none_or(|gate| gate.room(now) >= *added)
    }

    /// Notes that an attempt takes no place any more.
    pub(super) fn leave(&mut self, topic: &str) {
        if let Some(gate) = self.gates.get_mut(topic) {
            // It may have begun before its topic had a gate.
            gate.running = gate.running.saturating_sub(1);
        }
    }

    /// Returns the number of attempts of a topic that take places.
    pub(super) fn running(&self, topic: &str) -> usize {
        self.gates.get(topic).map_or(0, |gate| gate.running)
    }

    /// Returns the time from which a timeout of a shelf may begin.
    fn next(&self, lanes: &Lanes, now: Micros) -> Option<Micros> {
        let waits = |(name, gate): &(&Arc<str>, &Gate)| {
            gate.has_shelf && !gate.is_paused && gate.running < gate.max_running && !lanes.is_rejecting(name)
        };
        let next = |(_, gate): (_, &Gate)| gate.pace.next().unwrap_or(now).max(gate.next_look).max(now);
        self.gates.iter().filter(waits).map(next).min()
    }

    /// Returns the pauses of a topic, and the cause for which its timeouts wait on the shelf
    /// otherwise. An attempt has just begun, so a full topic has one free place less.
    pub(super) fn waits(&self, topic: &str) -> (Option<&Pauses>, DurableLateCause) {
        let Some(gate) = self.gates.get(topic) else { return (None, DurableLateCause::Places) };
        let has_rate = gate.pace.next().is_some() && gate.running < gate.max_running;
        let limit = if has_rate { DurableLateCause::Rate } else { DurableLateCause::Places };
        (Some(&gate.pauses), limit)
    }

    /// Returns the topics whose shelves may have timeouts.
    pub(super) fn shelves(&self) -> impl Iterator<Item = &Arc<str>> {
        self.gates.iter().filter(|(_, gate)| gate.has_shelf).map(|(name, _)| name)
    }

    /// Returns the topics that are paused.
    pub(super) fn paused(&self) -> impl Iterator<Item = &Arc<str>> {
        self.gates.iter().filter(|(_, gate)| gate.is_paused).map(|(name, _)| name)
    }

    /// Forgets a timeout of a shelf that did not begin.
    pub(super) fn forget(&mut self, id: TimeoutId) {
        self.from_shelf.remove(&id);
    }
}

impl<S: Store> Keeper<S> {
    /// Reads which topics are paused and which have shelves. Returns an error if a topic is limited
    /// and the store has no shelves.
    pub(super) fn open_gates(&mut self) -> Result<(), StoreError> {
        let limited: Vec<Arc<str>> = self.gates.gates.keys().cloned().collect();
        self.store.set_blocked(&limited)?;
        self.gates.blocked = limited;
        self.read_gates()
    }

    /// Reads which topics are paused and which have shelves.
    pub(super) fn load_gates(&mut self) {
        if let Err(error) = self.read_gates() {
            self.fail(&error);
        }
    }

    fn read_gates(&mut self) -> Result<(), StoreError> {
        let (paused, shelved) = (self.store.paused_topics()?, self.store.shelved_topics()?);
        let now = self.store.now();
        paused.iter().for_each(|topic| self.gates.get(topic, now).set_paused(true, now));
        let resumed = self.gates.gates.iter_mut().filter(|(name, _)| !paused.iter().any(|topic| **topic == ***name));
        resumed.for_each(|(_, gate)| gate.set_paused(false, now));
        self.publish_pauses();
        shelved.iter().for_each(|topic| self.gates.get(topic, now).has_shelf = true);
        Ok(())
    }

    /// Returns the time from which a timeout of a shelf may begin.
    pub(super) fn next_shelf(&self) -> Option<Micros> {
        self.gates.next(&self.lanes, self.store.now())
    }

    /// Pauses or resumes a topic.
    pub(super) fn set_paused(&mut self, topic: &str, is_paused: bool) -> Result<(), Error> {
        if self.must_rejoin {
            return Err(self.outage().into());
        }
        // A store without shelves refuses before anything is written.
        self.store.set_paused(topic, is_paused)?;
        let now = self.store.now();
        self.gates.get(topic, now).set_paused(is_paused, now);
        self.publish_pauses();
        Ok(())
    }

    /// Tells the store which topics are blocked for the begins of a batch.
    pub(super) fn block(&mut self, batch: &[Operation]) -> Result<(), StoreError> {
        let gates = &mut self.gates;
        if gates.gates.is_empty() {
            return Ok(());
        }
        let begins = batch.iter().filter(|operation| matches!(operation, Operation::Begin(_))).count();
        if begins == 0 {
            return Ok(());
        }
        let now = self.store.now();
        gates.gates.retain(|_, gate| gate.is_limited || gate.is_paused || gate.has_shelf);
        let is_blocked = |(name, gate): &(&Arc<str>, &Gate)| {
            gate.has_shelf || gate.room(now) < begins || self.lanes.is_rejecting(name)
        };
        let blocked: Vec<Arc<str>> = gates.gates.iter().filter(is_blocked).map(|(name, _)| name.clone()).collect();
        if blocked != gates.blocked {
            self.store.set_blocked(&blocked)?;
            gates.blocked = blocked;
        }
        Ok(())
    }

    /// Notes that a timeout is on the shelf of its topic.
    pub(super) fn shelve(&mut self, id: TimeoutId, topic: &str, now: Micros) {
        if self.overdue.due_of(id).is_some() {
            // It is no overdue timeout that has begun.
            self.pace.refund();
        }
        self.remove(id);
        self.gates.get(topic, now).has_shelf = true;
    }

    /// Adds timeouts of shelves whose topics have room to the batch. Like overdue ones, they use at
    /// most half of the places.
    pub(super) fn add_shelved(&mut self, collection: &mut Collection, now: Micros) -> Result<(), StoreError> {
        if self.gates.next(&self.lanes, now).is_none_or(|next| next > now) {
            return Ok(());
        }
        let begins = collection.batch.iter().filter(|operation| matches!(operation, Operation::Begin(_))).count();
        let mut free = self.free_places().saturating_sub(begins).min(self.places_for_overdue());
        let lanes = &self.lanes;
        let has_room = |(name, gate): &(&Arc<str>, &mut Gate)| {
            gate.has_shelf && gate.next_look <= now && gate.room(now) > 0 && !lanes.is_rejecting(name)
        };
        // The topic that was looked at least recently comes first.
        let mut ready: Vec<(&Arc<str>, &mut Gate)> = self.gates.gates.iter_mut().filter(has_room).collect();
        ready.sort_by_key(|(_, gate)| gate.next_look);
        let share = (free / ready.len().max(1)).max(1);
        for (topic, gate) in ready {
            let max = gate.room(now).min(share).min(free);
            if max == 0 {
                break;
            }
            // Begins that wait aside are still on the shelf.
            let aside = begins_in(&self.aside);
            let mut page: Vec<Position> = Vec::new();
            self.store.load_shelf(topic, max.saturating_add(aside.len()), &mut page)?;
            gate.has_shelf = !page.is_empty();
            let is_free = |position: &&Position| {
                let id = position.id;
                !self.running.contains_key(&id) && !aside.contains(&id) && !collection.has(id)
            };
            let ids: Vec<TimeoutId> = page.iter().filter(is_free).map(|position| position.id).take(max).collect();
            gate.next_look = if ids.is_empty() { now.saturating_add(PAUSE) } else { now };
            free -= ids.len();
            for id in ids {
                self.gates.from_shelf.insert(id, topic.clone());
                collection.push(Operation::Begin(id), Origin::Begin);
            }
        }
        Ok(())
    }
}
