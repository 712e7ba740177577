//! Reading from the store: pages of the list, the topics that may be blocked, and their shelves.

use super::Keeper;
use crate::TimeoutId;
use crate::engine::queue::Places;
use crate::engine::record::MIN_AGE;
use crate::engine::unwritten::{Collection, Origin};
use crate::store::{Filter, Micros, Position, StoreError, TimeoutState};
use crate::time::micros;
use crate::transaction::Operation;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The number of rows that a look at the oldest timeouts reads, besides one of each shelf.
const ROWS: usize = 256;

impl Keeper {
    /// Reads which topics are paused and which have shelves. Returns an error if a topic is limited
    /// and the store has no shelves.
    pub(super) fn open_gates(&mut self) -> Result<(), StoreError> {
        let limited = self.queue.gated();
        self.store.set_blocked(&limited)?;
        self.queue.set_blocked(limited);
        self.read_gates()
    }

    /// Reads which topics are paused and which have shelves.
    pub(super) fn load_gates(&mut self) {
        if let Err(error) = self.read_gates() {
            self.fail(&error);
        }
    }

    fn read_gates(&mut self) -> Result<(), StoreError> {
        let paused = self.store.paused_topics()?;
        let shelved = self.store.shelved_topics()?;
        self.queue.note_topics(&paused, &shelved, self.store.now());
        self.publish_pauses();
        Ok(())
    }

    /// Publishes which topics are paused.
    pub(super) fn publish_pauses(&self) {
        let mut stats = self.figures().lock();
        stats.topics.values_mut().for_each(|topic| topic.is_paused = false);
        for name in self.queue.paused() {
            stats.change_topic(name, |topic| topic.is_paused = true);
        }
    }

    /// Loads a page into each head of the memory that has room.
    pub(super) fn load(&mut self) {
        self.queue.renew_sections(self.store.now());
        if let Err(error) = self.load_pages() {
            self.fail(&error);
        }
    }

    fn load_pages(&mut self) -> Result<(), StoreError> {
        let now = self.store.now();
        for is_overdue in [true, false] {
            let Some((range, asked)) = self.queue.next_range(is_overdue, now) else { continue };
            let start = range.start;
            let mut page = Vec::with_capacity(asked);
            let bound = self.store.load(range, asked, &mut page)?;
            self.figures().lock().loaded += page.len() as u64;
            self.queue.drop_known(is_overdue, &mut page);
            let topics = self.find_topics(&page)?;
            self.queue.add_page(is_overdue, start..bound, page, &topics, now);
        }
        Ok(())
    }

    /// Adds timeouts that others have written.
    pub(super) fn add_foreign(&mut self, positions: Vec<Position>) -> Result<(), StoreError> {
        let now = self.store.now();
        let topics = self.find_topics(&positions)?;
        self.queue.put_foreign(positions, &topics, now);
        Ok(())
    }

    /// Reads the numbers of the topics of timeouts, if some topics may be blocked.
    fn find_topics(&mut self, positions: &[Position]) -> Result<Vec<(TimeoutId, usize)>, StoreError> {
        let topics = self.queue.topics();
        let mut found = Vec::new();
        if !topics.is_empty() && !positions.is_empty() {
            let ids: Vec<TimeoutId> = positions.iter().map(|position| position.id).collect();
            self.store.find_topics(&ids, topics, &mut found)?;
        }
        Ok(found)
    }

    /// Adds timeouts of shelves whose topics have room to the batch. Like overdue ones, they use at
    /// most half of the places.
    pub(super) fn add_shelved(
        &mut self,
        collection: &mut Collection,
        places: &Places,
        now: Micros,
    ) -> Result<(), StoreError> {
        let shelves = self.queue.ready_shelves(&self.executors, now);
        let mut free = places.for_overdue();
        let share = (free / shelves.len().max(1)).max(1);
        // Begins that wait aside are still on the shelf.
        let aside = self.unwritten.begins();
        let present = self.present();
        let next_aside = self.unwritten.next().map(|next| micros(next.saturating_duration_since(present)));
        for topic in shelves {
            let max = self.queue.room(&topic, now).min(share).min(free);
            if max == 0 {
                break;
            }
            let mut page: Vec<Position> = Vec::new();
            self.store.load_shelf(&topic, max.saturating_add(aside.len()), &mut page)?;
            let is_free = |id: &TimeoutId| !self.attempts.contains(*id) && !aside.contains(id) && !collection.has(*id);
            let ids: Vec<TimeoutId> = page.iter().map(|position| position.id).filter(is_free).take(max).collect();
            let waits_aside = page.iter().all(|position| aside.contains(&position.id));
            self.queue.begin_from_shelf(&topic, page.is_empty(), &ids, next_aside.filter(|_| waits_aside), now);
            free -= ids.len();
            for id in ids {
                collection.push(Operation::Begin(id), Origin::Begin);
            }
        }
        Ok(())
    }

    /// Returns the time of the next look at the oldest timeouts, if one is needed. There may be no
    /// other turn while no handler can start, although timeouts become due.
    pub(super) fn next_look(&self) -> Option<Micros> {
        if self.failures.must_rejoin() || self.stopping.has_begun() {
            return None;
        }
        // Otherwise the keeper wakes up when the next timeout is due.
        let next_due = if self.may_begin() { None } else { self.queue.next_expiry() };
        self.record.next_look(|| self.queue.is_waiting(), next_due)
    }

    /// Looks at the oldest timeouts, if it is time.
    pub(super) fn look(&mut self) {
        let now = self.store.now();
        if !self.record.may_look(now) || self.next_look().is_none_or(|next| next > now) {
            return;
        }
        let first = self.queue.first_due();
        let oldest = self.oldest_due(&first, now).ok();
        self.record.note_look(&first, oldest, now);
    }

    /// Returns the ages of the oldest timeouts by topic. `first` has the due time of the oldest one
    /// of each section of the memory.
    fn oldest_due(&mut self, first: &[Micros], now: Micros) -> Result<HashMap<String, Duration>, StoreError> {
        let gated = self.queue.topics().iter().zip(&first[1..]).filter(|(_, first)| **first <= now - MIN_AGE);
        let mut oldest: HashMap<String, Micros> = gated.map(|(topic, first)| (topic.to_string(), *first)).collect();
        for topic in self.queue.shelves().cloned().collect::<Vec<Arc<str>>>() {
            let mut first = Vec::new();
            self.store.load_shelf(&topic, 1, &mut first)?;
            if let Some(first) = first.first() {
                let oldest = oldest.entry(topic.to_string()).or_insert(first.due);
                *oldest = first.due.min(*oldest);
            }
        }
        if first[0] <= now - MIN_AGE {
            let rows = self.store.list(&Filter { due: first[0]..now + 1, ..Filter::new() }, None, ROWS)?;
            for row in rows.into_iter().filter(|row| row.state != TimeoutState::Running) {
                let oldest = oldest.entry(row.topic).or_insert(row.due);
                *oldest = row.due.min(*oldest);
            }
        }
        // Zero would mean that nothing is due.
        let age = |(topic, due): (String, Micros)| {
            (topic, Duration::from_micros(now.saturating_sub(due).max(1).unsigned_abs()))
        };
        Ok(oldest.into_iter().map(age).collect())
    }
}
