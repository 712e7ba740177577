//! The rows of a memory store, and the execution of a batch.

use super::{Inner, Row};
use crate::TimeoutId;
use crate::store::{DeadLetter, Micros, Position};
use crate::transaction::{Attempt, Insert, NextRun, Operation, Outcome, Target};
use std::sync::Arc;

impl Inner {
    pub(super) fn present(&self) -> Micros {
        self.now.max(self.floor)
    }

    pub(super) fn execute(&mut self, batch: &[Operation], epoch: u32) -> Vec<Outcome> {
        self.floor = self.present();
        let execute = |operation: &Operation| {
            let outcome = self.execute_one(operation, epoch);
            if !self.is_in_transaction {
                self.settle();
            }
            outcome
        };
        batch.iter().map(execute).collect()
    }

    fn execute_one(&mut self, operation: &Operation, epoch: u32) -> Outcome {
        match operation {
            Operation::Insert(insert) => self.insert(insert),
            Operation::Reset { target, due } => self.reset(target, *due),
            Operation::Cancel(target) => self.cancel(target),
            Operation::Done { id, attempt, next, then } => self.done(*id, *attempt, *next, then),
            Operation::Retry { id, attempt, due, forgive } => self.retry(*id, *attempt, *due, *forgive),
            Operation::Postpone { id, attempt, due, payload } => self.postpone(*id, *attempt, *due, payload.as_ref()),
            Operation::Bury { id, attempt, reason, next } => self.bury(*id, *attempt, reason, *next),
            Operation::Requeue { id, due, without_key } => self.requeue(*id, *due, *without_key),
            Operation::Purge(id) => self.purge(*id),
            Operation::Begin(id) => self.begin(*id, epoch),
        }
    }

    fn insert(&mut self, insert: &Insert) -> Outcome {
        if self.is_used(insert.id) {
            return Outcome::Exists;
        }
        if insert.id.repeatable_until(self.epoch).is_some_and(|until| until <= self.present()) {
            return Outcome::TooOld;
        }
        self.insert_new(insert)
    }

    fn is_used(&self, id: TimeoutId) -> bool {
        self.rows.contains_key(&id) || self.dead.contains_key(&id) || self.ended.contains(&id)
    }

    fn insert_new(&mut self, insert: &Insert) -> Outcome {
        let holder = insert.key.as_ref().and_then(|key| self.keys.get(&(insert.topic.clone(), key.clone())).copied());
        if let Some(outcome) = holder.and_then(|id| self.affect(id, insert)) {
            return outcome;
        }
        self.add(Row::new(insert.clone()));
        Outcome::Created { replaced: holder }
    }

    /// Gives a timeout or a queued call the contents of an insert.
    pub(super) fn update(&mut self, id: TimeoutId, new: &Insert) {
        if let Some(row) = self.rows.get_mut(&id) {
            let Insert { due, if_pending: rule, .. } = row.insert;
            let key = row.insert.key.take();
            row.insert = Insert { id, due, key, if_pending: new.if_pending.after(rule), ..new.clone() };
        }
    }

    fn reset(&mut self, target: &Target, due: Micros) -> Outcome {
        let found = self.find_pending(target);
        if let Outcome::Changed(id) | Outcome::Queued(id) = found {
            self.move_to(id, due, None);
        }
        found
    }

    fn cancel(&mut self, target: &Target) -> Outcome {
        let found = self.find_pending(target);
        let (Outcome::Changed(id) | Outcome::Queued(id)) = found else { return found };
        self.end(id);
        if *target == Target::Id(id) { Outcome::Changed(id) } else { found }
    }

    pub(super) fn done(&mut self, id: TimeoutId, attempt: u32, next: Option<Micros>, then: &[Insert]) -> Outcome {
        let Some(row) = self.running(id, attempt) else { return Outcome::NotFound };
        match next {
            Some(next) => {
                row.begun = None;
                row.forgiven = row.attempt;
                self.move_to(id, next, None);
            }
            None => self.end(id),
        }
        // The attempt may have taken longer than a caller may use an id.
        for then in then {
            if !self.is_used(then.id) && matches!(self.insert_new(then), Outcome::Kept(_)) {
                then.report_taken_key();
            }
        }
        Outcome::Changed(id)
    }

    fn retry(&mut self, id: TimeoutId, attempt: u32, due: Micros, forgive: bool) -> Outcome {
        let Some(row) = self.running(id, attempt) else { return Outcome::NotFound };
        row.begun = None;
        row.forgiven += u32::from(forgive);
        let planned = row.planned.unwrap_or(row.insert.due);
        self.move_to(id, due, Some(planned));
        Outcome::Changed(id)
    }

    fn postpone(&mut self, id: TimeoutId, attempt: u32, due: Micros, payload: Option<&(i16, Vec<u8>)>) -> Outcome {
        let Some(row) = self.running(id, attempt) else { return Outcome::NotFound };
        row.begun = None;
        row.forgiven = row.attempt;
        if let Some((format, payload)) = payload {
            row.insert.format = *format;
            row.insert.payload = payload.clone();
        }
        let planned = row.insert.period.map(|_| row.planned.unwrap_or(row.insert.due));
        self.move_to(id, due, planned);
        Outcome::Changed(id)
    }

