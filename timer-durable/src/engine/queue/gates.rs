//! Topics that are paused, or limited in their attempts or their rate.
//!
//! Such a topic has a *gate*, and a section in each head of the memory. The keeper begins its
//! timeouts from there when there is room. While the topic is *blocked*, they wait in memory, where
//! they take a small part and delay no others. Further ones stay in the store.
//!
//! If many timeouts of a blocked topic are due, the keeper moves them to the *shelf* of the topic,
//! a separate list in the store. Pages of the memory then need not read them again, for example
//! after a restart. Each of them costs one more write, so a batch moves few of them. A topic whose
//! shelf is not empty begins timeouts from the shelf only, so that they keep their order.
//!
//! A gate that is neither limited nor paused stays until the topic has caught up. Meanwhile its
//! timeouts use at most half of the places, as overdue ones do.

use super::head::Tag;
use super::pace::Pace;
use super::places::Room;
use crate::TimeoutId;
use crate::engine::attempt::TopicSettings;
use crate::engine::executors::Executors;
use crate::engine::settings::Settings;
use crate::lateness::DurableLateCause;
use crate::store::Micros;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The last pauses of a topic, each from its first time to its end.
#[derive(Default)]
struct Pauses(Vec<(Micros, Micros)>);

/// The largest number of pauses of a topic that are kept.
const MAX_PAUSES: usize = 16;

impl Pauses {
    fn note(&mut self, is_paused: bool, now: Micros) {
        let Self(pauses) = self;
        match pauses.last_mut().filter(|(_, end)| *end == Micros::MAX) {
            Some(last) if !is_paused => last.1 = now,
            None if is_paused => {
                pauses.push((now, Micros::MAX));
                pauses.drain(..pauses.len().saturating_sub(MAX_PAUSES));
            }
            _ => {}
        }
    }

    /// Returns the end of the last pause.
    fn end(&self) -> Micros {
        self.0.last().map_or(Micros::MIN, |(_, end)| *end)
    }
}

/// A topic that may be blocked.
pub(super) struct Gate {
    pub(super) tag: Tag,
    pub(super) is_paused: bool,
    pauses: Pauses,
    /// Whether the shelf may have timeouts.
    pub(super) has_shelf: bool,
    /// Whether the batch moves timeouts to the shelf.
    pub(super) is_shelving: bool,
    pub(super) running: usize,
    max_running: usize,
    pace: Pace,
    /// Whether its settings limit it, so that the gate stays.
    is_limited: bool,
    /// The time of the next look at the shelf.
    pub(super) next_look: Micros,
}

impl Gate {
    fn open(now: Micros) -> Self {
        Self {
            tag: Tag::UNKNOWN,
            is_paused: false,
            pauses: Pauses::default(),
            has_shelf: false,
            is_shelving: false,
            running: 0,
            max_running: usize::MAX,
            pace: Pace::new(None, now),
            is_limited: false,
            next_look: Micros::MIN,
        }
    }

    pub(super) fn set_paused(&mut self, is_paused: bool, now: Micros) {
        self.is_paused = is_paused;
        self.pauses.note(is_paused, now);
    }

    /// Notes that the shelf may have other timeouts than at the last look.
    pub(super) fn note_shelf(&mut self, now: Micros) {
        self.has_shelf = true;
        self.next_look = self.next_look.min(now);
    }

    /// Returns the number of attempts that may begin now.
    pub(super) fn room(&self, now: Micros) -> usize {
        let places = if self.is_paused { 0 } else { self.max_running };
        places.saturating_sub(self.running).min(self.pace.room(now))
    }

    /// Returns the time from which an attempt may begin, or `None` if it has to wait for an event.
    fn next(&self, now: Micros) -> Option<Micros> {
        let is_open = !self.is_paused && self.running < self.max_running;
        is_open.then(|| self.pace.next().unwrap_or(now).max(now))
    }
}

/// The steps that an attempt has taken before it began.
pub(super) struct Admission {
    pub(super) is_from_shelf: bool,
    pub(super) has_gate: bool,
    /// Whether it counts as overdue, because it was on a shelf or its topic is catching up.
    pub(super) is_overdue: bool,
}

/// The topics that may be blocked, by their names.
pub(super) struct Gates {
    pub(super) gates: BTreeMap<Arc<str>, Gate>,
    /// The topics in the order of their sections in memory.
    pub(super) topics: Vec<Arc<str>>,
    /// The time from which a batch may move timeouts to shelves.
    pub(super) next_shelving: Micros,
    /// The topics that the store knows as blocked.
    pub(super) blocked: Vec<Arc<str>>,
    /// Timeouts of shelves whose begins are being written. They count as overdue.
    pub(super) from_shelf: HashMap<TimeoutId, Arc<str>>,
}

impl Gates {
    pub(super) fn new(settings: &Settings, now: Micros) -> Self {
        let gate = |(name, topic): (&Arc<str>, &TopicSettings)| {
            let is_limited = topic.max_running.is_some() || topic.rate.is_some() || topic.executor.is_some();
            let max_running = topic.max_running.unwrap_or(usize::MAX);
            let pace = Pace::every(topic.rate, now);
            is_limited.then(|| (name.clone(), Gate { is_limited, max_running, pace, ..Gate::open(now) }))
        };
        Self {
            gates: settings.topics.iter().filter_map(gate).collect(),
            topics: Vec::new(),
            next_shelving: Micros::MIN,
            blocked: Vec::new(),
            from_shelf: HashMap::new(),
        }
    }

