//! Ending attempts with the results of handlers.

use super::super::collect::Collection;
use super::super::{Ended, Outcome, micros};
use super::{Keeper, Running};
use crate::TimeoutId;
use crate::due::{CompleteError, How};
use crate::store::{Micros, Position, Store, StoreError, Work};
use crate::transaction::{Answers, Batch, Bury, Done, Retry};
use std::time::Duration;

/// The time after which a timeout of a topic without a handler is tried again.
const NO_HANDLER_PAUSE: Micros = 60_000_000;

impl<S: Store> Keeper<S> {
    /// Adds the end of an attempt to the batch.
    pub(super) fn add_end(&mut self, collection: &mut Collection, ended: Ended, now: Micros) {
        if self.must_rejoin || !collection.reserve(ended.id) {
            self.unwritten.push(ended);
            return;
        }
        let Ended { id, attempt, outcome } = &ended;
        let (id, attempt) = (*id, *attempt);
        let Some(running) = self.running.get(&id).filter(|running| running.attempt == attempt) else { return };
        let batch = &mut collection.batch;
        match outcome {
            Outcome::Completed => {
                self.forget_running(id);
                return;
            }
            Outcome::Done | Outcome::Expired => {
                batch.dones.push(Done { id, attempt, next: next_run(running, now) });
            }
            Outcome::NoHandler => {
                batch.retries.push(Retry { id, attempt, due: now.saturating_add(NO_HANDLER_PAUSE), forgive: true });
            }
            Outcome::NotStarted => {
                batch.retries.push(Retry { id, attempt, due: now, forgive: true });
            }
            Outcome::Failed(failure) => {
                let topic = self.settings.topics.get(&running.topic).map(|(topic, _)| topic);
                let tries = attempt - running.forgiven;
                let is_last = topic.is_some_and(|topic| tries >= topic.attempts);
                if outcome.buries() || is_last {
                    batch.buries.push(Bury { id, attempt, reason: failure.reason.clone() });
                } else {
                    let delay = match failure.how {
                        How::After(delay) => delay,
                        _ => topic.map_or(Duration::from_secs(1), |topic| topic.delay_after(tries)),
                    };
                    let due = now.saturating_add(micros(delay));
                    batch.retries.push(Retry { id, attempt, due, forgive: false });
                }
            }
        }
        collection.ends.push(ended);
    }

    pub(super) fn apply_ends(&mut self, batch: &Batch, answers: &Answers, now: Micros) {
        for (done, accepted) in batch.dones.iter().zip(&answers.dones) {
            let has_expired = self.running.get(&done.id).is_some_and(|running| running.has_expired);
            let figure = if has_expired { &self.figures.expired } else { &self.figures.done };
            figure.add(u64::from(*accepted));
            self.end(done.id, *accepted, done.next, now);
        }
        for (retry, accepted) in batch.retries.iter().zip(&answers.retries) {
            self.end(retry.id, *accepted, Some(retry.due), now);
            self.figures.retried.add(u64::from(*accepted));
        }
        for (bury, accepted) in batch.buries.iter().zip(&answers.buries) {
            self.end(bury.id, *accepted, None, now);
            self.figures.buried.add(u64::from(*accepted));
            if *accepted {
                tracing::warn!(timer = %self.settings.name, id = %bury.id, reason = %bury.reason, "dead letter");
            }
        }
    }

    /// Applies the answer to an end. A refused end leaves the entry alone, because it belongs to a
    /// later attempt.
    fn end(&mut self, id: TimeoutId, accepted: bool, due: Option<Micros>, now: Micros) {
        self.forget_running(id);
        if !accepted {
            self.figures.refused.add(1);
            return;
        }
        self.remove(id);
        if let Some(due) = due {
            self.put(Position { due, id }, now);
        }
    }

    /// Ends an attempt in a transaction of the user.
    pub(super) fn complete(
        &mut self,
        id: TimeoutId,
        attempt: u32,
        work: Work,
        now: Micros,
    ) -> Result<(), CompleteError> {
        let running = self.running.get(&id).filter(|running| running.attempt == attempt);
        let next = running.ok_or(CompleteError::Fenced).map(|running| next_run(running, now))?;
        match self.store.complete_in(Done { id, attempt, next }, work) {
            Ok(true) => {
                self.figures.done.add(1);
                self.remove(id);
                if let Some(due) = next {
                    self.put(Position { due, id }, now);
                }
                Ok(())
            }
            Ok(false) => Err(CompleteError::Fenced),
            Err(error) => {
                if matches!(error, StoreError::Fenced) {
                    // A handler that now returns `Ok` must not end its timeout without the work.
                    self.forget_running(id);
                }
                if matches!(error, StoreError::InDoubt(_) | StoreError::Disconnected(_) | StoreError::Fenced) {
                    self.fail(&error);
                }
                Err(error.into())
            }
        }
    }

    fn forget_running(&mut self, id: TimeoutId) {
        if let Some(running) = self.running.remove(&id) {
            self.overdue_running -= usize::from(running.is_overdue);
            self.overdue.push_ready(id);
            self.current.push_ready(id);
        }
    }
}

/// Returns the due time of the next run of a periodic timeout. Missed runs are skipped. Retries of
/// this run do not shift the next one.
fn next_run(running: &Running, now: Micros) -> Option<Micros> {
    let period = running.period.filter(|period| *period > 0)?;
    let missed = (now - running.planned).max(0) / period;
    Some(running.planned.saturating_add(period.saturating_mul(missed + 1)))
}
