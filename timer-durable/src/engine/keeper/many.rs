//! Scheduling many timeouts in one commit.

use super::super::collect::{answer_of, insert};
use super::Keeper;
use crate::answer::ScheduleAnswer;
use crate::message::{Answer, Reply};
use crate::new_timeout::NewTimeout;
use crate::store::{Micros, Store, StoreError};
use crate::transaction::Operation;
use std::time::Instant;

impl<S: Store> Keeper<S> {
    /// Schedules all timeouts or none.
    pub(super) fn schedule_many(&mut self, many: Vec<NewTimeout>, reply: Reply<Vec<ScheduleAnswer>>, now: Micros) {
        let instance = self.store.instance();
        let batch: Vec<Operation> = many.into_iter().map(|new| Operation::Insert(insert(new, now, instance))).collect();
        let began = Instant::now();
        let result = self.store.write_all(&batch);
        self.figures.lock().commit_time.record(began.elapsed());
        let outcomes = match result {
            Ok(outcomes) => outcomes,
            Err(error) => {
                reply.fail(&error);
                if !matches!(error, StoreError::Refused(_) | StoreError::Locked | StoreError::Unsupported(_)) {
                    self.fail(&error);
                }
                return;
            }
        };
        let answers: Result<Vec<Answer>, _> =
            batch.iter().zip(&outcomes).map(|(operation, outcome)| answer_of(operation, outcome)).collect();
        if answers.is_ok() {
            self.figures.lock().commits += 1;
            self.figures.lock().operations += batch.len() as u64;
            for (operation, outcome) in batch.iter().zip(&outcomes) {
                self.apply_call(operation, outcome, now);
            }
        }
        reply.send(answers.and_then(|answers| answers.into_iter().map(Answer::scheduled).collect()));
    }
}
