//! The oldest timeout of each topic that is due and has not begun.
//!
//! The memory knows only the topics that may be blocked. So the keeper asks the store for others,
//! at most once in [`MIN_PAUSE`] and only while a timeout has been waiting for [`MIN_AGE`], and
//! never for more than [`ROWS`] rows and one of each shelf.

use super::Keeper;
use crate::store::{Filter, Micros, Store, StoreError, TimeoutState};
use std::collections::HashMap;
use std::time::Duration;

/// The time between two looks. If a timeout was too young for the first one, the time is shorter,
/// but at least [`MIN_PAUSE`].
const PAUSE: Micros = 1_000_000;
const MIN_PAUSE: Micros = PAUSE / 2;

/// The age from which the keeper looks.
const MIN_AGE: Micros = 1_000_000;

/// The number of rows that a look reads.
const ROWS: usize = 256;

/// The state of the looks.
#[derive(Default)]
pub(super) struct Look {
    /// The time of the next look.
    next: Micros,
    /// Whether a turn came after the last look.
    is_stale: bool,
    /// Whether the last look has found a timeout.
    has_found: bool,
}

impl<S: Store> Keeper<S> {
    /// Returns the time of the next look, if one is needed. There may be no other turn while no
    /// handler can start, although timeouts become due.
    pub(super) fn next_look(&self) -> Option<Micros> {
        if self.failures.must_rejoin() || self.stopping.is_some() {
            return None;
        }
        let heads = [&self.overdue, &self.current];
        let is_waiting = || heads.iter().any(|head| head.due_len() > 0) || self.gates.shelves().next().is_some();
        if self.look.is_stale && (self.look.has_found || is_waiting()) {
            return Some(self.look.next);
        }
        if self.may_begin() {
            // The keeper wakes up when the next timeout is due.
            return None;
        }
        let next = heads.iter().filter_map(|head| head.next_due()).min()?;
        Some(next.saturating_add(MIN_AGE).max(self.look.next))
    }

    /// Looks at the oldest timeouts, if it is time.
    pub(super) fn look(&mut self) {
        self.look.is_stale = true;
        let now = self.store.now();
        if self.look.next > now || self.next_look().is_none_or(|next| next > now) {
            return;
        }
        let mut first = vec![Micros::MAX; self.gates.topics().len() + 1];
        [&self.overdue, &self.current].into_iter().for_each(|head| head.lower_first_due(&mut first));
        let oldest = self.oldest_due(&first, now);
        // A topic whose timeouts are all too young for this look needs another look.
        let young = first.iter().filter(|first| (now - MIN_AGE + 1..Micros::MAX).contains(*first)).min();
        self.look.is_stale = young.is_some();
        let pause = young.map_or(PAUSE, |young| (young + MIN_AGE - now).max(MIN_PAUSE));
        self.look.next = now.saturating_add(pause);
        // Without an answer, the ages go on growing.
        if let Ok(oldest) = oldest {
            self.look.has_found = !oldest.is_empty();
            self.figures.set_oldest_due(oldest);
        }
    }

    /// Returns the ages of the oldest timeouts by topic. `first` has the due time of the oldest one
    /// of each section of the memory.
    fn oldest_due(&mut self, first: &[Micros], now: Micros) -> Result<HashMap<String, Duration>, StoreError> {
        let gated = self.gates.topics().iter().zip(&first[1..]).filter(|(_, first)| **first <= now - MIN_AGE);
        let mut oldest: HashMap<String, Micros> = gated.map(|(topic, first)| (topic.to_string(), *first)).collect();
        for topic in self.gates.shelves().cloned().collect::<Vec<_>>() {
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
