//! Steps 2 and 3 of a turn: writing a batch, and applying the outcomes.

use super::Keeper;
use crate::engine::failures::MAX_PAUSE;
use crate::engine::unwritten::{Collection, MAX_WAIT, Origin, Waited, Work, answer_of};
use crate::lateness::DurableLateCause;
use crate::store::{Position, StoreError};
use crate::transaction::{Operation, Outcome};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The longest pause after a refusal.
const MAX_REFUSED: Duration = Duration::from_secs(30);

impl Keeper {
    /// Writes a batch and applies the outcomes. Operations that the store has not reached before
    /// `until` wait for the next turn.
    pub(super) fn write(&mut self, collection: Collection, waited: Waited, until: Instant) {
        if self.failures.is_unreachable() {
            let error = self.failures.outage();
            return self.keep_unwritten(collection, waited, error.as_ref());
        }
        self.note(DurableLateCause::System);
        let began = Instant::now();
        let result = self.store.write(&collection.batch, until);
        self.figures().lock().commit_time.record(began.elapsed());
        self.note(DurableLateCause::Store);
        match result {
            Ok(outcomes) => {
                self.figures().lock().commits += 1;
                self.figures().lock().operations += collection.batch.len() as u64;
                self.failures.end();
                self.apply(collection, outcomes, waited);
            }
            Err(error @ (StoreError::Busy | StoreError::Disconnected(_))) => {
                self.keep_unwritten(collection, waited, Some(&error));
                self.fail(&error);
            }
            Err(error) => {
                let rest = collection.fail_calls(self.present(), Duration::ZERO, Some(&error));
                // The answer, which has the payloads of the attempts that begin, may be too long to
                // arrive in time.
                self.keep(rest, waited, matches!(error, StoreError::InDoubt(_) | StoreError::Failed(_)));
                self.fail(&error);
            }
        }
    }

    /// Keeps operations that were not executed. Their calls wait. If the reason is an error, calls
    /// that have waited for too long fail.
    fn keep_unwritten(&mut self, collection: Collection, waited: Waited, error: Option<&StoreError>) {
        let [calls, rest] = collection.divide(|_, origin| matches!(origin, Origin::Call(_)));
        self.keep(rest, waited, false);
        let now = self.present();
        if error.is_some() {
            // On virtual time nobody moves the time while a caller waits.
            let limit = if self.failures.clock().is_virtual() { Duration::ZERO } else { MAX_WAIT };
            let calls = calls.fail_calls(now, limit, error);
            self.unwritten.postpone_calls(calls, waited, self.settings.max_batch, now);
        } else if !calls.is_empty() {
            self.unwritten.postpone(Work::Batch(calls), waited, now);
        }
    }

    /// Keeps the `End`, `FollowUp` and `Begin` operations of a batch that was not written, perhaps
    /// because the answer with the payloads of its attempts would have been too long.
    fn keep(&mut self, mut rest: Collection, waited: Waited, may_be_too_long: bool) {
        let mut begins = Collection::default();
        let mut follow_ups = Collection::default();
        for (operation, origin) in rest.take() {
            match (origin, operation) {
                (Origin::End(ended), _) => self.unwritten.push_end(ended),
                (Origin::FollowUp, operation) => follow_ups.push(operation, Origin::FollowUp),
                (origin, operation @ Operation::Begin(_)) => begins.push(operation, origin),
                _ => {}
            }
        }
        match begins.batch.len() {
            0 => {}
            // Others must not wait for it.
            1 if may_be_too_long => self.set_aside(begins, waited, MAX_REFUSED),
            _ => {
                if may_be_too_long {
                    self.queue.isolate_begins();
                }
                begins.batch.iter().filter_map(Operation::id).for_each(|id| self.queue.push_ready(id));
            }
        }
        if !follow_ups.is_empty() {
            let now = self.present();
            self.unwritten.postpone(Work::Batch(follow_ups), waited, now);
        }
    }

