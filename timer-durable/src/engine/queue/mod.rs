//! The queue of timeouts, which is the memory of their lists and the order of begins.
//!
//! The memory has two parts. One is for the timeouts that were due when the memory was loaded,
//! which are *overdue*, and one is for all others. Both kinds share the places of handlers, so that
//! neither waits for the other one. Each part has the head of the list of each topic.

mod begins;
mod heads;
mod pace;
mod places;
mod topics;

pub(super) use heads::Wanted;
pub(super) use places::Places;

use super::settings::Settings;
use crate::TimeoutId;
use crate::store::{Micros, Position};
use heads::Heads;
use pace::Pace;
use std::sync::Arc;
use topics::Topics;

/// How many timeouts may begin in the first batch.
const FIRST_BEGINS: usize = 64;

/// The queue of timeouts.
pub(super) struct Queue {
    settings: Arc<Settings>,
    overdue: Heads,
    current: Heads,
    topics: Topics,
    /// Whether the topics of the store were noted since the memory was emptied. A topic that is
    /// new after that has no other timeouts in the store.
    has_topics: bool,
    /// Timeouts that may be before the bound of their topic, which nobody has told.
    unknown: Vec<Position>,
    /// The rate of overdue timeouts.
    pace: Pace,
    /// Whether the timeout that began last was overdue.
    overdue_began_last: bool,
    /// How many timeouts may begin in one batch, adapted to the size of recent answers.
    max_begins: usize,
}

impl Queue {
    /// Creates a queue whose memory is loaded from `now` on.
    pub(super) fn new(settings: Arc<Settings>, now: Micros) -> Self {
        let [overdue, current] = heads(&settings, now);
        Self {
            topics: Topics::new(&settings, now),
            pace: Pace::new(settings.overdue_rate, now),
            settings,
            overdue,
            current,
            has_topics: false,
            unknown: Vec::new(),
            overdue_began_last: false,
            max_begins: FIRST_BEGINS,
        }
    }

    /// Begins to load the memory of a new instance.
    pub(super) fn renew(&mut self, now: Micros) {
        [self.overdue, self.current] = heads(&self.settings, now);
        self.has_topics = false;
    }

    /// Takes the share of the rates of all nodes that belongs to a number of shards.
    pub(super) fn set_share(&mut self, shards: u32, now: Micros) {
        self.topics.set_share(shards, now);
    }

    /// Returns `true` if the topics of the store have to be noted.
    pub(super) fn needs_topics(&self) -> bool {
        !self.has_topics
    }

    /// Notes the topics of the store, and begins to load the timeouts of each.
    pub(super) fn note_topics(&mut self, topics: &[String], now: Micros) {
        for topic in topics {
            self.number(topic, now);
        }
        self.overdue.clear(self.topics.len());
        self.current.clear(self.topics.len());
        for free in self.topics.free() {
            self.overdue.forget(free);
            self.current.forget(free);
        }
        self.unknown.clear();
        self.has_topics = true;
    }

    /// Returns the number of a topic, which may be new.
    fn number(&mut self, topic: &str, now: Micros) -> usize {
        if let Some(number) = self.topics.find(topic) {
            return number;
        }
        if self.has_topics && self.topics.have_doubled() {
            let parts = [&self.overdue, &self.current];
            for gone in self.topics.forget(|topic| parts.iter().all(|heads| heads.has_none(topic))) {
                self.overdue.forget(gone);
                self.current.forget(gone);
            }
        }
        self.topics.add_new(topic, now)
    }

    fn heads(&self) -> [&Heads; 2] {
        [&self.overdue, &self.current]
    }

    fn part(&mut self, is_overdue: bool) -> &mut Heads {
        if is_overdue { &mut self.overdue } else { &mut self.current }
    }

    /// Returns the number of timeouts in memory.
    pub(super) fn len(&self) -> usize {
        self.heads().map(Heads::len).iter().sum()
    }

    /// Returns the number of timeouts in memory that are due.
    pub(super) fn due_len(&self) -> usize {
        self.heads().map(Heads::due_len).iter().sum()
    }

    /// Returns `true` if the timeout is in memory.
    pub(super) fn contains(&self, id: TimeoutId) -> bool {
        self.due_of(id).is_some()
    }

    fn due_of(&self, id: TimeoutId) -> Option<Micros> {
        self.heads().into_iter().find_map(|head| head.due_of(id))
    }

    fn topic_of(&self, id: TimeoutId) -> Option<usize> {
        self.heads().into_iter().find_map(|heads| heads.topic_of(id))
    }

    /// Adds or moves a timeout. Without a topic it keeps the one that it has in memory.
    pub(super) fn put(&mut self, position: Position, topic: Option<&str>, now: Micros) {
        let known = topic.map(|topic| self.number(topic, now)).or_else(|| self.topic_of(position.id));
        match known {
            Some(topic) => self.put_in(position, topic, now),
            None if self.heads().iter().any(|heads| heads.may_have(position)) => self.unknown.push(position),
            None => {}
        }
    }

    fn put_in(&mut self, position: Position, topic: usize, now: Micros) {
        // An old entry may be in the other part.
        let is_overdue = self.overdue.covers(position);
        self.part(!is_overdue).remove(position.id);
        self.part(is_overdue).put(position, topic, now);
    }

