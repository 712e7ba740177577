//! Calls that are queued beside running attempts.
//!
//! A queued call is a row whose epoch never ends, so no instance begins it. The row of the attempt
//! contains its id. When the attempt ends, the call becomes the pending timeout of its key, or
//! changes the timeout that has the key by then.

use super::{Rows, Run};
use crate::store::row::Row;
use crate::transaction::{Insert, Outcome};

impl<R: Rows> Run<'_, R> {
    /// Queues an insert beside the attempt of a timeout, or lets it change the call that is queued
    /// there.
    pub(super) fn queue(&mut self, mut running: Row, insert: &Insert) -> Result<Outcome, R::Error> {
        if let Some(queued) = self.queued_beside(&running)? {
            let id = queued.insert.id;
            if self.affect(queued, insert)?.is_some() {
                return Ok(Outcome::Queued(id));
            }
        }
        self.rows.put(&Row { begun: Row::QUEUED, ..Row::new(insert.clone()) })?;
        running.queued = Some(insert.id);
        self.rows.put(&running)?;
        Ok(Outcome::Queued(insert.id))
    }

    /// Returns the call that is queued beside the attempt of a row.
    pub(super) fn queued_beside(&mut self, row: &Row) -> Result<Option<Row>, R::Error> {
        let queued = row.queued.map_or(Ok(None), |id| self.rows.get(id))?;
        Ok(queued.filter(Row::is_queued))
    }

    /// Lets queued calls take effect if their attempts have ended.
    pub(super) fn settle(&mut self) -> Result<(), R::Error> {
        for id in std::mem::take(&mut self.batch.unsettled) {
            let Some(mut call) = self.rows.get(id)?.filter(Row::is_queued) else { continue };
            call.insert.cap = call.planned;
            let holder = self.holder(&call.insert.topic, call.insert.key.as_deref())?;
            let holder_id = holder.as_ref().map(|holder| holder.insert.id);
            let outcome = holder.map_or(Ok(None), |holder| self.affect(holder, &call.insert))?;
            let changed = match holder_id.filter(|_| outcome.is_some()) {
                Some(holder) => {
                    self.end(id)?;
                    holder
                }
                None => {
                    call.begun = Row::ENDED;
                    self.rows.put(&call)?;
                    id
                }
            };
            let position = self.rows.get(changed)?.map(|row| row.position());
            self.batch.settled.extend(position.map(|position| (position, call.insert.topic.to_string())));
        }
        Ok(())
    }
}
