//! Step 1 of a turn: collecting a batch.

use super::Keeper;
use crate::TimeoutId;
use crate::engine::queue::Places;
use crate::engine::unwritten::{Collection, LoneCall, MAX_WAIT, Subject, Waited};
use crate::error::Error;
use crate::figures::count;
use crate::lateness::DurableLateCause;
use crate::message::{Answer, Message, Reply, Request};
use crate::store::Micros;
use std::collections::HashMap;
use std::time::Duration;

impl Keeper {
    /// Collects messages and due timeouts into a batch.
    pub(super) fn collect(&mut self, first: Option<Message>) -> Collection {
        // The keeper may have joined the store again at the beginning of the turn.
        self.note(DurableLateCause::Store);
        let mut collection = Collection::default();
        // Messages that arrive from here on are for the next turn. Otherwise work of the user could
        // keep this turn from ending, and the delay of a late message would count from a time
        // before its call.
        let waiting = self.inbox.len();
        let now = self.store.now();
        while let Some((topic, ended)) = self.attempts.cut_off(now) {
            count!(self.figures(), Some(&topic), timed_out);
            self.unwritten.push_end(ended);
            self.executors.replace_threads(self.attempts.stuck());
        }
        for ended in self.unwritten.take_ends() {
            self.add_end(&mut collection, ended, now);
        }
        self.add_held(&mut collection, now);
        self.add_messages(&mut collection, first, waiting, now);
        self.queue.expire(now);
        let is_paused = self.failures.paused_until(self.present()).is_some();
        if self.may_begin() && !self.failures.must_rejoin() && !is_paused {
            self.add_due(&mut collection, now);
        }
        collection
    }

    /// Adds the timeouts that are due, as many as may run.
    fn add_due(&mut self, collection: &mut Collection, now: Micros) {
        let places = Places::new(self.free_places(), self.attempts.free_for_overdue());
        let aside = self.unwritten.begins();
        let is_taken = |id: TimeoutId| self.attempts.contains(id) || aside.contains(&id);
        self.queue.add_begins(collection, places, &self.executors, is_taken, now);
    }

    /// Fails the calls that have waited for too long while the store could not be reached.
    pub(super) fn fail_late_calls(&mut self) {
        let Some(error) = self.failures.outage() else { return };
        let now = self.present();
        // On virtual time nobody moves the time while a caller waits.
        let is_over =
            self.failures.must_rejoin() && (self.failures.clock().is_virtual() || self.stopping.is_requested());
        let limit = if is_over { Duration::ZERO } else { MAX_WAIT };
        let error = Some(&error).filter(|_| !is_over || !self.stopping.is_requested());
        for attempt in self.unwritten.fail_late(now, limit, error) {
            self.attempts.fail_work(Some(attempt));
        }
    }

    /// Adds one of the held messages of each timeout.
    fn add_held(&mut self, collection: &mut Collection, now: Micros) {
        for _ in 0..self.unwritten.held_subjects() {
            if !collection.has_room(self.settings.max_batch) {
                break;
            }
            let Some((subject, message)) = self.unwritten.pop_held() else { break };
            if self.conflict(collection, &message).is_some() {
                self.unwritten.put_back(subject, message);
            } else {
                self.take(collection, message, now);
            }
        }
    }

    /// Adds the messages that have arrived, `waiting` of which are in the inbox.
    fn add_messages(
        &mut self,
        collection: &mut Collection,
        mut first: Option<Message>,
        mut waiting: usize,
        now: Micros,
    ) {
        while collection.has_room(self.settings.max_batch) || first.is_some() {
            let next = first.take().or_else(|| {
                waiting = waiting.checked_sub(1)?;
                self.inbox.try_recv().ok()
            });
            let Some(message) = next else { break };
            let may_take_long = message.may_take_long();
            match self.conflict(collection, &message).or_else(|| self.unwritten.held_before(&message)) {
                Some(subject) => self.unwritten.hold(subject, message, self.present()),
                None => {
                    self.note(DurableLateCause::System);
                    self.take(collection, message, now);
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
    }

    /// Returns the subject for which a message has to wait, because an earlier message about it was
    /// not written yet.
    fn conflict(&self, collection: &Collection, message: &Message) -> Option<Subject> {
        collection.conflict(message).or_else(|| self.unwritten.conflict(message))
    }

    /// Adds a message to a batch that has nothing about the same timeout.
    fn take(&mut self, collection: &mut Collection, message: Message, now: Micros) {
        match message {
            Message::Call(request, reply) => self.take_call(collection, request, reply, now),
            Message::ScheduleMany(_, reply) if self.stopping.is_requested() => reply.send(Err(Error::Stopped)),
            Message::ScheduleMany(many, reply) => {
                let call = LoneCall::many(many, reply, now, self.store.instance());
                self.write_alone(call, Waited::default());
            }
            Message::Ended(ended) => self.add_end(collection, ended, now),
            Message::Pause { topic, is_paused, reply } => {
                self.write_alone(LoneCall::Pause(topic, is_paused, reply), Waited::default());
            }
            Message::UseStore(visit) => visit(&mut *self.store),
            Message::Stop { until, reply } => {
                // On virtual time nobody takes turns while the caller waits.
                let until = if self.failures.clock().is_virtual() { Some(self.present()) } else { until };
                self.stopping.begin(until, reply);
                // Nothing begins any more, so that no timeout is late here.
                self.figures().set_oldest_due(HashMap::new());
            }
        }
    }

    fn take_call(&mut self, collection: &mut Collection, request: Request, reply: Reply, now: Micros) {
        match request {
            // A handler that has begun may end.
            Request::Transact(Some(attempt), work) => {
                self.write_alone(LoneCall::Work(Some(attempt), work, reply), Waited::default());
            }
            _ if self.stopping.is_requested() => reply.send(Err(Error::Stopped)),
            Request::Transact(None, work) => {
                self.write_alone(LoneCall::Work(None, work, reply), Waited::default());
            }
            Request::Insert(new) if self.attempts.is_follow_up(&new) => {
                if let Some(answer) = self.attempts.follow_up(new, now) {
                    reply.send(answer.map(Answer::Scheduled));
                }
            }
            request => {
                // If the store cannot be reached, the call waits from now on.
                if self.failures.is_unreachable() {
                    let _since = reply.waits_since(self.present());
                }
                collection.add(request, reply, now, self.store.instance());
            }
        }
    }
}
