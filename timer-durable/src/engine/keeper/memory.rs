//! The memory, a head of the list for timeouts that were due when the memory was loaded, and one
//! for all others.

use super::super::head::{Head, Tag};
use super::super::id_map::IdMap;
use super::{Keeper, Settings};
use crate::TimeoutId;
use crate::store::{Micros, Position, Store, StoreError};
use std::sync::Arc;

/// The number of positions that are read at a time if their topics have to be read as well. Each
/// topic may be on another page of the disk.
const PAGE_WITH_TOPICS: usize = 500;

impl<S: Store> Keeper<S> {
    /// Adds or moves a timeout. Without a topic it keeps its section.
    pub(super) fn put(&mut self, position: Position, topic: Option<&str>, now: Micros) {
        let tag = topic.map(|topic| self.gates.tag(topic)).or_else(|| self.tag_of(position.id));
        self.put_in(position, tag.unwrap_or_else(|| self.gates.tag_of_unknown()), now);
    }

    fn put_in(&mut self, position: Position, tag: Tag, now: Micros) {
        // An old entry may be in the other head.
        if self.overdue.covers(position) {
            self.current.remove(position.id);
            self.overdue.put(position, tag, now);
        } else {
            self.overdue.remove(position.id);
            self.current.put(position, tag, now);
        }
    }

    /// Moves a timeout that was ready, also to the same due time.
    pub(super) fn put_again(&mut self, position: Position, now: Micros) {
        let tag = self.tag_of(position.id).unwrap_or_else(|| self.gates.tag_of_unknown());
        self.remove(position.id);
        self.put_in(position, tag, now);
    }

    /// Moves a timeout unless it is in memory with an earlier due time.
    pub(super) fn put_earlier(&mut self, position: Position, topic: Option<&str>, now: Micros) {
        let due = self.overdue.due_of(position.id).or_else(|| self.current.due_of(position.id));
        if due.is_none_or(|due| position.due < due) {
            self.put(position, topic, now);
        }
    }

    /// Adds timeouts that others have written.
    pub(super) fn put_foreign(&mut self, positions: Vec<Position>) -> Result<(), StoreError> {
        let now = self.store.now();
        let tagged = tagged(&mut self.store, self.gates.topics(), positions)?;
        tagged.into_iter().for_each(|(position, tag)| self.put_in(position, tag, now));
        Ok(())
    }

    /// Returns the tag of a timeout in memory.
    pub(super) fn tag_of(&self, id: TimeoutId) -> Option<Tag> {
        self.overdue.tag_of(id).or_else(|| self.current.tag_of(id))
    }

    pub(super) fn push_ready(&mut self, id: TimeoutId) {
        self.current.push_ready(id);
        self.overdue.push_ready(id);
    }

    pub(super) fn remove(&mut self, id: TimeoutId) {
        self.overdue.remove(id);
        self.current.remove(id);
    }

    /// Empties the memory, which is loaded again with a section for each gate.
    pub(super) fn clear_heads(&mut self) {
        let gates = self.gates.topics().len();
        self.overdue.clear(gates);
        self.current.clear(gates);
    }

    /// Begins to load the memory of a new instance.
    pub(super) fn renew_heads(&mut self) {
        (self.overdue, self.current) = heads(&self.store, &self.settings, self.gates.topics().len());
    }

    /// Loads a page into each head that has room, and drops the latest entries of a head that is
    /// too large.
    pub(super) fn load(&mut self) {
        self.renew_sections();
        if let Err(error) = self.load_pages() {
            self.fail(&error);
        }
    }

    fn load_pages(&mut self) -> Result<(), StoreError> {
        let now = self.store.now();
        let topics = self.gates.topics();
        let page_size = if topics.is_empty() { self.settings.page } else { self.settings.page.min(PAGE_WITH_TOPICS) };
        for head in [&mut self.overdue, &mut self.current] {
            head.retreat();
            let Some((range, asked)) = head.wants(page_size, now) else { continue };
            let (start, mut page) = (range.start, Vec::with_capacity(asked));
            let bound = self.store.load(range, asked, &mut page)?;
            self.figures.lock().loaded += page.len() as u64;
            // A section that lies behind reads timeouts that are in memory.
            page.retain(|position| head.due_of(position.id) != Some(position.due));
            let page = tagged(&mut self.store, topics, page)?;
            head.add_page(start, &page, bound, now);
            head.retreat();
        }
        Ok(())
    }
}

/// Reads the topics of timeouts, if some topics have gates.
fn tagged<S: Store>(
    store: &mut S,
    topics: &[Arc<str>],
    positions: Vec<Position>,
) -> Result<Vec<(Position, Tag)>, StoreError> {
    let mut tags: IdMap<Tag> = IdMap::default();
    if !topics.is_empty() && !positions.is_empty() {
        let (ids, mut found): (Vec<TimeoutId>, _) =
            (positions.iter().map(|position| position.id).collect(), Vec::new());
        store.find_topics(&ids, topics, &mut found)?;
        tags.extend(found.into_iter().map(|(id, topic)| (id, Tag::of_gate(topic))));
    }
    let tag = |position: &Position| tags.get(&position.id).copied().unwrap_or(Tag::OPEN);
    Ok(positions.into_iter().map(|position| (position, tag(&position))).collect())
}

/// Returns the empty heads of an instance that begins to load its memory now.
pub(super) fn heads<S: Store>(store: &S, settings: &Settings, gates: usize) -> (Head, Head) {
    let now = Position::at(store.now());
    let overdue = Head::new(Position::START..now, settings.capacity / 2, gates);
    (overdue, Head::new(now..Position::END, settings.capacity / 2, gates))
}
