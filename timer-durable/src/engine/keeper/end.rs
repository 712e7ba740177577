//! Ending attempts with the results of handlers.

use super::super::unwritten::{Collection, Origin, insert};
use super::{Keeper, Running, Settings};
use crate::TimeoutId;
use crate::answer::ScheduleAnswer;
use crate::done::Done;
use crate::error::Error;
use crate::figures::count;
use crate::message::{Answer, AttemptEnd, AttemptResult, Reply};
use crate::new_timeout::NewTimeout;
use crate::retry::{How, Retry};
use crate::store::{Micros, Position, Store};
use crate::time::{When, micros};
use crate::transaction::{IfPending, Insert, NextRun, Operation, Outcome};
use std::time::Duration;

/// The time after which a timeout of a topic without a handler is tried again.
const NO_HANDLER_PAUSE: Micros = 60_000_000;

/// The most attempts whose ends wait aside without a place of a handler. Further ones keep theirs,
/// because memory is bounded.
const MAX_PARKED: usize = 1 << 14;

/// The failure of an attempt whose handler returns `Ok` after a transaction that was rolled back.
const NOT_COMMITTED: &str = "the transaction that was to end the attempt was not committed";

impl<S: Store> Keeper<S> {
    /// Adds the end of an attempt to the batch.
    pub(super) fn add_end(&mut self, collection: &mut Collection, ended: AttemptEnd, now: Micros) {
        if self.failures.must_rejoin() || collection.has(ended.id) {
            self.unwritten.push_end(ended);
            return;
        }
        let AttemptEnd { id, attempt, result } = &ended;
        let (id, attempt) = (*id, *attempt);
        let Some(running) = self.running.get(&id).filter(|running| running.attempt == attempt) else {
            return self.returned_late(ended, now);
        };
        let operation = match result {
            AttemptResult::Completed => {
                self.forget_running(id);
                return;
            }
            AttemptResult::CutOff(failure) => self.failed(id, running, failure, now),
            // The keeper has ended the attempt, and may have to write that again.
            _ if running.progress.is_cut_off() => return self.returned_late(ended, now),
            // If the transaction was committed, this retry finds no attempt.
            AttemptResult::Done(_) if running.work_has_failed || running.progress.is_in_transaction() => {
                self.failed(id, running, &Retry::new(NOT_COMMITTED), now)
            }
            AttemptResult::Done(done) => match self.allow_follow_ups(done) {
                Ok(()) => self.done(id, running, done, now),
                Err(why) => self.failed(id, running, &Retry::new(why), now),
            },
            AttemptResult::Expired => self.done(id, running, &Done::new(), now),
            AttemptResult::NoHandler => {
                Operation::Retry { id, attempt, due: now.saturating_add(NO_HANDLER_PAUSE), forgive: true }
            }
            AttemptResult::NotStarted => Operation::Retry { id, attempt, due: now, forgive: true },
            AttemptResult::Failed(failure) => self.failed(id, running, failure, now),
        };
        collection.push(operation, Origin::End(ended));
    }

    fn failed(&self, id: TimeoutId, running: &Running, failure: &Retry, now: Micros) -> Operation {
        let attempt = running.attempt;
        if let How::Later(delay) = failure.how {
            let due = now.saturating_add(micros(delay));
            return match &failure.payload {
                Some((_, payload)) if payload.len() > self.settings.max_payload => {
                    let why = format!("the new payload is too long: {} bytes", payload.len());
                    self.failed(id, running, &Retry::new(why), now)
                }
                payload => Operation::Postpone { id, attempt, due, payload: payload.clone() },
            };
        }
        let rules = self.settings.topics.get(&running.topic).map(|topic| &topic.rules);
        let tries = attempt.saturating_sub(running.forgiven);
        let is_last = rules.is_some_and(|rules| tries >= rules.attempts);
        if failure.how == How::Dead || is_last {
            let next = next_run(running, now).filter(|_| !failure.ends_series);
            let letter = TimeoutId::made_at(now, self.store.instance());
            let next = next.map(|due| NextRun { due, letter });
            return Operation::Bury { id, attempt, reason: failure.reason.clone(), next };
        }
        let delay = match failure.how {
            How::After(delay) => delay,
            _ => rules.map_or(Duration::from_secs(1), |rules| rules.delay_after(tries, &mut self.random.borrow_mut())),
        };
        Operation::Retry { id, attempt, due: now.saturating_add(micros(delay)), forgive: false }
    }

