//! The memory, a head of the list for timeouts that were due when the memory was loaded, and one
//! for all others.

use super::super::head::Head;
use super::{Keeper, Settings};
use crate::TimeoutId;
use crate::store::{Micros, Position, Store, StoreError};

impl<S: Store> Keeper<S> {
    pub(super) fn put(&mut self, position: Position, now: Micros) {
        // An old entry may be in the other head.
        if self.overdue.covers(position) {
            self.current.remove(position.id);
            self.overdue.put(position, now);
        } else {
            self.overdue.remove(position.id);
            self.current.put(position, now);
        }
    }

    /// Moves a timeout unless it is in memory with an earlier due time.
    pub(super) fn put_earlier(&mut self, position: Position, now: Micros) {
        let due = self.overdue.due_of(position.id).or_else(|| self.current.due_of(position.id));
        if due.is_none_or(|due| position.due < due) {
            self.put(position, now);
        }
    }

    pub(super) fn push_ready(&mut self, id: TimeoutId) {
        self.current.push_ready(id);
        self.overdue.push_ready(id);
    }

    pub(super) fn remove(&mut self, id: TimeoutId) {
        self.overdue.remove(id);
        self.current.remove(id);
    }

    /// Loads a page into each head that has room, and drops the latest entries of a head that is
    /// too large.
    pub(super) fn load(&mut self) {
        if let Err(error) = self.load_pages() {
            self.fail(&error);
        }
    }

    fn load_pages(&mut self) -> Result<(), StoreError> {
        let now = self.store.now();
        for head in [&mut self.overdue, &mut self.current] {
            head.retreat();
            let Some((range, asked)) = head.wants(self.settings.page, now) else { continue };
            let mut page = Vec::with_capacity(asked);
            let bound = self.store.load(range, asked, &mut page)?;
            self.figures.lock().loaded += page.len() as u64;
            head.add_page(&page, bound, now);
        }
        Ok(())
    }
}

/// Returns the empty heads of an instance that begins to load its memory now.
pub(super) fn heads<S: Store>(store: &S, settings: &Settings) -> (Head, Head) {
    let now = Position::at(store.now());
    let overdue = Head::new(Position::START..now, settings.capacity / 2);
    (overdue, Head::new(now..Position::END, settings.capacity / 2))
}
