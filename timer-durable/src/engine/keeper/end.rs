//! Ending attempts with the results of handlers.

use super::super::collect::{Collection, Origin};
use super::{Keeper, Running};
use crate::TimeoutId;
use crate::message::{AttemptEnd, AttemptResult};
use crate::retry::{CompleteError, How};
use crate::store::{Micros, Position, Store, StoreError, Work};
use crate::time::micros;
use crate::transaction::{Operation, Outcome};
use std::time::Duration;

/// The time after which a timeout of a topic without a handler is tried again.
const NO_HANDLER_PAUSE: Micros = 60_000_000;

impl<S: Store> Keeper<S> {
    /// Adds the end of an attempt to the batch.
    pub(super) fn add_end(&mut self, collection: &mut Collection, ended: AttemptEnd, now: Micros) {
        if self.must_rejoin || collection.has(ended.id) {
            self.unwritten.push(ended);
            return;
        }
        let AttemptEnd { id, attempt, result } = &ended;
        let (id, attempt) = (*id, *attempt);
        let Some(running) = self.running.get(&id).filter(|running| running.attempt == attempt) else { return };
        let operation = match result {
            AttemptResult::Completed => {
                self.forget_running(id);
                return;
            }
            AttemptResult::Done | AttemptResult::Expired => {
                Operation::Done { id, attempt, next: next_run(running, now) }
            }
            AttemptResult::NoHandler => {
                Operation::Retry { id, attempt, due: now.saturating_add(NO_HANDLER_PAUSE), forgive: true }
            }
            AttemptResult::NotStarted => Operation::Retry { id, attempt, due: now, forgive: true },
            AttemptResult::Failed(failure) => {
                let rules = self.settings.topics.get(&running.topic).map(|(rules, _)| rules);
                let tries = attempt - running.forgiven;
                let is_last = rules.is_some_and(|rules| tries >= rules.attempts);
                if failure.how == How::Dead || is_last {
                    Operation::Bury { id, attempt, reason: failure.reason.clone() }
                } else {
                    let delay = match failure.how {
                        How::After(delay) => delay,
                        _ => rules.map_or(Duration::from_secs(1), |rules| rules.delay_after(tries)),
                    };
                    Operation::Retry { id, attempt, due: now.saturating_add(micros(delay)), forgive: false }
                }
            }
        };
        collection.push(operation, Origin::End(ended));
    }

    /// Applies the outcome of an end. A refused end leaves the entry alone, because it belongs to a
    /// later attempt.
    pub(super) fn apply_end(&mut self, operation: Operation, outcome: &Outcome, now: Micros) {
        let Some(id) = operation.id() else { return };
        let running = self.forget_running(id);
        if !matches!(outcome, Outcome::Changed(_)) {
            self.figures.refused.add(1);
            return;
        }
        self.remove(id);
        match operation {
            Operation::Done { next, .. } => {
                let has_expired = running.is_some_and(|running| running.has_expired);
                let figure = if has_expired { &self.figures.expired } else { &self.figures.done };
                figure.add(1);
                if let Some(due) = next {
                    self.put(Position { due, id }, now);
                }
            }
            Operation::Retry { due, .. } => {
                self.figures.retried.add(1);
                self.put(Position { due, id }, now);
            }
            Operation::Bury { reason, .. } => {
                self.figures.buried.add(1);
                tracing::warn!(timer = %self.settings.name, %id, %reason, "dead letter");
            }
            _ => {}
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
        match self.store.complete_in(id, attempt, next, work) {
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

    fn forget_running(&mut self, id: TimeoutId) -> Option<Running> {
        let running = self.running.remove(&id)?;
        if running.is_parked {
            self.parked -= 1;
        } else {
            self.overdue_running -= usize::from(running.is_overdue);
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
    let missed = (now - running.planned).max(0) / period;
    Some(running.planned.saturating_add(period.saturating_mul(missed + 1)))
}
