//! Calls that are written alone, each as one transaction.

use super::Keeper;
use crate::TimeoutId;
use crate::answer::ScheduleAnswer;
use crate::engine::failures::MAX_PAUSE;
use crate::engine::unwritten::{LoneCall, MAX_WAIT, Waited, Work, answer_of};
use crate::error::Error;
use crate::figures::count;
use crate::message::Answer;
use crate::store::StoreError;
use crate::transaction::{Operation, Outcome};
use crate::work::{self, Transaction};
use std::time::Instant;

impl Keeper {
    /// Writes a call. If its timeout is locked or the store cannot be reached, the call waits,
    /// unless it has waited for too long.
    pub(super) fn write_alone(&mut self, call: LoneCall, waited: Waited) {
        let Some((call, error)) = self.try_alone(call) else { return };
        if error == StoreError::Busy {
            self.note_store_lock();
        }
        let now = self.present();
        if now >= call.waits_since(now) + MAX_WAIT || self.failures.clock().is_virtual() {
            return self.fail_alone(call, &error);
        }
        if error == StoreError::Locked {
            if waited.is_first() {
                self.report_locks(call.len());
            }
            self.unwritten.set_aside(Work::Call(call), waited, MAX_PAUSE, now);
        } else {
            self.unwritten.postpone(Work::Call(call), waited, now);
        }
    }

    /// Writes a call and sends the answer. Returns the call with the error if its timeout is locked
    /// or the store cannot be reached.
    fn try_alone(&mut self, call: LoneCall) -> Option<(LoneCall, StoreError)> {
        // A handler that has begun may end.
        let may_try = !self.failures.is_unreachable() || !self.failures.is_locked() && call.attempt().is_some();
        if let Some(error) = self.failures.outage().filter(|_| !may_try) {
            return Some((call, error));
        }
        match call {
            LoneCall::Many(batch, reply) => match self.schedule_many(&batch) {
                Err(Error::Store(error @ (StoreError::Busy | StoreError::Locked | StoreError::Disconnected(_)))) => {
                    return Some((LoneCall::Many(batch, reply), error));
                }
                answers => reply.send(answers),
            },
            LoneCall::Work(attempt, work, reply) => {
                let mut work = Some(work);
                let result = self.transact(attempt, &mut work);
                match (result, work) {
                    (Err(Error::Store(StoreError::Busy)), Some(work)) => {
                        return Some((LoneCall::Work(attempt, work, reply), StoreError::Busy));
                    }
                    (result, _) => reply.send(result.map(|()| Answer::Changed)),
                }
            }
            LoneCall::Pause(topic, is_paused, reply) => match self.set_paused(&topic, is_paused) {
                Err(Error::Store(error @ (StoreError::Busy | StoreError::Disconnected(_)))) => {
                    self.fail(&error);
                    return Some((LoneCall::Pause(topic, is_paused, reply), error));
                }
                result => reply.send(result),
            },
        }
        None
    }

    fn fail_alone(&mut self, call: LoneCall, error: &StoreError) {
        self.attempts.fail_work(call.attempt());
        call.fail(error);
    }

    /// Pauses or resumes a topic.
    fn set_paused(&mut self, topic: &str, is_paused: bool) -> Result<(), Error> {
        self.store.set_paused(topic, is_paused)?;
        self.queue.set_paused(topic, is_paused, self.store.now());
        self.publish_pauses();
        Ok(())
    }

    /// Schedules all timeouts or none.
    fn schedule_many(&mut self, batch: &[Operation]) -> Result<Vec<ScheduleAnswer>, Error> {
        let began = Instant::now();
        let result = self.store.write_all(batch);
        self.figures().lock().commit_time.record(began.elapsed());
        let outcomes = result.inspect_err(|error| {
            if !matches!(error, StoreError::Refused(_) | StoreError::Locked | StoreError::Unsupported(_)) {
                self.fail(error);
            }
        })?;
        let answers = batch.iter().zip(&outcomes).map(|(operation, outcome)| answer_of(operation, outcome));
        let answers = answers.collect::<Result<Vec<Answer>, _>>()?;
        self.figures().lock().commits += 1;
        self.figures().lock().operations += batch.len() as u64;
        let now = self.store.now();
        for (operation, outcome) in batch.iter().zip(&outcomes) {
            self.apply_call(operation, outcome, now);
        }
        answers.into_iter().map(Answer::scheduled).collect()
    }

    /// Runs work of the user in a transaction, which ends an attempt first if one is given. Applies
    /// the changes of the transaction to the memory. Leaves the work in place if another program
    /// has locked the store.
    fn transact(&mut self, attempt: Option<(TimeoutId, u32)>, work: &mut Option<work::Work>) -> Result<(), Error> {
        let begun = Instant::now();
        let now = self.store.now();
        let instance = self.store.instance();
        let end =
            attempt.map(|attempt| self.attempts.end_by_work(attempt, now).ok_or(StoreError::Fenced)).transpose()?;
        let mut executed = Vec::new();
        let mut is_last = true;
        let result = self.store.transact(&mut |store, connection| {
            if let Some(end) = &end {
                is_last = matches!(store.execute(end)?, Outcome::Changed(_));
            }
            let Some(work) = work.take().filter(|_| is_last) else { return Err(StoreError::Fenced) };
            let mut transaction =
                Transaction { store, connection, begun: (begun, now), instance, executed: Vec::new() };
            let may_commit = work.run(&mut transaction);
            executed = transaction.executed;
            if may_commit { Ok(()) } else { Err(StoreError::Failed("the work has failed".to_owned())) }
        });
        match result {
            Ok(()) => {
                if let Some(Operation::Done { id, next, then, .. }) = end {
                    let topic = self.attempts.complete(id);
                    count!(self.figures(), topic.as_deref(), done);
                    self.queue.remove(id);
                    self.put_next(id, topic.as_deref(), next, &then, now);
                }
                for (operation, outcome) in &executed {
                    self.apply_call(operation, outcome, now);
                }
                Ok(())
            }
            Err(StoreError::Busy) if work.is_some() => Err(StoreError::Busy.into()),
            Err(error) => {
                self.attempts.fail_work(attempt);
                let is_fenced = is_last && matches!(error, StoreError::Fenced);
                if let Some((id, _)) = attempt.filter(|_| is_fenced) {
                    // A handler that now returns `Ok` must not end its timeout without the work.
                    self.forget_running(id);
                }
                if is_fenced || matches!(error, StoreError::InDoubt(_) | StoreError::Disconnected(_)) {
                    self.fail(&error);
                }
                Err(error.into())
            }
        }
    }
}
