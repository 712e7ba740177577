//! Deleting dead letters by their age.

use super::Keeper;
use crate::store::{Micros, StoreError};
use crate::transaction::{Operation, Outcome};

/// The most dead letters of a topic that one commit deletes.
const MAX_PURGED: usize = 500;

impl Keeper {
    /// Deletes dead letters that their topics do not keep any longer, if a look for them is due.
    pub(super) fn purge_old(&mut self) {
        for (topic, time) in self.unwritten.retention_mut().begin_look(self.store.now()) {
            match self.purge_before(&topic, time) {
                Ok(0) => {}
                Ok(purged) => {
                    let timer = &self.settings.name;
                    tracing::info!(%timer, %topic, purged, "old dead letters were deleted");
                    if purged == MAX_PURGED {
                        self.unwritten.retention_mut().go_on();
                    }
                }
                Err(error) => return self.fail(&error),
            }
        }
    }

    fn purge_before(&mut self, topic: &str, time: Micros) -> Result<usize, StoreError> {
        let old = self.store.dead_before(topic, time, MAX_PURGED)?;
        if old.is_empty() {
            return Ok(0);
        }
        let batch: Vec<Operation> = old.into_iter().map(Operation::Purge).collect();
        let outcomes = self.store.write(&batch, self.deadline())?;
        Ok(outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Changed(_))).count())
    }
}
