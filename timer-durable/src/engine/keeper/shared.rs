//! The steps that several parts of a turn take.

use super::Keeper;
use crate::figures::Figures;
use crate::lateness::DurableLateCause;
use crate::store::{Micros, StoreError};
use std::time::{Duration, Instant};

/// The time for which a turn writes. Other calls must not wait behind one statement after the other
/// that waits for a lock.
const MAX_WRITING: Duration = Duration::from_millis(100);

impl Keeper {
    /// Returns the current time on the store's clock.
    pub(crate) fn now(&self) -> Micros {
        self.store.now()
    }

    /// Ends the pause after a failure of the store, because a call or the driver asks for a turn.
    pub(crate) fn end_pause(&mut self) {
        self.failures.end_pause();
    }

    /// Moves the clock of a store on virtual time.
    pub(crate) fn advance_time(&mut self, by: Duration) {
        if let Err(error) = self.store.advance_time(by) {
            self.fail(&error);
        }
    }

    /// Returns the current time on the clock of the pauses.
    pub(super) fn present(&self) -> Instant {
        self.failures.clock().present(|| self.store.now())
    }

    pub(super) fn figures(&self) -> &Figures {
        self.record.figures()
    }

    /// Notes the cause of the time since the last note.
    pub(super) fn note(&mut self, cause: DurableLateCause) {
        self.record.note(cause, self.store.now());
    }

    /// Returns the number of timeouts that may begin in one batch.
    pub(super) fn free_places(&self) -> usize {
        self.attempts.free().min(self.queue.max_begins())
    }

    /// Returns `true` if attempts may begin.
    pub(super) fn may_begin(&self) -> bool {
        let free = self.attempts.free() > 0 && !self.executors.is_full();
        free && !self.stopping.has_begun() && self.store.may_begin()
    }

    /// Returns the instant of the store's next upkeep. A store in one process counts its rows in
    /// slices of real time. On virtual time it counts them all at once, except in a pause.
    pub(super) fn next_upkeep(&self) -> Option<Instant> {
        let next = self.store.next_upkeep()?;
        if !self.failures.clock().is_virtual() {
            return Some(next);
        }
        let now = self.present();
        Some(self.failures.paused_until(now).unwrap_or(now))
    }

    /// Returns the instant from which a turn begins no further transaction. A turn in which upkeep
    /// is due ends earlier.
    pub(super) fn deadline(&self) -> Instant {
        let until = self.present() + MAX_WRITING;
        self.next_upkeep().map_or(until, |next| until.min(next))
    }

    pub(super) fn is_upkeep_due(&self) -> bool {
        self.next_upkeep().is_some_and(|next| next <= self.present())
    }

    /// Notes a failure of the store. While another program has locked the store, each turn tries
    /// again without a pause, because the store waits a little for the lock.
    pub(super) fn fail(&mut self, error: &StoreError) {
        if *error == StoreError::Busy && !self.failures.clock().is_virtual() {
            return self.note_store_lock();
        }
        self.figures().lock().store_errors += 1;
        self.failures.add(error, self.present());
        if self.failures.must_rejoin() {
            self.executors.term().finish();
        }
        tracing::error!(timer = %self.settings.name, store = %self.store.describe(), %error, "the store has failed");
    }

    /// Notes that another program has locked the store.
    pub(super) fn note_store_lock(&mut self) {
        if self.failures.lock() {
            let timer = &self.settings.name;
            let store = self.store.describe();
            tracing::warn!(%timer, %store, "another program has locked the store");
        }
    }

    /// Reports that other transactions have locked timeouts.
    pub(super) fn report_locks(&self, timeouts: usize) {
        let timer = &self.settings.name;
        let store = self.store.describe();
        tracing::warn!(%timer, %store, timeouts, "another transaction has locked timeouts");
    }
}