    pub(super) fn get(&mut self, topic: &str, now: Micros) -> &mut Gate {
        self.gates.entry(topic.into()).or_insert_with(|| Gate::open(now))
    }

    pub(super) fn tag(&self, topic: &str) -> Tag {
        self.gates.get(topic).map_or(Tag::OPEN, |gate| gate.tag)
    }

    /// Returns the tag of a timeout whose topic is not known.
    pub(super) fn tag_of_unknown(&self) -> Tag {
        if self.gates.is_empty() { Tag::OPEN } else { Tag::UNKNOWN }
    }

    /// Returns the gate of a section, with its topic.
    fn of_section(&self, section: usize) -> Option<(&Arc<str>, &Gate)> {
        let topic = self.topics.get(section.checked_sub(1)?)?;
        Some((topic, self.gates.get(topic)?))
    }

    pub(super) fn of_section_mut(&mut self, section: usize) -> Option<&mut Gate> {
        self.gates.get_mut(self.topics.get(section.checked_sub(1)?)?)
    }

    /// Returns the number of timeouts of a section that may begin now.
    pub(super) fn room(&self, section: usize, executors: &Executors, now: Micros) -> Room {
        let Some((topic, gate)) = self.of_section(section) else { return Room::new(usize::MAX, false) };
        let left = if gate.has_shelf || executors.is_rejecting(topic) { 0 } else { gate.room(now) };
        Room::new(left, !gate.is_limited)
    }

    /// Returns the rooms of all sections.
    pub(super) fn rooms(&self, executors: &Executors, now: Micros) -> Vec<Room> {
        (0..=self.topics.len()).map(|section| self.room(section, executors, now)).collect()
    }

    /// Returns the time from which a timeout of a section may begin, or `None` if it has to wait
    /// for an event.
    pub(super) fn next_begin(&self, section: usize, executors: &Executors, now: Micros) -> Option<Micros> {
        let Some((topic, gate)) = self.of_section(section) else { return Some(now) };
        let waits_for_event = gate.has_shelf || executors.is_rejecting(topic);
        gate.next(now).filter(|_| !waits_for_event)
    }

    /// Notes that an attempt has begun.
    pub(super) fn enter(&mut self, id: TimeoutId, topic: &str, now: Micros) -> Admission {
        let is_from_shelf = self.from_shelf.remove(&id).is_some();
        let Some(gate) = self.gates.get_mut(topic) else {
            return Admission { is_from_shelf, has_gate: false, is_overdue: is_from_shelf };
        };
        gate.running += 1;
        gate.pace.allows(now);
        Admission { is_from_shelf, has_gate: true, is_overdue: is_from_shelf || !gate.is_limited }
    }

    /// Returns the time from which a timeout of a shelf may begin.
    pub(super) fn next_shelf(&self, executors: &Executors, now: Micros) -> Option<Micros> {
        let waits = |(name, gate): &(&Arc<str>, &Gate)| gate.has_shelf && !executors.is_rejecting(name);
        let next = |(_, gate): (_, &Gate)| Some(gate.next(now)?.max(gate.next_look));
        self.gates.iter().filter(waits).filter_map(next).min()
    }

    /// Returns the pauses of a topic, and the cause for which its timeouts wait on the shelf
    /// otherwise. An attempt has just begun, so a full topic has one free place less.
    pub(super) fn waits(&self, topic: &str) -> (&[(Micros, Micros)], DurableLateCause) {
        let Some(gate) = self.gates.get(topic) else { return (&[], DurableLateCause::Places) };
        let has_rate = gate.pace.next().is_some() && gate.running < gate.max_running;
        let limit = if has_rate { DurableLateCause::Rate } else { DurableLateCause::Places };
        (&gate.pauses.0, limit)
    }

    /// Returns the time up to which the rate of a topic alone has delayed an attempt that has just
    /// begun.
    pub(super) fn delay_by_rate(&mut self, topic: &str, due: Micros, now: Micros) -> Micros {
        let Some(gate) = self.gates.get_mut(topic) else { return due };
        gate.pace.delay(due.max(gate.pauses.end().min(now)))
    }

    /// Notes which topics are paused and which have shelves.
    pub(super) fn note_topics(&mut self, paused: &[String], shelved: &[String], now: Micros) {
        for topic in paused {
            self.get(topic, now).set_paused(true, now);
        }
        for (name, gate) in &mut self.gates {
            if !paused.iter().any(|topic| **topic == **name) {
                gate.set_paused(false, now);
            }
        }
        for topic in shelved {
            self.get(topic, now).note_shelf(now);
        }
    }

    /// Drops the gates that are not needed any more, unless `is_behind` says that timeouts of their
    /// section are due. Returns `true` if there are other gates than before.
    pub(super) fn renew_sections(&mut self, is_behind: impl Fn(usize) -> bool) -> bool {
        let is_needed = |gate: &Gate| gate.is_limited || gate.is_paused || gate.has_shelf;
        self.gates.retain(|_, gate| is_needed(gate) || is_behind(gate.tag.section()));
        if self.gates.keys().eq(&self.topics) {
            return false;
        }
        self.topics = self.gates.keys().cloned().collect();
        for (number, gate) in self.gates.values_mut().enumerate() {
            gate.tag = Tag::of_gate(number);
        }
        true
    }
}
