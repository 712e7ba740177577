//! Reading from the store: its topics, pages of their lists, and which of them are paused.

use super::Keeper;
use crate::TimeoutId;
use crate::engine::id_map::IdMap;
use crate::store::{Micros, StoreError};

/// The largest number of pages that a turn reads into each part of the memory.
const MAX_PAGES: usize = 64;

impl Keeper {
    /// Reads which topics are paused.
    pub(super) fn load_pauses(&mut self) {
        if let Err(error) = self.read_pauses() {
            self.fail(&error);
        }
    }

    pub(super) fn read_pauses(&mut self) -> Result<(), StoreError> {
        let paused = self.store.paused_topics()?;
        self.queue.note_paused(&paused, self.store.now());
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

    /// Loads pages of the topics that have room in memory.
    pub(super) fn load(&mut self) {
        let loaded = self.load_topics().and_then(|()| self.load_unknown()).and_then(|()| self.load_pages());
        if let Err(error) = loaded {
            self.fail(&error);
        }
        self.queue.note_caught_up(self.store.now());
    }

    /// Reads which topics have timeouts, after the memory was emptied.
    fn load_topics(&mut self) -> Result<(), StoreError> {
        if self.queue.needs_topics() {
            let topics = self.store.topics()?;
            self.queue.note_topics(&topics, self.store.now());
        }
        Ok(())
    }

    /// Reads the topics of timeouts that calls have moved by their ids and that were not in
    /// memory.
    fn load_unknown(&mut self) -> Result<(), StoreError> {
        let unknown = self.queue.take_unknown();
        if unknown.is_empty() {
            return Ok(());
        }
        let ids: Vec<TimeoutId> = unknown.iter().map(|position| position.id).collect();
        let mut topics = Vec::new();
        if let Err(error) = self.store.find_topics(&ids, &mut topics) {
            // Nothing else tells of these timeouts.
            self.queue.renew(self.store.now());
            return Err(error);
        }
        let topics: IdMap<String> = topics.into_iter().collect();
        let now = self.store.now();
        for position in unknown {
            if let Some(topic) = topics.get(&position.id) {
                self.queue.put_earlier(position, Some(topic), now);
            }
        }
        Ok(())
    }

    fn load_pages(&mut self) -> Result<(), StoreError> {
        let now = self.store.now();
        let until = self.deadline();
        for is_overdue in [true, false] {
            self.queue.retreat(is_overdue);
            let mut left = self.settings.page;
            for _ in 0..MAX_PAGES {
                let Some((topic, wanted)) = self.queue.next_wanted(is_overdue, left, now) else { break };
                let start = wanted.range.start;
                let mut page = Vec::with_capacity(wanted.max);
                let bound = self.store.load(&topic, wanted.range, wanted.max, &mut page)?;
                self.figures().lock().loaded += page.len() as u64;
                self.queue.add_page(is_overdue, wanted.topic, &page, bound, now);
                left -= page.len();
                // A store that sorts its rows before it reads them takes one step in a turn.
                let has_advanced = bound > start;
                if left == 0 || !has_advanced || self.present() >= until {
                    break;
                }
            }
            self.queue.retreat(is_overdue);
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
        self.record.next_look(|| self.queue.due_len() > 0, next_due)
    }

    /// Looks at the oldest timeouts, if it is time.
    pub(super) fn look(&mut self) {
        let now = self.store.now();
        if self.record.may_look(now) && self.next_look().is_some_and(|next| next <= now) {
            self.record.note_look(&self.queue.first_due(), now);
        }
    }
}
