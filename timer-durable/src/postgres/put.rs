//! The inserts that met another row. They are executed again, and `IfPending` decides the effect on
//! the row that has their key.

use super::parts::uuid;
use super::query_error::QueryError;
use super::write::{Draft, REPETITIONS, Writer};
use crate::TimeoutId;
use crate::store::{Micros, StoreError};
use crate::transaction::{Batch, IfPending, Insert, Inserted, Target};
use std::collections::HashSet;
use std::time::{Duration, Instant};
use tokio_postgres::Row;
use uuid::Uuid;

/// The time for which inserts that wait for locks are divided.
const DIVIDING: Duration = Duration::from_millis(100);

impl Writer<'_> {
    /// Executes the inserts that step 2 has not executed.
    ///
    /// They are sorted by key, so that two nodes lock the holders of their keys in the same order.
    pub(super) fn put(&mut self, batch: &Batch, draft: &mut Draft) -> Result<(), StoreError> {
        let mut missed: Vec<usize> = (0..batch.inserts.len()).filter(|n| draft.inserts[*n].is_none()).collect();
        missed.sort_unstable_by_key(|n| {
            let insert = &batch.inserts[*n];
            (&insert.topic, &insert.key, insert.id)
        });
        self.put_some(batch, draft, &missed, Instant::now() + DIVIDING)
    }

    /// Executes some inserts as one transaction. If another transaction has locked the holders of
    /// their keys, those are left out. If the database refuses one of them, the halves are executed
    /// one after the other, and only that insert is not executed. After `until`, all that wait for
    /// a lock are left out.
    fn put_some(
        &mut self,
        batch: &Batch,
        draft: &mut Draft,
        missed: &[usize],
        until: Instant,
    ) -> Result<(), StoreError> {
        let mut attempts = 0;
        let rows = loop {
            match self.send_put(batch, missed) {
                Err(error) if error.is_transient() && attempts < REPETITIONS => attempts += 1,
                Err(error) if error.is_locked() || error.is_refusal() => match missed {
                    [n] => {
                        let answer =
                            if error.is_locked() { Inserted::Locked } else { Inserted::Refused(error.to_string()) };
                        draft.inserts[*n] = Some(answer);
                        return Ok(());
                    }
                    missed => {
                        let (locked, free): (Vec<usize>, Vec<usize>) = if !error.is_locked() {
                            (Vec::new(), missed.to_vec())
                        } else if Instant::now() >= until {
                            (missed.to_vec(), Vec::new())
                        } else {
                            let targets = self.locked_of(batch, missed)?;
                            missed.iter().partition(|n| targets.contains(&batch.inserts[**n].target()))
                        };
                        if !locked.is_empty() {
                            locked.iter().for_each(|n| draft.inserts[*n] = Some(Inserted::Locked));
                            return self.put_some(batch, draft, &free, until);
                        }
                        let (first, second) = free.split_at(free.len() / 2);
                        self.put_some(batch, draft, first, until)?;
                        return self.put_some(batch, draft, second, until);
                    }
                },
                result => break result?,
            }
        };
        if rows.is_empty() && !missed.is_empty() {
            return Err(StoreError::Fenced);
        }
        for row in rows.iter().filter(|row| row.get::<_, i64>(0) > 0) {
            let n = missed[usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(0)];
            let other = row.get::<_, Option<Uuid>>(2).map(|id| TimeoutId::from_u128(id.as_u128()));
            draft.inserts[n] = Some(match (row.get::<_, &str>(1), other) {
                ("created", replaced) => Inserted::Created { replaced },
                ("kept", Some(holder)) => Inserted::Kept(holder),
                ("moved", Some(holder)) => Inserted::Moved(holder, row.get(3)),
                ("too_old", _) => Inserted::TooOld,
                _ => Inserted::Exists,
            });
        }
        Ok(())
    }

    /// Returns those of some inserts whose rows another transaction has locked.
    fn locked_of(&mut self, batch: &Batch, missed: &[usize]) -> Result<HashSet<Target>, StoreError> {
        let inserts = missed.iter().map(|n| batch.inserts[*n].clone()).collect();
        match self.check_locks(&Batch { inserts, ..Batch::default() }, &Default::default()) {
            Ok(()) => Ok(HashSet::new()),
            Err(StoreError::Locked(targets)) => Ok(targets.into_iter().collect()),
            // The whole table is locked. Step 2 was committed, so the batch cannot fail.
            Err(StoreError::Failed(_)) => Ok(missed.iter().map(|n| batch.inserts[*n].target()).collect()),
            Err(error) => Err(error),
        }
    }

    fn send_put(&mut self, batch: &Batch, missed: &[usize]) -> Result<Vec<Row>, QueryError> {
        if missed.is_empty() {
            return Ok(Vec::new());
        }
        let inserts: Vec<&Insert> = missed.iter().map(|n| &batch.inserts[*n]).collect();
        let shards = self.spread(inserts.len());
        let is_foreign = self.shards.is_empty();
        let column =
            |value: &dyn Fn(&Insert) -> Option<Micros>| inserts.iter().map(|insert| value(insert)).collect::<Vec<_>>();
        let ids: Vec<Uuid> = inserts.iter().map(|insert| uuid(insert.id)).collect();
        let dues: Vec<Micros> = inserts.iter().map(|insert| insert.due).collect();
        let topics: Vec<&str> = inserts.iter().map(|insert| &*insert.topic).collect();
        let keys: Vec<Option<&str>> = inserts.iter().map(|insert| insert.key.as_deref()).collect();
        let policies: Vec<&str> = inserts.iter().map(|insert| name(insert.if_pending)).collect();
        let formats: Vec<i16> = inserts.iter().map(|insert| insert.format).collect();
        let payloads: Vec<&[u8]> = inserts.iter().map(|insert| &*insert.payload).collect();
        let periods = column(&|insert| insert.period);
        let limits = column(&|insert| insert.max_lateness);
        let untils = column(&|insert| insert.id.repeatable_until(self.instance as u32));
        self.link.put(&[
            &self.instance,
            &is_foreign,
            &ids,
            &dues,
            &topics,
            &keys,
            &policies,
            &formats,
            &payloads,
            &periods,
            &limits,
            &untils,
            &shards,
        ])
    }
}

fn name(if_pending: IfPending) -> &'static str {
    match if_pending {
        IfPending::Keep => "keep",
        IfPending::Replace => "replace",
        IfPending::Earlier => "earlier",
        IfPending::Later => "later",
        IfPending::Refuse => "refuse",
    }
}
