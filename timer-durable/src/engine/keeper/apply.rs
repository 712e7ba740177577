//! Applying the outcomes of operations to the parts of the keeper.

use super::Keeper;
use crate::TimeoutId;
use crate::engine::attempt::{KeeperHandle, Late, Report, Started};
use crate::engine::attempts::{End, Running};
use crate::engine::unwritten::{Collection, Origin, Waited, Work};
use crate::figures::count;
use crate::lateness::DurableLateness;
use crate::message::{AttemptEnd, AttemptResult};
use crate::retry::Retry;
use crate::store::{Micros, Position};
use crate::time::{between, micros};
use crate::transaction::{Attempt, Insert, Operation, Outcome};
use std::time::Instant;
use timer_executor::Task;

impl Keeper {
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
                replaced.iter().for_each(|id| self.queue.remove(*id));
                self.queue.put(Position { due: insert.due, id: insert.id }, topic, now);
                count!(self.figures(), Some(&insert.topic), scheduled);
            }
            (_, Outcome::Moved(id, due))
            | (Operation::Reset { due, .. } | Operation::Requeue { due, .. }, Outcome::Changed(id)) => {
                let position = Position { due: *due, id: *id };
                self.queue.put(position, topic, now);
                moved = Some(position);
            }
            (Operation::Insert(insert), Outcome::Queued(id)) if *id == insert.id => {
                count!(self.figures(), Some(&insert.topic), scheduled);
            }
            (Operation::Cancel(_), Outcome::Changed(id) | Outcome::Queued(id)) => {
                self.queue.remove(*id);
                count!(self.figures(), topic, cancelled);
            }
            (_, Outcome::Refused(error)) => {
                self.figures().lock().store_errors += 1;
                tracing::warn!(timer = %self.settings.name, store = %self.store.describe(), %error, "a call was refused");
            }
            _ => {}
        }
        moved
    }

    /// Adds the end of an attempt to the batch.
    pub(super) fn add_end(&mut self, collection: &mut Collection, ended: AttemptEnd, now: Micros) {
        if self.failures.must_rejoin() || collection.has(ended.id) {
            self.unwritten.push_end(ended);
            return;
        }
        match self.attempts.end(&ended, now) {
            End::Write(operation) => collection.push(operation, Origin::End(ended)),
            End::Completed => _ = self.forget_running(ended.id),
            End::Late => {
                let follow_ups = self.attempts.returned_late(ended, now);
                self.postpone_follow_ups(follow_ups);
            }
        }
    }

    /// Applies the outcome of an end. A refused end leaves the entry alone, because it belongs to a
    /// later attempt.
    pub(super) fn apply_end(&mut self, ended: &AttemptEnd, operation: Operation, outcome: &Outcome, now: Micros) {
        let id = ended.id;
        // An end that waited aside may be older than the attempt that runs now.
        let is_last = self.attempts.runs(id, ended.attempt);
        let running = if is_last { self.forget_running(id) } else { None };
        if !matches!(outcome, Outcome::Changed(_)) {
            match running.filter(|running| self.attempts.has_ended_elsewhere(running)) {
                Some(running) => {
                    count!(self.figures(), Some(&running.topic), done);
                    let follow_ups = self.attempts.ended_elsewhere(running, ended, now);
                    self.postpone_follow_ups(follow_ups);
                }
                None => self.figures().lock().refused += 1,
            }
            return;
        }
        self.queue.remove(id);
        let topic = running.as_ref().map(|running| &*running.topic);
        match operation {
            Operation::Done { next, then, .. } => {
                self.put_next(id, topic, next, &then, now);
                if matches!(ended.result, AttemptResult::Expired) {
                    count!(self.figures(), topic, expired);
                } else {
                    count!(self.figures(), topic, done);
                }
            }
            Operation::Retry { due, forgive, .. } => {
                if !forgive {
                    count!(self.figures(), topic, failed);
                }
                count!(self.figures(), topic, retried);
                self.queue.put(Position { due, id }, topic, now);
            }
            Operation::Postpone { due, .. } => {
                count!(self.figures(), topic, postponed);
                self.queue.put(Position { due, id }, topic, now);
            }
            Operation::Bury { reason, next, .. } => {
                count!(self.figures(), topic, failed);
                count!(self.figures(), topic, buried);
                self.put_next(id, topic, next.map(|next| next.due), &[], now);
                let id = next.map_or(id, |next| next.letter);
                tracing::warn!(timer = %self.settings.name, %id, %reason, "dead letter");
            }
            _ => {}
        }
    }

    /// Creates the follow-ups of an attempt that has ended without them.
    fn postpone_follow_ups(&mut self, follow_ups: Vec<Insert>) {
        let now = self.present();
        for follow_up in follow_ups {
            let mut insert = Collection::default();
            insert.push(Operation::Insert(follow_up), Origin::FollowUp);
            self.unwritten.postpone(Work::Batch(insert), Waited::default(), now);
        }
    }

    /// Puts the follow-up of an attempt into memory, which is the next run of a periodic timeout,
    /// or the next timeouts that its handler has scheduled.
    pub(super) fn put_next(
        &mut self,
        id: TimeoutId,
        topic: Option<&str>,
        next: Option<Micros>,
        then: &[Insert],
        now: Micros,
    ) {
        if let Some(due) = next {
            self.queue.put(Position { due, id }, topic, now);
        }
        for then in then {
            self.queue.put(Position { due: then.due, id: then.id }, Some(&then.topic), now);
            count!(self.figures(), Some(&then.topic), scheduled);
        }
    }

    pub(super) fn forget_running(&mut self, id: TimeoutId) -> Option<Running> {
        let running = self.attempts.remove(id)?;
        self.figures().end(&running.topic);
        if !running.is_parked {
            self.queue.leave(&running.topic);
        }
        self.queue.push_ready(id);
        Some(running)
    }

    /// Notes that an attempt has begun. Returns the task that calls its handler with the lane of
    /// its executor, or `None` if the attempt ends without one.
    pub(super) fn start(
        &mut self,
        id: TimeoutId,
        attempt: Attempt,
        has_waited_aside: bool,
        now: Micros,
    ) -> Option<(usize, Task)> {
        let handle = self.executors.handle();
        let lateness = self.note_begin(id, &attempt, &handle, has_waited_aside, now);
        if let Some(result) = self.end_at_once(id, &attempt, &lateness, now) {
            self.unwritten.push_end(AttemptEnd { id, attempt: attempt.attempt, result });
            return None;
        }
        let topic = self.settings.topics.get(attempt.topic.as_str())?;
        if let Some(limit) = topic.time_limit {
            self.attempts.look_after(id, limit, now);
        }
        let lane = self.executors.lane(&attempt.topic);
        let report = Report::new(&handle, self.executors.term().clone(), id, attempt.attempt);
        let started = Started {
            id,
            attempt,
            begun: now,
            keeper: handle,
            late: Late { figures: self.record.figures().clone(), lateness, since: Instant::now() },
        };
        let handler = topic.handler.clone();
        Some((lane, Task::new(move || handler(started, report))))
    }

    /// Adds an attempt to those that run. Returns its lateness.
    fn note_begin(
        &mut self,
        id: TimeoutId,
        attempt: &Attempt,
        handle: &KeeperHandle,
        has_waited_aside: bool,
        now: Micros,
    ) -> DurableLateness {
        let (source, is_overdue) = self.queue.begin(id, attempt, has_waited_aside, now);
        self.attempts.begin(id, attempt, is_overdue, handle.progress());
        let from = self.record.waited_from(id, attempt, now);
        let has_places = self.attempts.free_for_overdue() > 0;
        let wait = self.queue.wait(source, &attempt.topic, from, has_places, now);
        let lateness = self.record.split(attempt, from, &wait, now);
        self.figures().begin(&attempt.topic, between(attempt.due, now));
        lateness
    }

    /// Returns the result of an attempt that ends without a handler.
    fn end_at_once(
        &mut self,
        id: TimeoutId,
        attempt: &Attempt,
        lateness: &DurableLateness,
        now: Micros,
    ) -> Option<AttemptResult> {
        let Some(topic) = self.settings.topics.get(attempt.topic.as_str()) else {
            self.record.add_unhandled(&attempt.topic);
            return Some(AttemptResult::NoHandler);
        };
        let rules = &topic.rules;
        let tries = attempt.tries();
        let limit = attempt.max_lateness.or_else(|| rules.max_lateness.map(micros));
        // The time for which a run waits for a handler counts as lateness. The delay of a retry
        // does not, because the handler has chosen it.
        let late = now.saturating_sub(if tries == 1 { attempt.planned } else { attempt.due });
        if limit.is_some_and(|limit| late > limit) {
            let name = (attempt.topic.as_str(), attempt.key.as_deref());
            self.figures().record_late(id, name, attempt.attempt, lateness);
            return Some(AttemptResult::Expired);
        }
        // The last attempt has reported no end, because its process died.
        let reason = || format!("no end after {} attempts", rules.attempts);
        (tries > rules.attempts).then(|| AttemptResult::Failed(Retry::dead(reason())))
    }
}
