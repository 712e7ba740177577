//! Steps 1 to 3 of a turn: collecting a batch, writing it, and applying the outcomes.

use super::super::collect::{Collection, Origin, Place, Waited, answer_of};
use super::Keeper;
use super::alone::CallAlone;
use crate::error::Error;
use crate::figures::count;
use crate::lateness::DurableLateCause;
use crate::message::{Message, Request};
use crate::store::{Micros, Position, Store, StoreError};
use crate::transaction::{Operation, Outcome, Target};
use std::collections::HashSet;
use std::time::Instant;

impl<S: Store> Keeper<S> {
    /// Collects messages and due timeouts into a batch.
    pub(super) fn collect(&mut self, first: Option<Message>) -> Collection {
        // The keeper may have joined the store again at the beginning of the turn.
        self.note(DurableLateCause::Store);
        let mut collection = Collection::default();
        // Messages that arrive from here on are for the next turn. Otherwise work of the user could
        // keep this turn from ending, and the delay of a late message would count from a time
        // before its call.
        let mut waiting = self.inbox.len();
        let now = self.store.now();
        self.cut_off(now);
        for ended in std::mem::take(&mut self.unwritten) {
            self.add_end(&mut collection, ended, now);
        }
        let left = self.take_waiting(&mut collection, now);
        self.fail_held();
        // Each timeout that has waiting messages contributes one of them. While the keeper cannot
        // join, no message waits for another one.
        let held = if self.must_rejoin { self.held.len() } else { self.held.places() };
        for _ in 0..held {
            if !collection.has_room(self.settings.max_batch) {
                break;
            }
            let Some((place, message)) = self.held.pop() else { break };
            if self.conflict(&collection, &left, &message).is_some() {
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
            let may_take_long = message.may_take_long();
            match self.conflict(&collection, &left, &message).or_else(|| self.held.place_of(&message)) {
                Some(place) => {
                    let _since = message.waits_since(self.present());
                    self.held.push(place, message);
                }
                None => {
                    self.note(DurableLateCause::System);
                    self.take(&mut collection, message, now);
                    if may_take_long {
                        self.note(DurableLateCause::Store);
                    }
                }
            }
            // The lease must not end behind one such message after the other.
            if may_take_long && self.is_upkeep_due() {
                break;
            }
        }
        self.overdue.expire(now);
        self.current.expire(now);
        let paused = self.paused_until.is_some_and(|until| until > self.present());
        if self.may_begin() && !self.must_rejoin && !paused {
            let places = self.add_begins(&mut collection, now);
            self.add_crowded(&mut collection, &places, now);
            if let Err(error) = self.add_shelved(&mut collection, &places, now) {
                self.fail(&error);
            }
        }
        collection
    }

    /// Returns the place at which a message has to wait for a batch that was not written yet, or
    /// for a call that is left to a later one.
    pub(super) fn conflict(&self, collection: &Collection, left: &HashSet<Place>, message: &Message) -> Option<Place> {
        let of_left = || Place::of(message).find(|place| left.contains(place));
        collection.conflict(message).or_else(|| self.conflict_aside(message)).or_else(of_left)
    }

    /// Adds a message to a batch that has nothing about the same timeout.
    pub(super) fn take(&mut self, collection: &mut Collection, message: Message, now: Micros) {
        match message {
            Message::Call(Request::Transact(Some((id, attempt)), _), reply) if reply.is_abandoned() => {
                self.fail_work(Some((id, attempt)));
            }
            Message::Call(_, reply) if reply.is_abandoned() => {}
            Message::ScheduleMany(_, reply) if reply.is_abandoned() => {}
            // A handler that has begun may end.
            Message::Call(Request::Transact(Some(attempt), work), reply) => {
                self.write_alone(CallAlone::Work(Some(attempt), work, reply), Waited::default());
            }
            Message::Call(_, reply) if self.shutdown.is_requested() => reply.send(Err(Error::Stopped)),
            Message::ScheduleMany(_, reply) if self.shutdown.is_requested() => reply.send(Err(Error::Stopped)),
            Message::Call(..) | Message::ScheduleMany(..) | Message::Pause { .. } if self.must_rejoin => {
                let now = self.present();
                match message.waits_since(now).filter(|_| self.may_wait() && !self.shutdown.is_requested()) {
                    Some(since) => self.waiting.push_back((since, message)),
                    None => message.fail(&self.outage()),
                }
            }
            Message::Call(Request::Insert(new), reply) if self.is_follow_up(&new) => self.follow_up(new, reply, now),
            Message::Call(Request::Transact(None, work), reply) => {
                self.write_alone(CallAlone::Work(None, work, reply), Waited::default());
            }
            Message::Call(request, reply) => collection.add(request, reply, now, self.store.instance()),
            Message::ScheduleMany(many, reply) => {
                let call = CallAlone::many(many, reply, now, self.store.instance());
                self.write_alone(call, Waited::default());
            }
            Message::Ended(ended) => self.add_end(collection, ended, now),
            Message::Pause { topic, is_paused, reply } => {
                self.write_alone(CallAlone::Pause(topic, is_paused, reply), Waited::default());
            }
            Message::UseStore(visit) => visit(&mut self.store),
            Message::Stop { until, reply } => self.begin_stop(until, reply),
        }
    }

    /// Writes a batch and applies the outcomes. If the store refuses the batch, its halves are
    /// written one after the other. After `until` they wait for the next turn.
    pub(super) fn write(&mut self, collection: Collection, until: Instant) {
        if self.is_store_locked {
            return self.wait_for_store(collection);
        }
        self.note(DurableLateCause::System);
        let began = Instant::now();
        let result = self.block(&collection.batch).and_then(|()| self.store.write(&collection.batch));
        self.figures.lock().commit_time.record(began.elapsed());
        self.note(DurableLateCause::Store);
        match result {
            Ok(outcomes) => {
                self.figures.lock().commits += 1;
                self.figures.lock().operations += collection.batch.len() as u64;
                self.pause = self.clock.first_pause();
                self.paused_until = None;
                self.apply(collection, outcomes);
            }
            Err(StoreError::Refused(_)) if collection.batch.len() > 1 => {
                for half in collection.split() {
                    let is_over = self.must_rejoin || self.present() >= until;
                    if is_over { self.postpone(half) } else { self.write(half, until) }
                }
            }
            // Other calls go on without the pause that follows a failure.
            Err(StoreError::Refused(why)) => self.apply(collection, vec![Outcome::Refused(why)]),
            Err(StoreError::Busy) if !self.clock.is_virtual() => self.wait_for_store(collection),
            Err(error) => {
                let is_unsent = matches!(error, StoreError::Disconnected(_)) && !self.clock.is_virtual();
                let rest = if is_unsent { self.keep_calls(collection) } else { collection.fail_calls(&error) };
                // The answer, which has the payloads of the attempts that begin, may be too long to
                // arrive in time.
                self.keep(rest, matches!(error, StoreError::InDoubt(_) | StoreError::Failed(_)));
                self.fail(&error);
            }
        }
    }

    /// Keeps the `End`, `FollowUp` and `Begin` operations of a batch that was not written, perhaps
    /// because the answer with the payloads of its attempts would have been too long.
    pub(super) fn keep(&mut self, mut rest: Collection, may_be_too_long: bool) {
        let mut begins = rest.sibling();
        let mut follow_ups = rest.sibling();
        for (operation, origin) in rest.take() {
            match (origin, operation) {
                (Origin::End(ended), _) => self.unwritten.push(ended),
                (Origin::FollowUp, operation) => follow_ups.push(operation, Origin::FollowUp),
                (origin, operation @ Operation::Begin(_)) => begins.push(operation, origin),
                _ => {}
            }
        }
        match begins.batch.len() {
            0 => {}
            1 if may_be_too_long => self.set_failed_aside(begins),
            _ => {
                if may_be_too_long {
                    self.isolate_begins();
                }
                begins.batch.iter().filter_map(Operation::id).for_each(|id| self.push_ready(id));
            }
        }
        if !follow_ups.is_empty() {
            self.postpone(follow_ups);
        }
    }

    /// Applies the outcomes to the memory, answers callers, and starts the attempts that have
    /// begun. Sets aside the operations that the store has not executed.
    fn apply(&mut self, mut collection: Collection, outcomes: Vec<Outcome>) {
        let now = self.store.now();
        let (mut moved, mut begun, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        let (mut locked, mut refused) = (collection.sibling(), Vec::new());
        for ((operation, origin), outcome) in collection.take().zip(outcomes) {
            match (origin, outcome) {
                (origin, Outcome::Locked) => locked.push(operation, origin),
                (Origin::Call(reply), outcome) => {
                    moved.extend(self.apply_call(&operation, &outcome, now));
                    answers.push((operation, outcome, reply));
                }
                (Origin::FollowUp, outcome) => _ = self.apply_call(&operation, &outcome, now),
                (origin, Outcome::Refused(why)) => refused.push((operation, origin, why)),
                (Origin::End(ended), outcome) => self.apply_end(&ended, operation, &outcome, now),
                (Origin::Begin, outcome) => begun.extend(operation.id().map(|id| (id, outcome))),
            }
        }
        // An operation with a key and one with an id may concern the same timeout, and the store
        // decides their order. The earliest due time is right in any order, because the begin of a
        // timeout that is not due yet tells its due time.
        moved.into_iter().for_each(|position| self.put_earlier(position, None, now));
        self.adapt_begins(&begun);
        let has_waited = collection.waited.since.is_some();
        let mut tasks = Vec::new();
        for (id, outcome) in begun {
            match outcome {
                Outcome::Begun(attempt) => tasks.extend(self.start(id, *attempt, has_waited, now)),
                Outcome::NotYet(due) => self.put_again(Position { due, id }, now),
                Outcome::Shelved(topic) => self.shelve(id, &topic, now),
                _ => {
                    self.remove(id);
                    self.gates.forget(id);
                }
            }
        }
        // Callers come first, because the executor may take its time.
        answers.into_iter().for_each(|(operation, outcome, reply)| reply.send(answer_of(&operation, &outcome)));
        self.hand_over(tasks);
        if !locked.is_empty() {
            self.wait_for_locks(locked);
        }
        for (operation, origin, why) in refused {
            let mut part = collection.sibling();
            part.push(operation, origin);
            self.set_refused_aside(part, &why);
        }
    }

    /// Applies the outcome of a call to the memory. Returns the new position of a timeout that the
    /// call has moved.
    pub(super) fn apply_call(&mut self, operation: &Operation, outcome: &Outcome, now: Micros) -> Option<Position> {
        let mut moved = None;
        let topic = match operation {
            Operation::Insert(insert) => Some(&*insert.topic),
            _ => operation.key().map(|(topic, _)| topic),
        };
        match (operation, outcome) {
            (Operation::Insert(insert), Outcome::Created { replaced }) => {
                replaced.iter().for_each(|id| self.remove(*id));
                self.put(Position { due: insert.due, id: insert.id }, topic, now);
                count!(self.figures, Some(&insert.topic), scheduled);
            }
            (_, Outcome::Moved(id, due)) | (Operation::Reset { due, .. }, Outcome::Changed(id)) => {
                let position = Position { due: *due, id: *id };
                self.put(position, topic, now);
                moved = Some(position);
            }
            (Operation::Cancel(target), Outcome::Changed(id)) => {
                self.remove(*id);
                let topic = if let Target::Key { topic, .. } = target { Some(&**topic) } else { None };
                count!(self.figures, topic, cancelled);
            }
            (Operation::Requeue { due, .. }, Outcome::Changed(id)) => {
                self.put(Position { due: *due, id: *id }, topic, now);
            }
            (_, Outcome::Refused(error)) => {
                self.figures.lock().store_errors += 1;
                tracing::warn!(timer = %self.settings.name, store = %self.store.describe(), %error, "a call was refused");
            }
            _ => {}
        }
        moved
    }
}
