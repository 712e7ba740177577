//! Steps 1 to 3 of a turn: collecting a batch, writing it, and applying the answers.

use super::super::Message;
use super::super::collect::{Collection, Place};
use super::Keeper;
use super::MIN_PAUSE;
use crate::error::Error;
use crate::store::{Micros, Position, Store, StoreError};
use crate::transaction::{Answers, Batch, Begun, Changed, Insert, Inserted};
use std::time::Instant;
use timer_executor::Task;

impl<S: Store> Keeper<S> {
    /// Collects messages and due timeouts into a batch.
    pub(super) fn collect(&mut self, first: Option<Message>) -> Collection {
        let mut collection = Collection::default();
        // Messages that arrive from here on are for the next turn. Otherwise work of the user could
        // keep this turn from ending, and the delay of a late message would count from a time
        // before its call.
        let mut waiting = self.inbox.len();
        let now = self.store.now();
        for ended in std::mem::take(&mut self.unwritten) {
            self.add_end(&mut collection, ended, now);
        }
        // Each timeout that has waiting messages contributes one of them.
        for _ in 0..self.held.places() {
            if !collection.has_room(self.settings.max_batch) {
                break;
            }
            let Some((place, message)) = self.held.pop() else { break };
            if self.conflict(&collection, &message).is_some() {
                self.held.put_back(place, message);
            } else {
                self.take(&mut collection, message, now);
            }
        }
        let mut first = first;
        while collection.has_room(self.settings.max_batch) || first.is_some() {
            let next = first.take().or_else(|| {
                waiting = waiting.checked_sub(1)?;
                self.inbox.try_recv().ok()
            });
            let Some(message) = next else { break };
            let may_take_long = matches!(message, Message::Visit(_) | Message::Complete { .. });
            match self.conflict(&collection, &message).or_else(|| self.held.place_of(&message)) {
                Some(place) => self.held.push(place, message),
                None => self.take(&mut collection, message, now),
            }
            // The lease must not end behind one such message after the other.
            if may_take_long && self.store.next_upkeep().is_some_and(|next| next <= Instant::now()) {
                break;
            }
        }
        self.overdue.expire(now);
        self.current.expire(now);
        let paused = self.paused_until.is_some_and(|until| until > Instant::now());
        if self.may_begin() && !self.must_rejoin && !paused {
            self.add_begins(&mut collection, now);
        }
        collection
    }

    /// Returns the place at which a message has to wait for a batch that was not written yet.
    fn conflict(&self, collection: &Collection, message: &Message) -> Option<Place> {
        collection.conflict(message).or_else(|| self.conflict_aside(message))
    }

    /// Adds a message to a batch that has nothing about the same timeout.
    fn take(&mut self, collection: &mut Collection, message: Message, now: Micros) {
        match message {
            Message::Call(_, reply) if self.stopping.is_some() => reply.send(Err(Error::Stopped)),
            Message::Call(_, reply) if self.must_rejoin => {
                let why = "the store cannot be reached".to_owned();
                reply.send(Err(Error::Store(StoreError::Failed(why))));
            }
            Message::Call(request, reply) => collection.add(request, reply, now, self.store.instance()),
            Message::Ended(ended) => self.add_end(collection, ended, now),
            Message::Complete { id, attempt, work, reply } => {
                reply.send(self.complete(id, attempt, work, now));
            }
            Message::Visit(visit) => visit(&mut self.store),
            Message::Stop { until, reply } => self.begin_stop(until, reply),
        }
    }