    /// Returns the reason why a follow-up cannot be scheduled, if there is one.
    fn allow_follow_ups(&self, done: &Done) -> Result<(), String> {
        let Settings { topics, elsewhere, max_payload, .. } = &self.settings;
        for NewTimeout { topic, payload, .. } in done.then.as_ref().map_err(String::clone)? {
            if !topics.contains_key(topic) && !elsewhere.contains(topic) {
                return Err(format!("the topic `{topic}` of a follow-up has no handler here"));
            }
            if payload.len() > *max_payload {
                return Err(format!("the payload of a follow-up is too long: {} bytes", payload.len()));
            }
        }
        Ok(())
    }

    pub(super) fn done(&self, id: TimeoutId, running: &Running, done: &Done, now: Micros) -> Operation {
        let then = self.follow_ups(running.then.as_deref(), done, now);
        let next = next_run(running, now).filter(|_| running.then.is_none() && !done.ends_series);
        Operation::Done { id, attempt: running.attempt, next, then }
    }

    fn follow_ups(&self, then: Option<&NewTimeout>, done: &Done, now: Micros) -> Vec<Insert> {
        let follow_ups = then.into_iter().chain(done.then.iter().flatten());
        follow_ups.map(|then| insert(then.clone(), now, self.store.instance())).collect()
    }

    /// Returns `true` if a handler schedules the next timeout of its key.
    pub(super) fn is_follow_up(&self, new: &NewTimeout) -> bool {
        let running = new.after.and_then(|id| self.running.get(&id));
        running.is_some_and(|running| {
            let progress = &running.progress;
            !progress.has_completed()
                && !progress.is_in_transaction()
                && (running.period.is_none() || new.if_pending == IfPending::Replace)
        })
    }

    /// Keeps a follow-up for the commit that ends the attempt.
    pub(super) fn follow_up(&mut self, mut new: Box<NewTimeout>, reply: Reply, now: Micros) {
        let made = TimeoutId::made_at(now, self.store.instance());
        let Some(running) = new.after.and_then(|id| self.running.get_mut(&id)) else { return };
        let (id, due) = (*new.id.get_or_insert(made), new.when.from(now));
        new.when = When::At(due);
        let answer = match &mut running.then {
            Some(then) if new.if_pending != IfPending::Replace => {
                let (holder, before) = (then.id.unwrap_or(id), then.when.from(now));
                let moves = match new.if_pending {
                    IfPending::Earlier => due < before,
                    IfPending::Later => due > before,
                    IfPending::Debounce => {
                        let delay = then.max_delay.or(new.max_delay);
                        **then = NewTimeout { id: Some(holder), max_delay: delay, ..*new };
                        return reply.send(Ok(Answer::Scheduled(ScheduleAnswer::Moved(holder))));
                    }
                    IfPending::Update => {
                        let updated = insert((*new).clone(), now, 0).updated_due(before, now);
                        **then = NewTimeout { id: Some(holder), when: When::At(updated), ..*new };
                        return reply.send(Ok(Answer::Scheduled(ScheduleAnswer::Moved(holder))));
                    }
                    _ => false,
                };
                if moves {
                    then.when = When::At(due);
                }
                match new.if_pending {
                    IfPending::Refuse => Err(Error::KeyTaken { id: holder }),
                    _ if moves => Ok(ScheduleAnswer::Moved(holder)),
                    _ => Ok(ScheduleAnswer::Kept(holder)),
                }
            }
            then => {
                *then = Some(new);
                Ok(ScheduleAnswer::Created(id))
            }
        };
        reply.send(answer.map(Answer::Scheduled));
    }

