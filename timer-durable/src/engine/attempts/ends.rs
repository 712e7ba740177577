//! The operations that end attempts, by the results of their handlers.

use super::{Attempts, Running};
use crate::TimeoutId;
use crate::done::Done;
use crate::message::{AttemptEnd, AttemptResult};
use crate::retry::{How, Retry};
use crate::store::Micros;
use crate::time::micros;
use crate::transaction::{NextRun, Operation};
use std::time::Duration;

/// The time after which a timeout of a topic without a handler is tried again.
const NO_HANDLER_PAUSE: Micros = 60_000_000;

/// The failure of an attempt whose handler returns `Ok` after a transaction that was rolled back.
const NOT_COMMITTED: &str = "the transaction that was to end the attempt was not committed";

/// The end of an attempt.
pub(crate) enum End {
    /// The operation that ends it.
    Write(Operation),
    /// The store has ended it already.
    Completed,
    /// The attempt is not the last one, or the keeper has cut it off.
    Late,
}

impl Attempts {
    /// Returns the end of an attempt by its result.
    pub(crate) fn end(&self, ended: &AttemptEnd, now: Micros) -> End {
        let AttemptEnd { id, attempt, ref result } = *ended;
        let Some(running) = self.get(id, attempt) else { return End::Late };
        let failed = |failure: &Retry| self.failed(id, running, failure, now);
        End::Write(match result {
            // The handler may have ended before its work was done.
            _ if running.progress.has_completed() => return End::Completed,
            AttemptResult::CutOff(failure) => failed(failure),
            // The keeper has ended the attempt, and may have to write that again.
            _ if running.progress.is_cut_off() => return End::Late,
            // If the transaction was committed, this retry finds no attempt.
            AttemptResult::Done(_) if running.work_has_failed || running.progress.is_in_transaction() => {
                failed(&Retry::new(NOT_COMMITTED))
            }
            AttemptResult::Done(done) => match self.allow_follow_ups(done) {
                Ok(()) => self.done(id, running, done, now),
                Err(why) => failed(&Retry::new(why)),
            },
            AttemptResult::Expired => self.done(id, running, &Done::new(), now),
            AttemptResult::NoHandler => {
                Operation::Retry { id, attempt, due: now.saturating_add(NO_HANDLER_PAUSE), forgive: true }
            }
            AttemptResult::NotStarted => Operation::Retry { id, attempt, due: now, forgive: true },
            AttemptResult::Failed(failure) => failed(failure),
        })
    }

    /// Returns the operation by which a transaction of the user ends an attempt, or `None` if it is
    /// not the last one.
    pub(crate) fn end_by_work(&self, (id, attempt): (TimeoutId, u32), now: Micros) -> Option<Operation> {
        Some(self.done(id, self.get(id, attempt)?, &Done::new(), now))
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
            let letter = TimeoutId::made_at(now, self.instance);
            let next = next.map(|due| NextRun { due, letter });
            return Operation::Bury { id, attempt, reason: failure.reason.clone(), next };
        }
        let delay = match failure.how {
            How::After(delay) => delay,
            _ => rules.map_or(Duration::from_secs(1), |rules| rules.delay_after(tries, &mut self.random.borrow_mut())),
        };
        Operation::Retry { id, attempt, due: now.saturating_add(micros(delay)), forgive: false }
    }

    fn done(&self, id: TimeoutId, running: &Running, done: &Done, now: Micros) -> Operation {
        let then = self.follow_ups(running.then.as_deref(), done, now);
        let next = next_run(running, now).filter(|_| running.then.is_none() && !done.ends_series);
        Operation::Done { id, attempt: running.attempt, next, then }
    }
}

/// Returns the due time of the next run of a periodic timeout. Missed runs are skipped. Retries of
/// this run do not shift the next one.
fn next_run(running: &Running, now: Micros) -> Option<Micros> {
    let period = running.period.filter(|period| *period > 0)?;
    let missed = now.saturating_sub(running.planned).max(0) / period;
    Some(running.planned.saturating_add(period.saturating_mul(missed.saturating_add(1))))
}