    /// Moves a timeout that was ready, also to the same due time.
    pub(super) fn put_again(&mut self, position: Position, now: Micros) {
        let topic = self.topic_of(position.id);
        self.remove(position.id);
        match topic {
            Some(topic) => self.put_in(position, topic, now),
            None => self.put(position, None, now),
        }
    }

    /// Moves a timeout unless it is in memory with an earlier due time.
    pub(super) fn put_earlier(&mut self, position: Position, topic: Option<&str>, now: Micros) {
        if self.due_of(position.id).is_none_or(|due| position.due < due) {
            self.put(position, topic, now);
        }
    }

    /// Removes the timeouts whose topics have to be looked up.
    pub(super) fn take_unknown(&mut self) -> Vec<Position> {
        std::mem::take(&mut self.unknown)
    }

    pub(super) fn remove(&mut self, id: TimeoutId) {
        self.overdue.remove(id);
        self.current.remove(id);
    }

    /// Lets a timeout that is due begin in a later batch.
    pub(super) fn push_ready(&mut self, id: TimeoutId) {
        self.current.push_ready(id);
        self.overdue.push_ready(id);
    }

    /// Moves the timeouts that are due at `now` to the ready lists.
    pub(super) fn expire(&mut self, now: Micros) {
        self.overdue.expire(now);
        self.current.expire(now);
    }

    /// Returns the timeouts in memory that are due.
    pub(super) fn due_ids(&self) -> impl Iterator<Item = TimeoutId> {
        self.overdue.due_ids().chain(self.current.due_ids())
    }

    /// Returns the first due time of each topic, with its name, whose timeouts in memory are due.
    /// Visits all timeouts.
    pub(super) fn first_due(&self) -> Vec<(Arc<str>, Micros)> {
        let mut first = vec![Micros::MAX; self.topics.len()];
        for heads in self.heads() {
            heads.lower_first_due(&mut first);
        }
        let due = first.into_iter().enumerate().filter(|(_, due)| *due < Micros::MAX);
        due.filter_map(|(topic, due)| Some((self.topics.name(topic)?.clone(), due))).collect()
    }

    /// Returns a time not later than the next one at which a timeout becomes due.
    pub(super) fn next_expiry(&self) -> Option<Micros> {
        self.heads().into_iter().filter_map(Heads::next_due).min()
    }

    /// Returns the time from which the next page can be loaded.
    pub(super) fn next_page(&self) -> Option<Micros> {
        if self.needs_topics() || !self.unknown.is_empty() {
            return Some(Micros::MIN);
        }
        self.heads().into_iter().filter_map(|heads| heads.next_page(|topic| self.topics.need(topic))).min()
    }

    /// Returns the next page of a part of the memory to load, with at most `page` positions, and
    /// the name of its topic.
    pub(super) fn next_wanted(&mut self, is_overdue: bool, page: usize, now: Micros) -> Option<(Arc<str>, Wanted)> {
        let heads = if is_overdue { &mut self.overdue } else { &mut self.current };
        let wanted = heads.next_wanted(page, now, |topic| self.topics.need(topic))?;
        Some((self.topics.name(wanted.topic)?.clone(), wanted))
    }

    /// Adds a page, which has everything of its range before `bound`.
    pub(super) fn add_page(&mut self, is_overdue: bool, topic: usize, page: &[Position], bound: Position, now: Micros) {
        self.part(is_overdue).add_page(topic, page, bound, now);
    }

    /// Drops the latest timeouts of a part of the memory that is too large.
    pub(super) fn retreat(&mut self, is_overdue: bool) {
        self.part(is_overdue).retreat();
    }

    /// Notes which topics have caught up.
    pub(super) fn note_caught_up(&mut self, now: Micros) {
        let parts = [&self.overdue, &self.current];
        self.topics.note_caught_up(|topic| parts.iter().any(|heads| heads.is_behind(topic, now)));
    }

    /// Pauses or resumes a topic.
    pub(super) fn set_paused(&mut self, topic: &str, is_paused: bool, now: Micros) {
        let number = self.number(topic, now);
        self.topics.set_paused(number, is_paused, now);
    }

    /// Notes which topics are paused.
    pub(super) fn note_paused(&mut self, paused: &[String], now: Micros) {
        for topic in paused {
            self.number(topic, now);
        }
        self.topics.note_paused(paused, now);
    }

    /// Returns the topics that are paused.
    pub(super) fn paused(&self) -> impl Iterator<Item = &Arc<str>> {
        self.topics.paused()
    }

    /// Returns the number of attempts of a topic that take places.
    pub(super) fn running(&self, topic: &str) -> usize {
        self.topics.running(topic)
    }

    /// Notes that an attempt takes no place any more.
    pub(super) fn leave(&mut self, topic: &str) {
        self.topics.leave(topic);
    }
}

/// Returns the empty memory of an instance that begins to load it now, first the part of overdue
/// timeouts.
fn heads(settings: &Settings, now: Micros) -> [Heads; 2] {
    let now = Position::at(now);
    let overdue = Heads::new(Position::START..now, settings.capacity / 2, 0);
    [overdue, Heads::new(now..Position::END, settings.capacity / 2, 0)]
}
