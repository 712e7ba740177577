//! The operations that callers ask for.

use super::{Rows, Run};
use crate::TimeoutId;
use crate::store::row::Row;
use crate::time::Micros;
use crate::transaction::{Insert, KeyEffect, Outcome, Target};

impl<R: Rows> Run<'_, R> {
    pub(super) fn insert(&mut self, insert: &Insert) -> Result<Outcome, R::Error> {
        if self.is_used(insert.id)? {
            return Ok(Outcome::Exists);
        }
        if insert.id.repeatable_until(self.instance()).is_some_and(|until| until <= self.now) {
            return Ok(Outcome::TooOld);
        }
        self.insert_new(insert)
    }

    /// Returns `true` if the store has had a timeout with this id, as far as it knows.
    pub(super) fn is_used(&mut self, id: TimeoutId) -> Result<bool, R::Error> {
        Ok(self.rows.get(id)?.is_some() || self.rows.letter(id)?.is_some() || self.rows.has_tombstone(id)?)
    }

    /// Executes an insert whose id is new.
    pub(super) fn insert_new(&mut self, insert: &Insert) -> Result<Outcome, R::Error> {
        let holder = self.holder(&insert.topic, insert.key.as_deref())?;
        let replaced = holder.as_ref().map(|holder| holder.insert.id);
        let outcome = holder.map_or(Ok(None), |holder| self.affect(holder, insert))?;
        if let Some(outcome) = outcome {
            return Ok(outcome);
        }
        self.rows.put(&Row::new(insert.clone()))?;
        Ok(Outcome::Created { replaced })
    }

    /// Applies an insert to the timeout that has its key, or to the call that is queued. Returns
    /// `None` if the insert has ended that row and takes its place.
    pub(super) fn affect(&mut self, mut holder: Row, insert: &Insert) -> Result<Option<Outcome>, R::Error> {
        let id = holder.insert.id;
        match insert.effect_on(&holder.as_holder(), self.now) {
            KeyEffect::Kept => Ok(Some(Outcome::Kept(id))),
            KeyEffect::Queued => self.queue(holder, insert).map(Some),
            KeyEffect::Moved { due } => {
                self.move_to(holder, due, None)?;
                Ok(Some(Outcome::Moved(id, due)))
            }
            KeyEffect::Updated { due, planned } => {
                holder.update(insert, due, planned);
                self.rows.put(&holder)?;
                Ok(Some(Outcome::Moved(id, due)))
            }
            KeyEffect::Replaced => {
                self.end(id)?;
                Ok(None)
            }
        }
    }

    pub(super) fn reset(&mut self, target: &Target, due: Micros) -> Result<Outcome, R::Error> {
        let (outcome, row) = self.find(target)?;
        if let Some(row) = row {
            self.move_to(row, due, None)?;
        }
        Ok(outcome)
    }

    pub(super) fn cancel(&mut self, target: &Target) -> Result<Outcome, R::Error> {
        let (outcome, row) = self.find(target)?;
        let Some(id) = row.map(|row| row.insert.id) else { return Ok(outcome) };
        self.end(id)?;
        Ok(if *target == Target::Id(id) { Outcome::Changed(id) } else { outcome })
    }

    /// Returns the row that a reset or a cancel of `target` changes, with the outcome.
    fn find(&mut self, target: &Target) -> Result<(Outcome, Option<Row>), R::Error> {
        let row = match target {
            Target::Id(id) => self.rows.get(*id)?,
            Target::Key { topic, key } => self.rows.holder(topic, key)?,
        };
        let Some(row) = row else { return Ok((Outcome::NotFound, None)) };
        let found = if row.is_running() { self.queued_beside(&row)? } else { Some(row) };
        let outcome = match &found {
            None => Outcome::Running,
            Some(row) if row.is_queued() => Outcome::Queued(row.insert.id),
            Some(row) => Outcome::Changed(row.insert.id),
        };
        Ok((outcome, found))
    }

    pub(super) fn requeue(&mut self, id: TimeoutId, due: Micros, without_key: bool) -> Result<Outcome, R::Error> {
        let Some(letter) = self.rows.letter(id)? else { return Ok(Outcome::NotFound) };
        let insert = Insert {
            key: letter.key.filter(|_| !without_key),
            format: letter.format,
            payload: letter.payload,
            ..Insert::new(id, due, letter.topic)
        };
        if let Some(holder) = self.holder(&insert.topic, insert.key.as_deref())? {
            return Ok(Outcome::Kept(holder.insert.id));
        }
        self.rows.remove_letter(id)?;
        self.rows.put(&Row { attempt: letter.attempt, forgiven: letter.attempt, ..Row::new(insert) })?;
        Ok(Outcome::Changed(id))
    }

    pub(super) fn purge(&mut self, id: TimeoutId) -> Result<Outcome, R::Error> {
        if self.rows.letter(id)?.is_none() {
            return Ok(Outcome::NotFound);
        }
        self.rows.remove_letter(id)?;
        self.end(id)?;
        Ok(Outcome::Changed(id))
    }
}
