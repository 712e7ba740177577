//! The queue of timeouts, which is the head of the list in memory and the order of begins.
//!
//! The memory has two heads. One is for the timeouts that were due when the memory was loaded,
//! which are *overdue*, and one is for all others. Both kinds share the places of handlers, so that
//! neither waits for the other one.

mod begins;
mod gates;
mod head;
mod pace;
mod places;
mod shelves;

pub(super) use begins::Source;
pub(super) use places::Places;

use super::id_map::IdMap;
use super::settings::Settings;
use crate::TimeoutId;
use crate::store::{Micros, Position};
use gates::Gates;
use head::{Head, Tag};
use pace::Pace;
use std::ops::Range;
use std::sync::Arc;

/// The number of positions that are read at a time if their topics have to be read as well. Each
/// topic may be on another page of the disk.
const PAGE_WITH_TOPICS: usize = 500;

/// How many timeouts may begin in the first batch.
const FIRST_BEGINS: usize = 64;

/// The queue of timeouts.
pub(super) struct Queue {
    settings: Arc<Settings>,
    overdue: Head,
    current: Head,
    gates: Gates,
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
        let gates = Gates::new(&settings, now);
        let [overdue, current] = heads(&settings, 0, now);
        let pace = Pace::new(settings.overdue_rate, now);
        let max_begins = FIRST_BEGINS;
        Self { settings, overdue, current, gates, pace, overdue_began_last: false, max_begins }
    }

    /// Begins to load the memory of a new instance.
    pub(super) fn renew(&mut self, now: Micros) {
        [self.overdue, self.current] = heads(&self.settings, self.topics().len(), now);
    }

    /// Empties the memory, which is loaded again with a section for each gate.
    pub(super) fn clear(&mut self) {
        let gates = self.topics().len();
        self.overdue.clear(gates);
        self.current.clear(gates);
    }

    fn heads(&self) -> [&Head; 2] {
        [&self.overdue, &self.current]
    }

    fn head(&mut self, is_overdue: bool) -> &mut Head {
        if is_overdue { &mut self.overdue } else { &mut self.current }
    }

    /// Returns the number of timeouts in memory.
    pub(super) fn len(&self) -> usize {
        self.heads().map(Head::len).iter().sum()
    }

    /// Returns the number of timeouts in memory that are due.
    pub(super) fn due_len(&self) -> usize {
        self.heads().map(Head::due_len).iter().sum()
    }

    /// Returns `true` if the timeout is in memory.
    pub(super) fn contains(&self, id: TimeoutId) -> bool {
        self.due_of(id).is_some()
    }

    fn due_of(&self, id: TimeoutId) -> Option<Micros> {
        self.heads().into_iter().find_map(|head| head.due_of(id))
    }

    fn tag_of(&self, id: TimeoutId) -> Option<Tag> {
        self.heads().into_iter().find_map(|head| head.tag_of(id))
    }

    /// Adds or moves a timeout. Without a topic it keeps its section.
    pub(super) fn put(&mut self, position: Position, topic: Option<&str>, now: Micros) {
        let tag = topic.map(|topic| self.gates.tag(topic)).or_else(|| self.tag_of(position.id));
        self.put_in(position, tag.unwrap_or_else(|| self.gates.tag_of_unknown()), now);
    }

    fn put_in(&mut self, position: Position, tag: Tag, now: Micros) {
        // An old entry may be in the other head.
        let is_overdue = self.overdue.covers(position);
        self.head(!is_overdue).remove(position.id);
        self.head(is_overdue).put(position, tag, now);
    }

    /// Moves a timeout that was ready, also to the same due time.
    pub(super) fn put_again(&mut self, position: Position, now: Micros) {
        let tag = self.tag_of(position.id).unwrap_or_else(|| self.gates.tag_of_unknown());
        self.remove(position.id);
        self.put_in(position, tag, now);
    }

    /// Moves a timeout unless it is in memory with an earlier due time.
    pub(super) fn put_earlier(&mut self, position: Position, now: Micros) {
        if self.due_of(position.id).is_none_or(|due| position.due < due) {
            self.put(position, None, now);
        }
    }

    /// Adds timeouts that others have written. `topics` has the numbers of their topics if these
    /// may be blocked.
    pub(super) fn put_foreign(&mut self, positions: Vec<Position>, topics: &[(TimeoutId, usize)], now: Micros) {
        for (position, tag) in tagged(positions, topics) {
            self.put_in(position, tag, now);
        }
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

    /// Returns the due time of the first timeout of each section of the memory that is due. Visits
    /// all timeouts.
    pub(super) fn first_due(&self) -> Vec<Micros> {
        let mut first = vec![Micros::MAX; self.topics().len() + 1];
        for head in self.heads() {
            head.lower_first_due(&mut first);
        }
        first
    }

    /// Returns `true` if timeouts are due and have not begun.
    pub(super) fn is_waiting(&self) -> bool {
        self.due_len() > 0 || self.shelves().next().is_some()
    }

    /// Returns a time not later than the next one at which a timeout becomes due.
    pub(super) fn next_expiry(&self) -> Option<Micros> {
        self.heads().into_iter().filter_map(Head::next_due).min()
    }

    /// Returns the time from which the next page can be loaded.
    pub(super) fn next_page(&self) -> Option<Micros> {
        self.heads().into_iter().filter_map(Head::next_page).min()
    }

    /// Returns the next range of a head to load, and the number of positions to ask for. Drops the
    /// latest entries of a head that is too large.
    pub(super) fn next_range(&mut self, is_overdue: bool, now: Micros) -> Option<(Range<Position>, usize)> {
        let page = self.settings.page;
        let page = if self.topics().is_empty() { page } else { page.min(PAGE_WITH_TOPICS) };
        let head = self.head(is_overdue);
        head.retreat();
        head.wants(page, now)
    }

    /// Removes the positions that a head has from a page. A section that lies behind reads timeouts
    /// that are in memory.
    pub(super) fn drop_known(&mut self, is_overdue: bool, page: &mut Vec<Position>) {
        let head = self.head(is_overdue);
        page.retain(|position| head.due_of(position.id) != Some(position.due));
    }

    /// Adds a page of a range, which has everything from `start` to `bound`. `topics` has the
    /// numbers of the topics that may be blocked.
    pub(super) fn add_page(
        &mut self,
        is_overdue: bool,
        range: Range<Position>,
        page: Vec<Position>,
        topics: &[(TimeoutId, usize)],
        now: Micros,
    ) {
        let page = tagged(page, topics);
        let head = self.head(is_overdue);
        head.add_page(range.start, &page, range.end, now);
        head.retreat();
    }

    /// Drops the gates that are not needed any more. If there are other gates than before, gives
    /// them their sections and loads the memory again.
    pub(super) fn renew_sections(&mut self, now: Micros) {
        let heads = [&self.overdue, &self.current];
        if self.gates.renew_sections(|section| heads.iter().any(|head| head.is_behind(section, now))) {
            self.clear();
        }
    }

    /// Pauses or resumes a topic.
    pub(super) fn set_paused(&mut self, topic: &str, is_paused: bool, now: Micros) {
        self.gates.get(topic, now).set_paused(is_paused, now);
        self.renew_sections(now);
    }

    /// Notes which topics are paused and which have shelves.
    pub(super) fn note_topics(&mut self, paused: &[String], shelved: &[String], now: Micros) {
        self.gates.note_topics(paused, shelved, now);
        self.renew_sections(now);
    }

    /// Returns the topics that may be blocked, in the order of their sections in memory.
    pub(super) fn topics(&self) -> &[Arc<str>] {
        &self.gates.topics
    }

    /// Returns the topics whose shelves may have timeouts.
    pub(super) fn shelves(&self) -> impl Iterator<Item = &Arc<str>> {
        self.gates.gates.iter().filter(|(_, gate)| gate.has_shelf).map(|(name, _)| name)
    }

    /// Returns the topics that are paused.
    pub(super) fn paused(&self) -> impl Iterator<Item = &Arc<str>> {
        self.gates.gates.iter().filter(|(_, gate)| gate.is_paused).map(|(name, _)| name)
    }

    /// Returns the number of attempts of a topic that take places.
    pub(super) fn running(&self, topic: &str) -> usize {
        self.gates.gates.get(topic).map_or(0, |gate| gate.running)
    }

    /// Notes that an attempt takes no place any more.
    pub(super) fn leave(&mut self, topic: &str) {
        if let Some(gate) = self.gates.gates.get_mut(topic) {
            // It may have begun before its topic had a gate.
            gate.running = gate.running.saturating_sub(1);
        }
    }
}

/// Gives positions their tags. `topics` has the numbers of their topics if these may be blocked.
fn tagged(positions: Vec<Position>, topics: &[(TimeoutId, usize)]) -> Vec<(Position, Tag)> {
    let tags: IdMap<Tag> = topics.iter().map(|(id, topic)| (*id, Tag::of_gate(*topic))).collect();
    let tag = |position: &Position| tags.get(&position.id).copied().unwrap_or(Tag::OPEN);
    positions.into_iter().map(|position| (position, tag(&position))).collect()
}

/// Returns the empty heads of an instance that begins to load its memory now, first that of overdue
/// timeouts.
fn heads(settings: &Settings, gates: usize, now: Micros) -> [Head; 2] {
    let now = Position::at(now);
    let overdue = Head::new(Position::START..now, settings.capacity / 2, gates);
    [overdue, Head::new(now..Position::END, settings.capacity / 2, gates)]
}