    /// Applies the outcomes to the memory, answers callers, and starts the attempts that have
    /// begun. Sets aside the operations that the store has not executed.
    fn apply(&mut self, mut collection: Collection, outcomes: Vec<Outcome>, waited: Waited) {
        let now = self.store.now();
        let mut moved = Vec::new();
        let mut begun = Vec::new();
        let mut answers = Vec::new();
        let mut locked = Collection::default();
        let mut refused = Vec::new();
        let mut unreached = Collection::default();
        for ((operation, origin), outcome) in collection.take().zip(outcomes) {
            match (origin, outcome) {
                (origin, Outcome::Locked) => locked.push(operation, origin),
                (origin, Outcome::NotReached) => unreached.push(operation, origin),
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
        // decides their order. The earliest due time is right in any order, because the store
        // tells the due time of a timeout that was to begin too early.
        for position in moved {
            self.queue.put_earlier(position, None, now);
        }
        self.queue.adapt_begins(&begun);
        let mut tasks = Vec::new();
        for (id, outcome) in begun {
            match outcome {
                Outcome::Begun(attempt) => tasks.extend(self.start(id, *attempt, !waited.is_first(), now)),
                Outcome::NotYet(due) => self.queue.put_again(Position { due, id }, now),
                _ => self.queue.remove(id),
            }
        }
        // Callers come first, because the executor may take its time.
        for (operation, outcome, reply) in answers {
            reply.send(answer_of(&operation, &outcome));
        }
        self.note(DurableLateCause::System);
        self.executors.hand_over(tasks);
        self.note(DurableLateCause::Executor);
        self.keep_unwritten(unreached, waited, None);
        self.wait_for_locks(locked, waited);
        for (operation, origin, error) in refused {
            self.figures().lock().store_errors += 1;
            if waited.is_first() {
                let timer = &self.settings.name;
                let store = self.store.describe();
                tracing::error!(%timer, %store, %error, "the store refuses the end or the begin of an attempt");
            }
            let mut part = Collection::default();
            part.push(operation, origin);
            self.set_aside(part, waited, MAX_REFUSED);
        }
    }

    /// Writes the work whose pause was over when the turn has `begun`, until the turn is over, and
    /// at least one part of it.
    pub(super) fn write_aside(&mut self, begun: Instant, until: Instant) {
        for (n, waiting) in self.unwritten.take_due(begun).into_iter().enumerate() {
            if self.failures.must_rejoin() || n > 0 && self.present() >= until {
                self.unwritten.leave(waiting);
                continue;
            }
            match waiting.work {
                Work::Batch(collection) => {
                    let collection = self.without_surplus(collection);
                    if !collection.is_empty() {
                        self.write(collection, waiting.waited, until);
                    }
                }
                Work::Call(call) => {
                    self.note(DurableLateCause::System);
                    self.write_alone(call, waiting.waited);
                    self.note(DurableLateCause::Store);
                }
            }
        }
    }

    /// Removes the begins for which there is no place any more.
    fn without_surplus(&mut self, collection: Collection) -> Collection {
        let mut free = if self.may_begin() { self.free_places() } else { 0 };
        let now = self.store.now();
        let mut added = HashMap::new();
        let [rest, surplus] = collection.divide(|operation, _| {
            let Operation::Begin(id) = operation else { return true };
            // After the keeper has joined again, its memory may have begun what waited here.
            let is_running = self.attempts.contains(*id);
            let may_begin = free > 0 && !is_running && self.queue.admits(*id, &mut added, &self.executors, now);
            free -= usize::from(may_begin);
            may_begin
        });
        for id in surplus.batch.iter().filter_map(Operation::id) {
            self.queue.push_ready(id);
        }
        rest
    }

    /// Sets aside operations whose timeouts other transactions have locked. Calls that have waited
    /// for [`MAX_WAIT`] fail.
    fn wait_for_locks(&mut self, locked: Collection, waited: Waited) {
        if !locked.is_empty() && waited.is_first() {
            self.report_locks(locked.batch.len());
        }
        let locked = locked.fail_calls(self.present(), MAX_WAIT, Some(&StoreError::Locked));
        if !locked.is_empty() {
            self.set_aside(locked, waited, MAX_PAUSE);
        }
    }

    /// Sets operations aside, and frees the places of the attempts whose ends they are.
    fn set_aside(&mut self, collection: Collection, waited: Waited, max: Duration) {
        let ends = collection.batch.iter().zip(&collection.origins);
        let ends = ends.filter(|(_, origin)| matches!(origin, Origin::End(_)));
        for id in ends.filter_map(|(end, _)| end.id()).collect::<Vec<_>>() {
            if let Some(topic) = self.attempts.park(id) {
                self.queue.leave(&topic);
            }
        }
        let now = self.present();
        self.unwritten.set_aside(Work::Batch(collection), waited, max, now);
    }
}
