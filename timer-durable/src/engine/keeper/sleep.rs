//! The sleep of the keeper between its turns.

use super::Keeper;
use crate::message::Message;
use crate::store::Micros;
use crate::time::micros;
use std::time::{Duration, Instant};

/// How long the keeper may sleep if no message arrives.
enum Sleep {
    UntilMessage,
    Until(Instant),
    /// There is something to do.
    No,
}

impl Keeper {
    /// Returns the first time at which a timeout in memory may begin.
    pub(crate) fn next_due(&self) -> Option<Micros> {
        if self.attempts.free() == 0 {
            return None;
        }
        self.queue.next_due(self.attempts.free_for_overdue(), &self.executors, self.store.now())
    }

    /// Returns the time from which the next page can be loaded.
    pub(crate) fn next_page(&self) -> Option<Micros> {
        self.queue.next_page()
    }

    /// Returns the time of the keeper's next turn if nothing happens until then. It may be now.
    pub(crate) fn next_wake(&self) -> Option<Micros> {
        let wait = match self.sleep() {
            Sleep::UntilMessage => return None,
            Sleep::Until(until) => until.saturating_duration_since(self.present()),
            Sleep::No => Duration::ZERO,
        };
        Some(self.store.now().saturating_add(micros(wait)))
    }

    /// Returns `true` if the next turn has something to do.
    pub(crate) fn has_work(&self) -> bool {
        !self.inbox.is_empty() || matches!(self.sleep(), Sleep::No)
    }

    /// Sleeps until there is something to do. Returns the message that has arrived, if any.
    pub(super) fn wait(&mut self) -> Option<Message> {
        match self.sleep() {
            Sleep::UntilMessage => self.inbox.recv().ok(),
            Sleep::Until(until) => self.inbox.recv_deadline(until).ok(),
            Sleep::No => self.inbox.try_recv().ok(),
        }
    }

    /// Returns how long the keeper may sleep.
    fn sleep(&self) -> Sleep {
        let now = self.present();
        let mut until = Vec::new();
        if !self.failures.must_rejoin() {
            until.extend(self.next_upkeep());
        }
        until.extend(self.stopping.until());
        if let Some(paused) = self.failures.paused_until(now) {
            until.push(paused);
            if self.failures.must_rejoin() && !self.failures.clock().is_virtual() {
                until.extend(self.unwritten.next_failure(now));
            }
        } else {
            if self.failures.must_rejoin() || !self.unwritten.is_quiet() {
                return Sleep::No;
            }
            self.add_wake_ups(&mut until, now);
        }
        match until.into_iter().min() {
            None => Sleep::UntilMessage,
            Some(first) if first <= now => Sleep::No,
            Some(first) => Sleep::Until(first),
        }
    }

    /// Adds the instants at which a keeper that has no pause has something to do.
    fn add_wake_ups(&self, until: &mut Vec<Instant>, now: Instant) {
        until.extend(self.unwritten.next());
        // A look at figures does not stop virtual time.
        let is_virtual = self.failures.clock().is_virtual();
        let look = self.next_look().filter(|look| !is_virtual || *look <= self.store.now());
        let mut times = Vec::from_iter(self.attempts.next_look().into_iter().chain(look));
        if !self.stopping.has_begun() {
            let old_letters = self.unwritten.retention().next_look();
            times.extend(old_letters.filter(|look| !is_virtual || *look <= self.store.now()));
            let next_page = self.queue.next_page();
            let waits_for_clock = next_page.is_some() || self.queue.len() > 0;
            times.extend(next_page);
            until.extend(self.store.max_sleep().filter(|_| waits_for_clock).map(|limit| now + limit));
        }
        if self.may_begin() {
            times.extend(self.next_due());
        }
        until.extend(times.into_iter().filter_map(|time| now.checked_add(self.store.time_until(time))));
        // The executor may be busy with tasks whose ends nobody reports here.
        until.extend(self.executors.pause().map(|pause| now + pause));
    }
}
