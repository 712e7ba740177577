//! The start and the ends of an attempt.

use super::{Rows, Run};
use crate::TimeoutId;
use crate::store::dead_letter::DeadLetter;
use crate::store::row::Row;
use crate::time::Micros;
use crate::transaction::{Insert, NextRun, Outcome};

impl<R: Rows> Run<'_, R> {
    pub(super) fn begin(&mut self, id: TimeoutId) -> Result<Outcome, R::Error> {
        let row = self.rows.get(id)?.filter(|row| row.is_pending(self.batch.epoch));
        let Some(mut row) = row else { return Ok(Outcome::NotFound) };
        if row.insert.due > self.now {
            return Ok(Outcome::NotYet(row.insert.due));
        }
        let queued = self.queued_beside(&row)?;
        row.queued = None;
        if let Some(queued) = queued {
            // The attempt of an earlier instance has ended, so the queued call takes effect first.
            self.batch.unsettled.push(queued.insert.id);
            row.begun = Row::ENDED;
            self.rows.put(&row)?;
            return Ok(Outcome::NotFound);
        }
        let attempt = row.begin(self.batch.epoch, self.now);
        self.rows.put(&row)?;
        Ok(Outcome::Begun(Box::new(attempt)))
    }

    pub(super) fn done(
        &mut self,
        id: TimeoutId,
        attempt: u32,
        next: Option<Micros>,
        then: &[Insert],
    ) -> Result<Outcome, R::Error> {
        let Some(row) = self.end_attempt(id, attempt)? else { return Ok(Outcome::NotFound) };
        match next {
            Some(next) => self.repeat(row, next)?,
            None => self.end(id)?,
        }
        for then in then {
            // The id may be too old for a caller, because the attempt may have taken long.
            if !self.is_used(then.id)? && matches!(self.insert_new(then)?, Outcome::Kept(_)) {
                then.report_taken_key();
            }
        }
        Ok(Outcome::Changed(id))
    }

    pub(super) fn retry(
        &mut self,
        id: TimeoutId,
        attempt: u32,
        due: Micros,
        forgive: bool,
    ) -> Result<Outcome, R::Error> {
        let Some(mut row) = self.end_attempt(id, attempt)? else { return Ok(Outcome::NotFound) };
        row.forgiven += u32::from(forgive);
        let planned = row.planned.unwrap_or(row.insert.due);
        self.move_to(row, due, Some(planned))?;
        Ok(Outcome::Changed(id))
    }

    pub(super) fn postpone(
        &mut self,
        id: TimeoutId,
        attempt: u32,
        due: Micros,
        payload: Option<&(i16, Vec<u8>)>,
    ) -> Result<Outcome, R::Error> {
        let Some(mut row) = self.end_attempt(id, attempt)? else { return Ok(Outcome::NotFound) };
        row.forgiven = row.attempt;
        if let Some((format, payload)) = payload {
            row.insert.format = *format;
            row.insert.payload.clone_from(payload);
        }
        // A periodic timeout keeps its phase.
        let planned = row.insert.period.map(|_| row.planned.unwrap_or(row.insert.due));
        self.move_to(row, due, planned)?;
        Ok(Outcome::Changed(id))
    }

    pub(super) fn bury(
        &mut self,
        id: TimeoutId,
        attempt: u32,
        reason: &str,
        next: Option<NextRun>,
    ) -> Result<Outcome, R::Error> {
        let Some(row) = self.end_attempt(id, attempt)? else { return Ok(Outcome::NotFound) };
        let insert = &row.insert;
        let letter = DeadLetter {
            key: insert.key.clone(),
            attempt: row.attempt,
            format: insert.format,
            payload: insert.payload.clone(),
            died: self.now,
            ..DeadLetter::new(next.map_or(id, |next| next.letter), insert.due, &*insert.topic, reason)
        };
        self.rows.put_letter(&letter)?;
        match next {
            Some(next) => self.repeat(row, next.due)?,
            // The dead letter has the id, so no tombstone is needed.
            None => self.rows.remove(id)?,
        }
        Ok(Outcome::Changed(id))
    }

    /// Returns the row of the attempt that is to end, if it is the last one and runs. The caller
    /// writes or removes the row.
    fn end_attempt(&mut self, id: TimeoutId, attempt: u32) -> Result<Option<Row>, R::Error> {
        let row = self.rows.get(id)?.filter(|row| row.is_running() && row.attempt == attempt);
        let Some(mut row) = row else { return Ok(None) };
        self.batch.unsettled.extend(row.queued.take());
        row.begun = Row::ENDED;
        Ok(Some(row))
    }

    /// Plans the next run of a periodic timeout and counts its attempts anew.
    fn repeat(&mut self, mut row: Row, next: Micros) -> Result<(), R::Error> {
        row.forgiven = row.attempt;
        self.move_to(row, next, None)
    }
}