    fn bury(&mut self, id: TimeoutId, attempt: u32, reason: &str, next: Option<NextRun>) -> Outcome {
        let Some(row) = self.running(id, attempt).cloned() else { return Outcome::NotFound };
        let letter = DeadLetter {
            key: row.insert.key.clone(),
            attempt: row.attempt,
            format: row.insert.format,
            payload: row.insert.payload.clone(),
            died: self.present(),
            ..DeadLetter::new(next.map_or(id, |next| next.letter), row.insert.due, &*row.insert.topic, reason)
        };
        match next {
            Some(next) => _ = self.done(id, attempt, Some(next.due), &[]),
            None => self.remove(id),
        }
        self.dead.insert(letter.id, letter);
        Outcome::Changed(id)
    }

    fn requeue(&mut self, id: TimeoutId, due: Micros, without_key: bool) -> Outcome {
        let Some(letter) = self.dead.get(&id) else { return Outcome::NotFound };
        let mut insert = Insert::new(id, due, &*letter.topic);
        insert.key = letter.key.clone().filter(|_| !without_key);
        let holder = insert.key.clone().and_then(|key| self.keys.get(&(insert.topic.clone(), key)));
        if let Some(holder) = holder {
            return Outcome::Kept(*holder);
        }
        let Some(letter) = self.dead.remove(&id) else { return Outcome::NotFound };
        insert.format = letter.format;
        insert.payload = letter.payload;
        let attempt = letter.attempt;
        self.add(Row { attempt, forgiven: attempt, ..Row::new(insert) });
        Outcome::Changed(id)
    }

    fn begin(&mut self, id: TimeoutId, epoch: u32) -> Outcome {
        let now = self.present();
        let queued = self.queued_beside(id);
        let Some(row) = self.rows.get_mut(&id) else { return Outcome::NotFound };
        if !row.is_pending(epoch) {
            return Outcome::NotFound;
        }
        if row.insert.due > now {
            return Outcome::NotYet(row.insert.due);
        }
        row.queued = None;
        if let Some(queued) = queued {
            // The attempt of an earlier instance has ended.
            row.begun = None;
            self.unsettled.push(queued);
            return Outcome::NotFound;
        }
        row.attempt += 1;
        row.begun = Some(epoch);
        row.started = now;
        Outcome::Begun(Box::new(Attempt {
            forgiven: row.forgiven,
            planned: row.planned.unwrap_or(row.insert.due),
            key: row.insert.key.clone(),
            format: row.insert.format,
            payload: row.insert.payload.clone(),
            period: row.insert.period,
            max_lateness: row.insert.max_lateness,
            traceparent: row.insert.traceparent.clone(),
            ..Attempt::new(row.attempt, row.insert.due, &*row.insert.topic)
        }))
    }

    pub(super) fn find(&self, target: &Target) -> Option<TimeoutId> {
        match target {
            Target::Id(id) => Some(*id),
            Target::Key { topic, key } => self.keys.get(&(Arc::from(topic.as_str()), key.clone())).copied(),
        }
    }

    fn find_pending(&self, target: &Target) -> Outcome {
        match self.find(target).and_then(|id| Some((id, self.rows.get(&id)?))) {
            None => Outcome::NotFound,
            Some((id, row)) if row.is_queued() => Outcome::Queued(id),
            Some((id, row)) if row.begun.is_some() => self.queued_beside(id).map_or(Outcome::Running, Outcome::Queued),
            Some((id, _)) => Outcome::Changed(id),
        }
    }

    /// Returns the timeout whose attempt is to end.
    pub(super) fn running(&mut self, id: TimeoutId, attempt: u32) -> Option<&mut Row> {
        let row = self.rows.get_mut(&id).filter(|row| row.begun.is_some() && row.attempt == attempt)?;
        self.unsettled.extend(row.queued.take());
        Some(row)
    }

    pub(super) fn add(&mut self, row: Row) {
        let id = row.insert.id;
        self.link(&row);
        if let Some(key) = row.insert.key.as_ref().filter(|_| !row.is_queued()) {
            self.keys.insert((row.insert.topic.clone(), key.clone()), id);
        }
        self.rows.insert(id, row);
    }

    fn purge(&mut self, id: TimeoutId) -> Outcome {
        if self.dead.remove(&id).is_none() {
            return Outcome::NotFound;
        }
        self.end(id);
        Outcome::Changed(id)
    }

    /// Ends the life of a timeout, and leaves a tombstone if somebody may insert its id again.
    pub(super) fn end(&mut self, id: TimeoutId) {
        self.remove(id);
        if id.repeatable_until(self.epoch).is_some() {
            self.ended.insert(id);
        }
    }

    fn remove(&mut self, id: TimeoutId) {
        let Some(row) = self.rows.remove(&id) else { return };
        self.unlink(&row);
        let is_holder = !row.is_queued();
        if let Some(key) = row.insert.key.filter(|_| is_holder) {
            self.keys.remove(&(row.insert.topic, key));
        }
    }

    /// Changes the due time. A retry names the time for which the run is planned.
    pub(super) fn move_to(&mut self, id: TimeoutId, due: Micros, planned: Option<Micros>) {
        let Some(mut row) = self.rows.remove(&id) else { return };
        self.unlink(&row);
        row.insert.due = due;
        row.planned = planned;
        self.link(&row);
        self.rows.insert(id, row);
    }

    /// Adds a timeout to the list of its topic.
    fn link(&mut self, row: &Row) {
        let position = Position { due: row.insert.due, id: row.insert.id };
        self.lists.entry(row.insert.topic.clone()).or_default().insert(position);
    }

    /// Removes a timeout from the list of its topic.
    fn unlink(&mut self, row: &Row) {
        let topic = &row.insert.topic;
        let Some(list) = self.lists.get_mut(topic) else { return };
        list.remove(&Position { due: row.insert.due, id: row.insert.id });
        if list.is_empty() {
            self.lists.remove(topic);
        }
    }
}
