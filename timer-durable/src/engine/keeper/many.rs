//! Scheduling many timeouts in one commit.

use super::super::collect::answer_of;
use super::Keeper;
use crate::answer::ScheduleAnswer;
use crate::error::Error;
use crate::message::Answer;
use crate::store::{Store, StoreError};
use crate::transaction::Operation;
use std::time::Instant;

impl<S: Store> Keeper<S> {
    /// Schedules all timeouts or none.
    pub(super) fn schedule_many(&mut self, batch: &[Operation]) -> Result<Vec<ScheduleAnswer>, Error> {
        let began = Instant::now();
        let result = self.store.write_all(batch);
        self.figures.lock().commit_time.record(began.elapsed());
        let outcomes = result.inspect_err(|error| {
            if !matches!(error, StoreError::Refused(_) | StoreError::Locked | StoreError::Unsupported(_)) {
                self.fail(error);
            }
        })?;
        let answers = batch.iter().zip(&outcomes).map(|(operation, outcome)| answer_of(operation, outcome));
        let answers = answers.collect::<Result<Vec<Answer>, _>>()?;
        self.figures.lock().commits += 1;
        self.figures.lock().operations += batch.len() as u64;
        let now = self.store.now();
        for (operation, outcome) in batch.iter().zip(&outcomes) {
            self.apply_call(operation, outcome, now);
        }
        answers.into_iter().map(Answer::scheduled).collect()
    }
}
