//! Calls that are queued beside the attempts of a memory store.
//!
//! A queued call is a row with an epoch that never ends, so nothing begins it. It has its key
//! without being the holder of the key. The row of the attempt names it.

use super::{Inner, Row};
use crate::TimeoutId;
use crate::store::Position;
use crate::transaction::{Insert, KeyEffect, Outcome};

/// The epoch of a queued call.
const NEVER: u32 = u32::MAX;

impl Row {
    pub(super) fn is_queued(&self) -> bool {
        self.begun == Some(NEVER)
    }
}

impl Inner {
    /// Lets an insert have its effect on a timeout or on a queued call. Returns `None` if the
    /// insert has ended it and takes its place.
    pub(super) fn affect(&mut self, id: TimeoutId, insert: &Insert) -> Option<Outcome> {
        let holder = self.rows.get(&id)?.as_holder();
        match insert.effect_on(&holder, self.present()) {
            KeyEffect::Kept => Some(Outcome::Kept(id)),
            KeyEffect::Queued => Some(Outcome::Queued(self.queue(id, insert))),
            KeyEffect::Moved { due } => {
                self.move_to(id, due, None);
                Some(Outcome::Moved(id, due))
            }
            KeyEffect::Updated { due, planned } => {
                self.update(id, insert);
                self.move_to(id, due, planned);
                Some(Outcome::Moved(id, due))
            }
            KeyEffect::Replaced => {
                self.end(id);
                None
            }
        }
    }

    /// Queues an insert beside the attempt of a timeout. Returns the id of the call that is queued
    /// then.
    fn queue(&mut self, running: TimeoutId, insert: &Insert) -> TimeoutId {
        let queued = self.queued_beside(running);
        if let Some(queued) = queued.filter(|queued| self.affect(*queued, insert).is_some()) {
            return queued;
        }
        self.add(Row { begun: Some(NEVER), ..Row::new(insert.clone()) });
        if let Some(row) = self.rows.get_mut(&running) {
            row.queued = Some(insert.id);
        }
        insert.id
    }

    /// Returns the call that is queued beside the attempt of a timeout.
    pub(super) fn queued_beside(&self, id: TimeoutId) -> Option<TimeoutId> {
        let queued = self.rows.get(&id)?.queued?;
        self.rows.get(&queued).filter(|row| row.is_queued()).map(|_| queued)
    }

    /// Lets the calls have their effect whose attempts have ended.
    pub(super) fn settle(&mut self) {
        for id in std::mem::take(&mut self.unsettled) {
            let Some(row) = self.rows.get(&id).filter(|row| row.is_queued()) else { continue };
            let call = Insert { cap: row.planned, ..row.insert.clone() };
            let name = (call.topic.clone(), call.key.clone().unwrap_or_default());
            let holder = self.keys.get(&name).copied();
            let kept = holder.filter(|holder| self.affect(*holder, &call).is_some());
            match kept {
                Some(_) => self.end(id),
                None => {
                    self.keys.insert(name, id);
                    if let Some(row) = self.rows.get_mut(&id) {
                        row.begun = None;
                    }
                }
            }
            let id = kept.unwrap_or(id);
            let position = |row: &Row| (Position { due: row.insert.due, id }, call.topic.to_string());
            self.settled.extend(self.rows.get(&id).map(position));
        }
    }
}
