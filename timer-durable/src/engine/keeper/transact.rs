//! Transactions of the user.

use super::Keeper;
use crate::TimeoutId;
use crate::done::Done;
use crate::error::Error;
use crate::figures::count;
use crate::store::{Store, StoreError};
use crate::transaction::{Operation, Outcome};
use crate::work::{Transaction, Work};
use std::time::Instant;

impl<S: Store> Keeper<S> {
    /// Runs work of the user in a transaction, which ends an attempt first if one is given. Applies
    /// the changes of the transaction to the memory. Leaves the work in place if another program
    /// has locked the store.
    pub(super) fn transact(&mut self, attempt: Option<(TimeoutId, u32)>, work: &mut Option<Work>) -> Result<(), Error> {
        let begun = Instant::now();
        let now = self.store.now();
        let end = match attempt {
            Some((id, attempt)) => {
                let running = self.running.get(&id).filter(|running| running.attempt == attempt);
                Some((id, self.done(id, running.ok_or(Error::Store(StoreError::Fenced))?, &Done::new(), now)))
            }
            None => None,
        };
        let instance = self.store.instance();
        let mut executed = Vec::new();
        let mut is_last = true;
        let result = self.store.transact(&mut |store| {
            if let Some((_, end)) = &end {
                is_last = matches!(store.execute(end)?, Outcome::Changed(_));
            }
            let Some(work) = work.take().filter(|_| is_last) else { return Err(StoreError::Fenced) };
            let mut transaction = Transaction { store, begun: (begun, now), instance, executed: Vec::new() };
            let may_commit = work.run(&mut transaction);
            executed = transaction.executed;
            if may_commit { Ok(()) } else { Err(StoreError::Failed("the work has failed".to_owned())) }
        });
        match result {
            Ok(()) => {
                if let Some((id, Operation::Done { next, then, .. })) = end {
                    let topic = self.running.get(&id).map(|running| running.topic.clone());
                    if let Some(running) = self.running.get(&id) {
                        running.progress.complete();
                        count!(self.figures, Some(&running.topic), done);
                    }
                    self.remove(id);
                    self.put_next(id, topic.as_deref(), next, &then, now);
                }
                executed.iter().for_each(|(operation, outcome)| _ = self.apply_call(operation, outcome, now));
                Ok(())
            }
            Err(StoreError::Busy) if work.is_some() => Err(StoreError::Busy.into()),
            Err(error) => {
                self.fail_work(attempt);
                let is_fenced = is_last && matches!(error, StoreError::Fenced);
                if let Some((id, _)) = end.filter(|_| is_fenced) {
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
