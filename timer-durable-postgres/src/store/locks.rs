//! Rows that other transactions have locked.

use super::column::uuid;
use super::link::Fixed;
use super::write::{self, Writer};
use std::collections::HashSet;
use timer_durable::transaction::{Operation, Target};
use timer_durable::{StoreError, TimeoutId};
use uuid::Uuid;

/// If more timeouts than this are remembered, all of them are forgotten.
const MAX_REMEMBERED: usize = 10_000;

impl Writer<'_> {
    /// Returns `true` if a timeout of these operations was locked at the last look.
    pub(super) fn expects_locks(&self, batch: &[Operation], among: &[usize]) -> bool {
        among.iter().filter_map(|n| target(&batch[*n])).any(|target| self.locked.contains(&target))
    }

    /// Returns those of some operations whose rows other transactions have locked.
    pub(super) fn find_locked(
        &mut self,
        batch: &[Operation],
        ids: &[Option<TimeoutId>],
        among: &[usize],
    ) -> Result<Vec<usize>, StoreError> {
        let mut rows: Vec<(TimeoutId, usize)> = among.iter().filter_map(|n| Some((ids[*n]?, *n))).collect();
        rows.extend(self.holders_of_inserts(batch, among)?);
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
        among.iter().filter_map(|n| target(&batch[*n])).for_each(|target| _ = self.locked.remove(&target));
        let mut found: Vec<usize> = rows.iter().filter(|(id, _)| locked.contains(id)).map(|(_, n)| *n).collect();
        found.sort_unstable();
        found.dedup();
        self.locked.extend(found.iter().filter_map(|n| target(&batch[*n])));
        Ok(found)
    }

    /// Returns the rows that hold the keys of inserts.
    fn holders_of_inserts(
        &mut self,
        batch: &[Operation],
        among: &[usize],
    ) -> Result<Vec<(TimeoutId, usize)>, StoreError> {
        let inserts = among.iter().filter(|n| matches!(batch[**n], Operation::Insert(_)));
        let keyed = inserts.filter_map(|n| Some((*n, batch[*n].key()?)));
        let (places, (topics, keys)): (Vec<usize>, (Vec<&str>, Vec<&str>)) = keyed.unzip();
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.ask(|link| link.query(Fixed::Holders, &[&topics, &keys]))?;
        let holder = |row: &tokio_postgres::Row| {
            let n = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(0);
            (write::id(row, 1), places[n])
        };
        Ok(found.iter().map(holder).collect())
    }

    /// Returns the inserts whose key or id another transaction may be inserting. Until it commits,
    /// no statement can see its row.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] if there is nothing else, so that the batch has to be divided to
    /// find the insert that waits.
    pub(super) fn suspect_inserts(&self, batch: &[Operation], among: &[usize]) -> Result<Vec<usize>, StoreError> {
        let may_wait = |n: &usize| match &batch[*n] {
            Operation::Insert(insert) => {
                insert.key.is_some() || insert.id.repeatable_until(self.instance as u32).is_some()
            }
            _ => false,
        };
        let suspects: Vec<usize> = among.iter().copied().filter(may_wait).collect();
        if suspects.len() > 1 && suspects.len() == among.len() {
            return Err(StoreError::Refused("another transaction inserts a timeout with the same key".to_owned()));
        }
        Ok(suspects)
    }
}

/// Returns the key of an operation, or its id if it names no key.
fn target(operation: &Operation) -> Option<Target> {
    match operation.key() {
        Some((topic, key)) => Some(Target::Key { topic: topic.to_owned(), key: key.to_owned() }),
        None => operation.id().map(Target::Id),
    }
}
