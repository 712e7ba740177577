//! The rows of a memory store, and the execution of a batch.

use super::{Inner, Row};
use crate::TimeoutId;
use crate::store::{DeadLetter, Micros, Position};
use crate::transaction::{
    Answers, Attempt, Batch, Begun, Bury, Changed, Done, IfPending, Insert, Inserted, Requeue, Reset, Retry, Target,
};
use std::sync::Arc;

impl Inner {
    pub(super) fn present(&self) -> Micros {
        self.now.max(self.floor)
    }

    pub(super) fn execute(&mut self, batch: &Batch, epoch: u32) -> Answers {
        self.floor = self.present();
        Answers {
            inserts: batch.inserts.iter().map(|insert| self.insert(insert)).collect(),
            resets: batch.resets.iter().map(|reset| self.reset(reset)).collect(),
            cancels: batch.cancels.iter().map(|target| self.cancel(target)).collect(),
            dones: batch.dones.iter().map(|done| self.done(*done)).collect(),
            retries: batch.retries.iter().map(|retry| self.retry(*retry)).collect(),
            buries: batch.buries.iter().map(|bury| self.bury(bury)).collect(),
            requeues: batch.requeues.iter().map(|requeue| self.requeue(*requeue)).collect(),
            purges: batch.purges.iter().map(|id| self.purge(*id)).collect(),
            begins: batch.begins.iter().map(|id| self.begin(*id, epoch)).collect(),
        }
    }

    pub(super) fn insert(&mut self, insert: &Insert) -> Inserted {
        if self.rows.contains_key(&insert.id) || self.dead.contains_key(&insert.id) || self.ended.contains(&insert.id) {
            return Inserted::Exists;
        }
        if insert.id.repeatable_until(self.epoch).is_some_and(|until| until <= self.present()) {
            return Inserted::TooOld;
        }
        let mut replaced = None;
        let holder = insert.key.as_ref().and_then(|key| self.keys.get(&(insert.topic.clone(), key.clone())));
        if let Some(&holder) = holder {
            let Some(row) = self.rows.get(&holder) else { return Inserted::Kept(holder) };
            let due = match insert.if_pending {
                _ if row.begun.is_some() => row.insert.due,
                IfPending::Keep | IfPending::Refuse => row.insert.due,
                IfPending::Earlier => row.insert.due.min(insert.due),
                IfPending::Later => row.insert.due.max(insert.due),
                IfPending::Replace => {
                    self.end(holder);
                    replaced = Some(holder);
                    insert.due
                }
            };
            if replaced.is_none() {
                if due == self.rows[&holder].insert.due {
                    return Inserted::Kept(holder);
                }
                self.move_to(holder, due, None);
                return Inserted::Moved(holder, due);
            }
        }
        self.add(Row { insert: insert.clone(), attempt: 0, forgiven: 0, planned: None, begun: None });
        Inserted::Created { replaced }
    }

    pub(super) fn reset(&mut self, reset: &Reset) -> Changed {
        let changed = self.find_pending(&reset.target);
        if let Changed::Changed(id) = changed {
            self.move_to(id, reset.due, None);
        }
        changed
    }

    pub(super) fn cancel(&mut self, target: &Target) -> Changed {
        let changed = self.find_pending(target);
        if let Changed::Changed(id) = changed {
            self.end(id);
        }
        changed
    }

    pub(super) fn done(&mut self, done: Done) -> bool {
        let Some(row) = self.running(done.id, done.attempt) else { return false };
        match done.next {
            Some(next) => {
                row.begun = None;
                row.forgiven = row.attempt;
                self.move_to(done.id, next, None);
            }
            None => self.end(done.id),
        }
        true
    }

    pub(super) fn retry(&mut self, retry: Retry) -> bool {
        let Some(row) = self.running(retry.id, retry.attempt) else { return false };
        row.begun = None;
        row.forgiven += u32::from(retry.forgive);
        let planned = row.planned.unwrap_or(row.insert.due);
        self.move_to(retry.id, retry.due, Some(planned));
        true
    }

