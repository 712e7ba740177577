//! The lease, and joining the store again.
//!
//! A call that arrives before the keeper has joined again waits, and so does one whose batch was
//! not sent. On virtual time it fails, because nobody moves the time while the caller waits.

use super::{Keeper, Term};
use crate::TimeoutId;
use crate::store::Store;

impl<S: Store> Keeper<S> {
    /// Becomes a new instance and empties the memory.
    pub(super) fn rejoin(&mut self) {
        self.term.finish();
        if self.failures.paused_until(self.present()).is_some() {
            return;
        }
        match self.store.rejoin() {
            Ok(()) => {
                self.figures.lock().rejoins += 1;
                self.figures.lock().membership = self.store.membership();
                tracing::warn!(timer = %self.settings.name, store = %self.store.describe(), "joined the store again");
                self.failures.rejoin();
                self.term = Term::new(self.shutdown.clone(), || self.store.lease_end());
                self.renew_heads();
                self.load_gates();
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Renews the lease and collects the writes of others.
    pub(super) fn keep_up(&mut self) {
        let running: Vec<TimeoutId> = self.running.keys().copied().collect();
        let upkeep = self.store.upkeep(&running);
        self.figures.lock().membership = self.store.membership();
        self.term.set_end(|| self.store.lease_end());
        match upkeep {
            Ok(upkeep) => {
                if upkeep.shards_gained {
                    self.note_gain();
                    self.renew_heads();
                }
                if upkeep.shards_gained || upkeep.pauses_changed {
                    self.load_gates();
                }
                if let Err(error) = self.put_foreign(upkeep.foreign) {
                    // Nothing else tells of these timeouts.
                    self.clear_heads();
                    self.fail(&error);
                }
            }
            Err(error) => self.fail(&error),
        }
    }
}