    /// Writes a batch and applies the answers. If the store refuses a part of it, its halves are
    /// written one after the other. After `until` they wait for the next turn.
    pub(super) fn write(&mut self, mut collection: Collection, until: Instant) {
        let began = Instant::now();
        let result = self.store.write(&collection.batch);
        self.figures.commit_time.record(began.elapsed());
        match result {
            Ok(mut answers) => {
                self.figures.commits.add(1);
                self.figures.operations.add(collection.batch.len() as u64);
                self.pause = MIN_PAUSE.min(self.settings.max_pause);
                self.paused_until = None;
                self.adapt_begins(&answers.begins);
                if answers.inserts.contains(&Inserted::Locked) {
                    let [locked, rest] = collection.take_locked(&mut answers);
                    let keys = locked.batch.inserts.iter().map(Insert::target).collect();
                    self.wait_for_locks(locked, keys);
                    collection = rest;
                }
                let tasks = self.apply(&collection.batch, &mut answers);
                // Callers come first, because the executor may take its time.
                collection.calls.into_iter().for_each(|call| call.answer(&answers));
                self.hand_over(tasks);
            }
            Err(StoreError::Refused(_)) if collection.batch.len() > 1 => {
                for half in collection.split() {
                    let is_over = self.must_rejoin || Instant::now() >= until;
                    if is_over { self.postpone(half) } else { self.write(half, until) }
                }
            }
            // Other calls go on without the pause that follows a failure.
            Err(error @ StoreError::Refused(_)) if !collection.calls.is_empty() => {
                self.figures.store_errors.add(1);
                tracing::warn!(timer = %self.settings.name, store = %self.store.describe(), %error, "a call was refused");
                collection.calls.into_iter().for_each(|call| call.fail(&error));
            }
            Err(error @ StoreError::Refused(_)) => self.set_refused_aside(collection, &error),
            Err(StoreError::Locked(locked)) => self.write_unlocked(collection, locked, until),
            Err(error) => self.give_back(collection, &error),
        }
    }

    /// Keeps the ends and begins of a batch that was not written, and fails its calls.
    pub(super) fn give_back(&mut self, collection: Collection, error: &StoreError) {
        self.unwritten.extend(collection.ends);
        if matches!(error, StoreError::InDoubt(_)) {
            self.halve_begins(collection.batch.begins.len());
        }
        collection.batch.begins.iter().for_each(|id| self.push_ready(*id));
        collection.calls.into_iter().for_each(|call| call.fail(error));
        self.fail(error);
    }

    /// Applies the answers to the memory. Returns the tasks of the attempts that have begun.
    fn apply(&mut self, batch: &Batch, answers: &mut Answers) -> Vec<Task> {
        let now = self.store.now();
        for (insert, inserted) in batch.inserts.iter().zip(&answers.inserts) {
            match inserted {
                Inserted::Created { replaced } => {
                    replaced.iter().for_each(|id| self.remove(*id));
                    self.put(Position { due: insert.due, id: insert.id }, now);
                    self.figures.scheduled.add(1);
                }
                Inserted::Moved(..) | Inserted::Exists | Inserted::Kept(_) | Inserted::TooOld => {}
                Inserted::Refused(_) | Inserted::Locked => {}
            }
        }
        moved(batch, answers).for_each(|position| self.put(position, now));
        for changed in &answers.cancels {
            if let Changed::Changed(id) = changed {
                self.remove(*id);
                self.figures.cancelled.add(1);
            }
        }
        for (requeue, found) in batch.requeues.iter().zip(&answers.requeues) {
            if *found {
                self.put(Position { due: requeue.due, id: requeue.id }, now);
            }
        }
        self.apply_ends(batch, answers, now);
        // A part with a key and a part with an id may concern the same timeout, and the store
        // decides their order. The earliest due time is right in any order, because the begin of a
        // timeout that is not due yet tells its due time.
        moved(batch, answers).for_each(|position| self.put_earlier(position, now));
        let mut tasks = Vec::new();
        for (id, begun) in batch.begins.iter().zip(std::mem::take(&mut answers.begins)) {
            match begun {
                Begun::Attempt(attempt) => tasks.extend(self.start(*id, *attempt, now)),
                Begun::NotYet(due) => {
                    self.remove(*id);
                    self.put(Position { due, id: *id }, now);
                }
                Begun::Gone => self.remove(*id),
            }
        }
        tasks
    }
}

/// Returns the new positions of the timeouts that calls have moved.
fn moved<'a>(batch: &'a Batch, answers: &'a Answers) -> impl Iterator<Item = Position> + 'a {
    let inserts = answers.inserts.iter().filter_map(|inserted| match inserted {
        Inserted::Moved(id, due) => Some(Position { due: *due, id: *id }),
        _ => None,
    });
    let resets = batch.resets.iter().zip(&answers.resets).filter_map(|(reset, changed)| match changed {
        Changed::Changed(id) => Some(Position { due: reset.due, id: *id }),
        _ => None,
    });
    inserts.chain(resets)
}