    pub(super) fn bury(&mut self, bury: &Bury) -> bool {
        let Some(row) = self.running(bury.id, bury.attempt).cloned() else { return false };
        let letter = DeadLetter {
            key: row.insert.key.clone(),
            attempt: row.attempt,
            format: row.insert.format,
            payload: row.insert.payload.clone(),
            died: self.present(),
            ..DeadLetter::new(bury.id, row.insert.due, &*row.insert.topic, &*bury.reason)
        };
        self.remove(bury.id);
        self.dead.insert(bury.id, letter);
        true
    }

    pub(super) fn requeue(&mut self, requeue: Requeue) -> bool {
        let Some(letter) = self.dead.remove(&requeue.id) else { return false };
        let mut insert = Insert::new(requeue.id, requeue.due, &*letter.topic);
        // A timeout with the same key may be pending by now.
        insert.key = letter.key.filter(|key| !self.keys.contains_key(&(insert.topic.clone(), key.clone())));
        insert.format = letter.format;
        insert.payload = letter.payload;
        self.add(Row { insert, attempt: letter.attempt, forgiven: letter.attempt, planned: None, begun: None });
        true
    }

    pub(super) fn begin(&mut self, id: TimeoutId, epoch: u32) -> Begun {
        let now = self.present();
        let Some(row) = self.rows.get_mut(&id) else { return Begun::Gone };
        if !row.is_pending(epoch) {
            return Begun::Gone;
        }
        if row.insert.due > now {
            return Begun::NotYet(row.insert.due);
        }
        row.attempt += 1;
        row.begun = Some(epoch);
        Begun::Attempt(Box::new(Attempt {
            forgiven: row.forgiven,
            planned: row.planned.unwrap_or(row.insert.due),
            key: row.insert.key.clone(),
            format: row.insert.format,
            payload: row.insert.payload.clone(),
            period: row.insert.period,
            max_lateness: row.insert.max_lateness,
            ..Attempt::new(row.attempt, row.insert.due, &*row.insert.topic)
        }))
    }

    pub(super) fn find_pending(&self, target: &Target) -> Changed {
        let id = match target {
            Target::Id(id) => Some(*id),
            Target::Key { topic, key } => self.keys.get(&(Arc::from(topic.as_str()), key.clone())).copied(),
        };
        match id.and_then(|id| Some((id, self.rows.get(&id)?))) {
            None => Changed::Unknown,
            Some((_, row)) if row.begun.is_some() => Changed::Running,
            Some((id, _)) => Changed::Changed(id),
        }
    }

    pub(super) fn running(&mut self, id: TimeoutId, attempt: u32) -> Option<&mut Row> {
        self.rows.get_mut(&id).filter(|row| row.begun.is_some() && row.attempt == attempt)
    }

    pub(super) fn add(&mut self, row: Row) {
        let id = row.insert.id;
        self.order.insert(Position { due: row.insert.due, id });
        if let Some(key) = &row.insert.key {
            self.keys.insert((row.insert.topic.clone(), key.clone()), id);
        }
        self.rows.insert(id, row);
    }

    fn purge(&mut self, id: TimeoutId) -> bool {
        let purged = self.dead.remove(&id).is_some();
        if purged {
            self.end(id);
        }
        purged
    }

    /// Ends the life of a timeout, and leaves a tombstone if somebody may insert its id again.
    fn end(&mut self, id: TimeoutId) {
        self.remove(id);
        if id.repeatable_until(self.epoch).is_some() {
            self.ended.insert(id);
        }
    }

    pub(super) fn remove(&mut self, id: TimeoutId) {
        let Some(row) = self.rows.remove(&id) else { return };
        self.order.remove(&Position { due: row.insert.due, id });
        if let Some(key) = row.insert.key {
            self.keys.remove(&(row.insert.topic, key));
        }
    }

    /// Changes the due time. A retry names the time for which the run is planned.
    pub(super) fn move_to(&mut self, id: TimeoutId, due: Micros, planned: Option<Micros>) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        self.order.remove(&Position { due: row.insert.due, id });
        row.insert.due = due;
        row.planned = planned;
        self.order.insert(Position { due, id });
    }
}
