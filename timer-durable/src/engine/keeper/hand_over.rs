//! Handing tasks to the executor.
//!
//! An executor is code of the user. If it panics, a task that it has dropped reports that its
//! attempt has failed, and the tasks that it has not touched are offered again.

use super::{Keeper, MIN_PAUSE};
use crate::store::Store;
use std::time::Duration;
use timer_executor::{ExecuteError, PanicMessage, Task, panics};

/// The longest pause before a rejected task is offered again.
const MAX_PAUSE: Duration = Duration::from_secs(1);

impl<S: Store> Keeper<S> {
    /// Hands the tasks of a batch to the executor.
    pub(super) fn hand_over(&mut self, mut tasks: Vec<Task>) {
        // One call for all of them wakes the threads of a pool once.
        if let Err(panic) = panics::catch(|| self.settings.executor.execute_batch(&mut tasks)) {
            self.report_executor(&panic);
        }
        if self.rejected.is_empty() {
            self.rejected_pause = MIN_PAUSE;
        }
        self.rejected.extend(tasks);
    }

    /// Offers rejected tasks to the executor again. The keeper calls it in each turn, and so when a
    /// handler has ended.
    pub(super) fn start_rejected(&mut self) {
        while let Some(task) = self.rejected.pop_front() {
            let executed = panics::catch(|| self.settings.executor.execute(task));
            let Err(ExecuteError(task)) = executed.unwrap_or_else(|panic| {
                self.report_executor(&panic);
                Ok(())
            }) else {
                continue;
            };
            if self.rejected.len() + 1 < self.occupied() {
                self.rejected.push_front(task);
                self.rejected_pause = (self.rejected_pause * 2).min(MAX_PAUSE);
                return;
            }
            // The executor has no task of this timer, so it may have no thread at all. A task that
            // is dropped, because the system has no thread either, reports that its attempt has
            // failed.
            let thread = std::thread::Builder::new().name(self.settings.name.clone());
            if let Err(error) = thread.spawn(move || task.run()) {
                tracing::warn!(timer = %self.settings.name, %error, "no thread for a handler that the executor rejects");
            }
        }
    }

    fn report_executor(&self, panic: &PanicMessage) {
        tracing::error!(timer = %self.settings.name, %panic, "the executor panicked");
    }
}
