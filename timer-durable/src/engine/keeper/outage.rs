//! Joining the store again, and the calls that wait for it.
//!
//! A call that arrives before the keeper has joined again waits, and so does one whose batch was
//! not sent. On virtual time it fails, because nobody moves the time while the caller waits.

use super::super::collect::{Collection, Origin, Place};
use super::aside::MAX_LOCK_WAIT;
use super::{Keeper, Term};
use crate::store::{Micros, Store, StoreError};
use std::collections::HashSet;
use std::time::Instant;

impl<S: Store> Keeper<S> {
    /// Returns the error of a call that has waited in vain.
    pub(super) fn outage(&self) -> StoreError {
        StoreError::Failed(format!("the store has not been joined again: {}", self.failure))
    }

    /// Returns `true` if calls wait until the keeper has joined again.
    pub(super) fn may_wait(&self) -> bool {
        self.must_rejoin && !self.clock.is_virtual()
    }

    /// Becomes a new instance and empties the memory.
    pub(super) fn rejoin(&mut self) {
        self.term.finish();
        if self.paused_until.is_some_and(|until| until > self.present()) {
            return;
        }
        match self.store.rejoin() {
            Ok(()) => {
                self.figures.lock().rejoins += 1;
                self.figures.lock().membership = self.store.membership();
                tracing::warn!(timer = %self.settings.name, store = %self.store.describe(), "joined the store again");
                self.must_rejoin = false;
                self.paused_until = None;
                self.term = Term::new(self.shutdown.clone(), || self.store.lease_end());
                self.renew_heads();
                self.load_gates();
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Adds the calls that have waited to a batch. They come before all later messages about their
    /// timeouts. A call that has waited for too long fails. Returns the timeouts of the calls that
    /// are left to a later batch.
    pub(super) fn take_waiting(&mut self, collection: &mut Collection, now: Micros) -> HashSet<Place> {
        let (mut is_over, mut left) = (false, HashSet::new());
        if self.may_wait() && !self.shutdown.is_requested() {
            let until = self.present();
            while self.waiting.front().is_some_and(|(since, _)| until >= *since + MAX_LOCK_WAIT) {
                let Some((_, message)) = self.waiting.pop_front() else { break };
                message.fail(&self.outage());
            }
            return left;
        }
        for (since, message) in std::mem::take(&mut self.waiting) {
            if is_over
                || !collection.has_room(self.settings.max_batch)
                || self.conflict(collection, &left, &message).is_some()
            {
                left.extend(Place::of(&message));
                self.waiting.push_back((since, message));
            } else {
                is_over = message.may_take_long() && self.is_upkeep_due();
                self.take(collection, message, now);
            }
        }
        left
    }

    /// Fails the calls that were set aside and have waited for too long.
    pub(super) fn fail_calls_aside(&mut self) {
        let error = self.outage();
        let now = self.present();
        self.fail_locked(&error);
        for mut aside in std::mem::take(&mut self.aside) {
            let has_waited = aside.collection.waits_since().is_none_or(|since| now >= since + MAX_LOCK_WAIT);
            aside.collection = if !self.may_wait() || has_waited {
                aside.collection.fail_calls(&error)
            } else {
                aside.collection.fail_late_calls(now, MAX_LOCK_WAIT, &error)
            };
            if !aside.collection.is_empty() {
                self.aside.push(aside);
            }
        }
    }

    /// Keeps the calls of a batch that was not sent until the keeper has joined again. Returns the
    /// other operations of the batch.
    pub(super) fn keep_calls(&mut self, collection: Collection) -> Collection {
        let [calls, rest] = collection.divide(|_, origin| matches!(origin, Origin::Call(_)));
        if !calls.is_empty() {
            self.postpone(calls);
        }
        rest
    }

    /// Returns the time at which the first call that waits for the store fails.
    pub(super) fn next_failure(&self) -> Option<Instant> {
        if !self.may_wait() {
            return None;
        }
        let with_calls = self.aside.iter().filter(|aside| aside.collection.has_calls());
        let aside = with_calls.filter_map(|aside| aside.collection.waits_since());
        let first = aside.chain(self.locked_since()).chain(self.waiting.front().map(|(since, _)| *since)).min()?;
        Some(first + MAX_LOCK_WAIT)
    }
}
