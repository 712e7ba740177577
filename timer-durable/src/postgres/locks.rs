//! Rows that other transactions have locked.

use super::parts::uuid;
use super::write::{self, Writer};
use crate::TimeoutId;
use crate::store::StoreError;
use crate::transaction::{Batch, Insert, Target};
use std::collections::HashSet;
use uuid::Uuid;

/// If more timeouts than this are remembered, all of them are forgotten.
const MAX_REMEMBERED: usize = 10_000;

impl Writer<'_> {
    /// Returns `true` if one of the timeouts of the batch was locked at the last look.
    pub(super) fn expects_locks(&self, batch: &Batch) -> bool {
        let addressed = batch.resets.iter().map(|reset| &reset.target).chain(&batch.cancels);
        addressed.into_iter().any(|target| self.locked.contains(target))
            || ids(batch).any(|id| self.locked.contains(&Target::Id(id)))
            || batch.inserts.iter().any(|insert| self.locked.contains(&insert.target()))
    }

    /// Looks for locked rows of the batch.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`] with these rows, if there are any.
    pub(super) fn check_locks(
        &mut self,
        batch: &Batch,
        [resets, cancels]: &[Vec<Option<TimeoutId>>; 2],
    ) -> Result<(), StoreError> {
        let addressed = batch.resets.iter().map(|reset| &reset.target).zip(resets);
        let addressed = addressed.chain(batch.cancels.iter().zip(cancels));
        let mut rows: Vec<(TimeoutId, Target)> =
            addressed.filter_map(|(target, id)| Some(((*id)?, target.clone()))).collect();
        rows.extend(ids(batch).map(|id| (id, Target::Id(id))));
        rows.extend(self.rows_of_inserts(batch)?);
        let ids: Vec<Uuid> = rows.iter().map(|(id, _)| uuid(*id)).collect();
        let locked: HashSet<TimeoutId> = match self.link.locked(&ids) {
            Ok(found) => found.iter().map(|row| write::id(row, 0)).collect(),
            // The whole table is locked.
            Err(error) if error.is_locked() => HashSet::new(),
            Err(error) => return Err(error.into()),
        };
        if self.locked.len() > MAX_REMEMBERED {
            self.locked.clear();
        }
        let mut targets = Vec::new();
        for (id, target) in rows {
            if locked.contains(&id) {
                self.locked.insert(target.clone());
                targets.push(target);
            } else {
                self.locked.remove(&target);
            }
        }
        if targets.is_empty() { Ok(()) } else { Err(StoreError::Locked(targets)) }
    }

    /// Returns the rows that hold the keys or the ids of inserts.
    fn rows_of_inserts(&mut self, batch: &Batch) -> Result<Vec<(TimeoutId, Target)>, StoreError> {
        let inserts = || batch.inserts.iter().filter(|insert| insert.key.is_some());
        let (topics, keys): (Vec<&str>, Vec<&str>) =
            inserts().map(|insert| (&*insert.topic, insert.key.as_deref().unwrap_or_default())).unzip();
        let mut rows: Vec<(TimeoutId, Target)> =
            batch.inserts.iter().map(|insert| (insert.id, insert.target())).collect();
        if !keys.is_empty() {
            let keyed: Vec<&Insert> = inserts().collect();
            let found = self.ask(|link| link.holders(&[&topics, &keys]))?;
            rows.extend(found.iter().map(|row| {
                let n = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(0);
                (write::id(row, 1), keyed[n].target())
            }));
        }
        Ok(rows)
    }

    /// Returns an error if another transaction may be inserting the key or id of an insert. Until
    /// it commits, no statement can see its row.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`] if the rest of the batch can be written without them.
    /// [`StoreError::Refused`] if the batch has to be divided to find the one that waits.
    pub(super) fn suspect_inserts(&self, batch: &Batch) -> Result<(), StoreError> {
        let may_wait =
            |insert: &&Insert| insert.key.is_some() || insert.id.repeatable_until(self.instance as u32).is_some();
        let suspects: Vec<Target> = batch.inserts.iter().filter(may_wait).map(Insert::target).collect();
        match suspects.len() {
            0 => Ok(()),
            count if count > 1 && count == batch.len() => {
                Err(StoreError::Refused("another transaction inserts a timeout with the same key".to_owned()))
            }
            _ => Err(StoreError::Locked(suspects)),
        }
    }
}

/// Returns the ids that the parts of a batch name, except for those of calls with a target.
fn ids(batch: &Batch) -> impl Iterator<Item = TimeoutId> {
    let dones = batch.dones.iter().map(|part| part.id);
    let retries = batch.retries.iter().map(|part| part.id);
    let buries = batch.buries.iter().map(|part| part.id);
    let requeues = batch.requeues.iter().map(|part| part.id);
    let (purges, begins) = (batch.purges.iter().copied(), batch.begins.iter().copied());
    dones.chain(retries).chain(buries).chain(requeues).chain(purges).chain(begins)
}