    /// Applies the outcome of an end. A refused end leaves the entry alone, because it belongs to a
    /// later attempt.
    pub(super) fn apply_end(&mut self, ended: &AttemptEnd, operation: Operation, outcome: &Outcome, now: Micros) {
        let id = ended.id;
        // An end that waited aside may be older than the attempt that runs now.
        let is_last = self.running.get(&id).is_some_and(|running| running.attempt == ended.attempt);
        let running = if is_last { self.forget_running(id) } else { None };
        if !matches!(outcome, Outcome::Changed(_)) {
            // While this instance has the timeout, only a transaction of the user ends the attempt.
            // That may be a transaction of another client, which the handler has not reported.
            let instance = self.store.instance();
            let is_ended = |running: &Running| running.progress.is_in_transaction() || running.instance == instance;
            match running.filter(is_ended) {
                Some(running) => self.ended_in_transaction(running, ended, now),
                None => self.figures.lock().refused += 1,
            }
            return;
        }
        self.remove(id);
        let topic = running.as_ref().map(|running| &*running.topic);
        match operation {
            Operation::Done { next, then, .. } => {
                self.put_next(id, topic, next, &then, now);
                if running.as_ref().is_some_and(|running| running.has_expired) {
                    count!(self.figures, topic, expired);
                } else {
                    count!(self.figures, topic, done);
                }
            }
            Operation::Retry { due, forgive, .. } => {
                if !forgive {
                    count!(self.figures, topic, failed);
                }
                count!(self.figures, topic, retried);
                self.put(Position { due, id }, topic, now);
            }
            Operation::Postpone { due, .. } => {
                count!(self.figures, topic, postponed);
                self.put(Position { due, id }, topic, now);
            }
            Operation::Bury { reason, next, .. } => {
                count!(self.figures, topic, failed);
                count!(self.figures, topic, buried);
                self.put_next(id, topic, next.map(|next| next.due), &[], now);
                let id = next.map_or(id, |next| next.letter);
                tracing::warn!(timer = %self.settings.name, %id, %reason, "dead letter");
            }
            _ => {}
        }
    }

    /// Schedules the follow-ups of an attempt that a transaction has ended without them. The calls
    /// of its handler were answered, so their timeout is created whatever the handler returns.
    fn ended_in_transaction(&mut self, running: Running, ended: &AttemptEnd, now: Micros) {
        count!(self.figures, Some(&running.topic), done);
        self.limits.ended_in_transaction(ended);
        let done = if let AttemptResult::Done(done) = &ended.result { Some(done.clone()) } else { running.late };
        self.create_follow_ups(running.then.as_deref(), &done.unwrap_or_default(), now);
    }

    /// Notes that the handler of an attempt that was cut off has returned. If a transaction may
    /// have ended the attempt, its follow-ups wait until that is known.
    fn returned_late(&mut self, ended: AttemptEnd, now: Micros) {
        let was_in_transaction = self.limits.returned(&ended);
        let AttemptResult::Done(done) = ended.result else { return };
        if was_in_transaction {
            self.create_follow_ups(None, &done, now);
        } else if let Some(running) = self.running.get_mut(&ended.id).filter(|it| it.attempt == ended.attempt) {
            running.late = Some(done);
        }
    }

    fn create_follow_ups(&mut self, then: Option<&NewTimeout>, done: &Done, now: Micros) {
        let nothing = Done::new();
        let done = if self.allow_follow_ups(done).is_ok() { done } else { &nothing };
        for then in self.follow_ups(then, done, now) {
            let mut insert = Collection::default();
            insert.push(Operation::Insert(then), Origin::FollowUp);
            self.postpone(insert);
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
            self.put(Position { due, id }, topic, now);
        }
        for then in then {
            self.put(Position { due: then.due, id: then.id }, Some(&then.topic), now);
            count!(self.figures, Some(&then.topic), scheduled);
        }
    }

    /// Frees the place of an attempt whose end waits aside.
    pub(super) fn park(&mut self, id: TimeoutId) {
        let Some(running) = self.running.get_mut(&id).filter(|running| !running.is_parked) else { return };
        if self.parked < MAX_PARKED {
            running.is_parked = true;
            self.parked += 1;
            self.overdue_running -= usize::from(running.is_overdue);
            self.gates.leave(&running.topic);
        }
    }

    pub(super) fn forget_running(&mut self, id: TimeoutId) -> Option<Running> {
        let running = self.running.remove(&id)?;
        self.limits.forget(id, running.look);
        self.figures.end(&running.topic);
        if running.is_parked {
            self.parked -= 1;
        } else {
            self.overdue_running -= usize::from(running.is_overdue);
            self.gates.leave(&running.topic);
        }
        self.overdue.push_ready(id);
        self.current.push_ready(id);
        Some(running)
    }
}

/// Returns the due time of the next run of a periodic timeout. Missed runs are skipped. Retries of
/// this run do not shift the next one.
fn next_run(running: &Running, now: Micros) -> Option<Micros> {
    let period = running.period.filter(|period| *period > 0)?;
    let missed = now.saturating_sub(running.planned).max(0) / period;
    Some(running.planned.saturating_add(period.saturating_mul(missed.saturating_add(1))))
}
