//! The lease of an instance: keeping it, joining the store again, and leaving it.

use super::Keeper;
use crate::TimeoutId;
use crate::store::SHARDS;

impl Keeper {
    /// Becomes a new instance and empties the memory.
    pub(super) fn rejoin(&mut self) {
        self.executors.term().finish();
        if self.failures.paused_until(self.present()).is_some() {
            return;
        }
        match self.store.rejoin() {
            Ok(()) => {
                self.figures().lock().rejoins += 1;
                self.note_membership();
                tracing::warn!(timer = %self.settings.name, store = %self.store.describe(), "joined the store again");
                self.failures.rejoin();
                self.attempts.set_instance(self.store.instance());
                self.executors.begin_term(|| self.store.lease_end());
                self.queue.renew(self.store.now());
                self.load_pauses();
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Publishes the place of this instance among the others, and takes its share of their rates.
    pub(super) fn note_membership(&mut self) {
        let membership = self.store.membership();
        let shards = membership.as_ref().map_or(SHARDS, |membership| membership.shards);
        self.queue.set_share(shards, self.store.now());
        self.figures().lock().membership = membership;
    }

    /// Renews the lease and collects the writes of others.
    pub(super) fn keep_up(&mut self) {
        let running: Vec<TimeoutId> = self.attempts.ids().collect();
        let upkeep = self.store.upkeep(&running);
        self.note_membership();
        self.executors.term().set_end(|| self.store.lease_end());
        match upkeep {
            Ok(upkeep) => {
                if upkeep.shards_gained {
                    let now = self.store.now();
                    self.queue.expire(now);
                    self.record.gain_shards(self.queue.due_ids(), now);
                    self.queue.renew(now);
                }
                if upkeep.shards_gained || upkeep.pauses_changed {
                    self.load_pauses();
                }
                let now = self.store.now();
                // A call of the same turn may have moved a timeout again after it was reported.
                for (position, topic) in upkeep.foreign {
                    self.queue.put_earlier(position, Some(&topic), now);
                }
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Puts the timeouts back whose handlers have not started. Otherwise each stop of a busy timer
    /// would use up one of their attempts.
    pub(super) fn put_back(&mut self) {
        let batch = self.attempts.put_back(self.store.now());
        if self.failures.must_rejoin() || batch.is_empty() {
            return;
        }
        if let Err(error) = self.store.write(&batch, self.deadline()) {
            let timer = &self.settings.name;
            let store = self.store.describe();
            tracing::warn!(%timer, %store, %error, "the attempts of handlers that have not started count");
        }
    }

    /// Hands the store back. Returns `false` if that fails.
    pub(super) fn leave(&mut self) -> bool {
        let Err(error) = self.store.leave() else { return true };
        let timer = &self.settings.name;
        let store = self.store.describe();
        tracing::warn!(%timer, %store, %error, "the store could not be handed back");
        false
    }
}
