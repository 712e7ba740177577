//! The inserts that met another row. They are executed again, and `IfPending` decides the effect on
//! the row that has their key.

use super::column::{InsertColumn, uuid};
use super::link::Fixed;
use super::query_error::QueryError;
use super::write::{Draft, REPETITIONS, Writer};
use std::collections::HashSet;
use std::time::Instant;
use timer_durable::store::Micros;
use timer_durable::transaction::{Insert, Operation, Outcome};
use timer_durable::{StoreError, TimeoutId};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

impl Writer<'_> {
    /// Executes the inserts that step 2 has not executed.
    ///
    /// They are sorted by key, so that two nodes lock the holders of their keys in the same order.
    pub(super) fn put(&mut self, batch: &[Operation], draft: &mut Draft, until: Instant) -> Result<(), StoreError> {
        let inserts = batch.iter().enumerate().filter_map(|(n, operation)| match operation {
            Operation::Insert(insert) => Some((n, insert)),
            _ => None,
        });
        let mut missed: Vec<(usize, &Insert)> = inserts.collect();
        missed.retain(|(n, _)| draft.outcomes[*n].is_none());
        missed.sort_unstable_by_key(|(_, insert)| (&insert.topic, &insert.key, insert.id));
        let mut divider = std::mem::take(self.divider);
        let divided = divider.execute(&missed, until, |part| self.put_part(batch, &draft.ids, part));
        *self.divider = divider;
        for ((n, _), outcome) in missed.into_iter().zip(divided?) {
            draft.outcomes[n] = Some(outcome.outcome());
        }
        Ok(())
    }

    /// Executes some inserts as one transaction. If another transaction has locked the holders of
    /// their keys, those are left out. If it is not known which insert waits for a lock, all are
    /// refused, so that they are divided.
    fn put_part(
        &mut self,
        batch: &[Operation],
        ids: &[Option<TimeoutId>],
        part: &[(usize, &Insert)],
    ) -> Result<Vec<Outcome>, StoreError> {
        let mut attempts = 0;
        let mut locked: HashSet<usize> = HashSet::new();
        loop {
            let free: Vec<(usize, &Insert)> = part.iter().copied().filter(|(n, _)| !locked.contains(n)).collect();
            match self.send_put(&free) {
                Err(error) if error.is_transient() && attempts < REPETITIONS => attempts += 1,
                Err(error) if error.is_locked() => {
                    let all: Vec<usize> = free.iter().map(|(n, _)| *n).collect();
                    let found = match self.find_locked(batch, ids, &all) {
                        // One insert alone is the one that waits. If the whole table is locked, the
                        // batch cannot fail, because step 2 was committed.
                        Ok(found) if found.is_empty() && all.len() == 1 => all,
                        Err(StoreError::Failed(_)) => all,
                        found => found?,
                    };
                    if found.is_empty() {
                        return Err(StoreError::Refused(error.to_string()));
                    }
                    locked.extend(found);
                }
                Ok(rows) if rows.is_empty() && !free.is_empty() => return Err(StoreError::Fenced),
                rows => {
                    let rows = rows?;
                    let mut executed = outcomes(free.len(), &rows);
                    let outcome = |(n, _): &(usize, &Insert)| match locked.contains(n) {
                        true => Outcome::Locked,
                        false => executed.next().unwrap_or(Outcome::Exists),
                    };
                    return Ok(part.iter().map(outcome).collect());
                }
            }
        }
    }

    /// Executes inserts in an open transaction. It has to be rolled back after an error.
    pub(super) fn put_all(&mut self, inserts: &[Operation]) -> Result<Vec<Outcome>, StoreError> {
        let inserts = inserts.iter().enumerate().filter_map(|(n, operation)| match operation {
            Operation::Insert(insert) => Some((n, insert)),
            _ => None,
        });
        let inserts: Vec<(usize, &Insert)> = inserts.collect();
        match self.send_put(&inserts) {
            Err(error) if error.is_locked() => Err(StoreError::Locked),
            Ok(rows) if rows.is_empty() && !inserts.is_empty() => Err(StoreError::Fenced),
            rows => Ok(outcomes(inserts.len(), &rows?).collect()),
        }
    }

    fn send_put(&mut self, missed: &[(usize, &Insert)]) -> Result<Vec<Row>, QueryError> {
        if missed.is_empty() {
            return Ok(Vec::new());
        }
        let inserts: Vec<&Insert> = missed.iter().map(|(_, insert)| *insert).collect();
        let shards = self.spread(inserts.len());
        let is_foreign = self.shards.is_empty();
        let ids: Vec<Uuid> = inserts.iter().map(|insert| uuid(insert.id)).collect();
        let columns = InsertColumn::ALL.map(|column| column.values(&inserts, self.instance as u32));
        let policies: Vec<&str> = inserts.iter().map(|insert| insert.if_pending.name()).collect();
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&self.instance, &is_foreign, &ids];
        parameters.extend(columns.iter().map(|column| &**column));
        let caps: Vec<Option<Micros>> = inserts.iter().map(|insert| insert.cap).collect();
        parameters.extend::<[&(dyn ToSql + Sync); 3]>([&policies, &shards, &caps]);
        self.link.query(Fixed::Put, &parameters)
    }
}

/// Returns the outcomes of `count` inserts. One without a row was executed before.
fn outcomes(count: usize, rows: &[Row]) -> impl Iterator<Item = Outcome> {
    let mut outcomes = vec![Outcome::Exists; count];
    for row in rows.iter().filter(|row| row.get::<_, i64>(0) > 0) {
        let n = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(0);
        let other = row.get::<_, Option<Uuid>>(2).map(|id| TimeoutId::from_u128(id.as_u128()));
        outcomes[n] = match (row.get::<_, &str>(1), other) {
            ("created", replaced) => Outcome::Created { replaced },
            ("kept", Some(holder)) => Outcome::Kept(holder),
            ("moved", Some(holder)) => Outcome::Moved(holder, row.get(3)),
            ("queued", Some(call)) => Outcome::Queued(call),
            ("too_old", _) => Outcome::TooOld,
            _ => Outcome::Exists,
        };
    }
    outcomes.into_iter()
}
