//! The second part of `cancel` and `reset`, which changes the shard after the state word has
//! decided.

use super::{Shard, shard_of};
use crate::clock;
use crate::deadline::{Deadline, Nanos};
use crate::entry::state::{Cancel, Reset};
use crate::entry::{ShardId, TaskRight, Timeout};
use crate::error::RejectReason;
use crate::sync::Arc;
use crate::timer_context::TimerContext;
use timer_executor::panics::{self, PanicMessage};

/// Calls user code. Returns `None` if it panics. The panic is counted and traced if the timer that
/// leases the shard with this name still exists.
#[inline]
pub(crate) fn contain<R>(id: ShardId, user_code: impl FnOnce() -> R) -> Option<R> {
    panics::catch(user_code).inspect_err(|message| report_panic(message, id)).ok()
}

#[cold]
fn report_panic(message: &PanicMessage, id: ShardId) {
    if let Some(context) = shard_of(id).context(id) {
        context.task_panicked(message);
    }
}

impl Timeout {
    /// Returns the shard in whose wheel the entry waits or has waited.
    #[inline]
    pub(crate) fn shard(&self) -> &'static Shard {
        shard_of(self.shard_id())
    }

    /// Returns the timer's context. Returns `None` once the timer is gone.
    pub(crate) fn context(&self) -> Option<Arc<TimerContext>> {
        self.shard().context(self.shard_id())
    }

    /// Returns the current time of the timer. Once the timer is gone, that is the system's current
    /// time.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.shard().now_of(self.shard_id(), clock::now)
    }

    /// Counts a cancel that the state word has decided, and unlinks the entry. Returns `false` if
    /// the cancel was lost. The caller drops the task only after this call, because user code runs
    /// last.
    #[inline]
    pub(crate) fn finish_cancel(&self, cancel: Cancel) -> bool {
        match cancel {
            Cancel::WasWaiting => self.shard().unlink_cancelled(self),
            Cancel::WasUnlinked => self.shard().unlink_if_linked(self),
            Cancel::WasQueued => self.end_in_context(TimerContext::end_cancelled_in_queue),
            Cancel::WasRunning => self.end_in_context(TimerContext::end_cancelled),
            Cancel::Lost => return false,
        }
        true
    }

    /// Ends a timeout that is in no wheel. A timer that is gone has no counters.
    #[cold]
    fn end_in_context(&self, end: impl FnOnce(&TimerContext)) {
        if let Some(context) = self.context() {
            end(&context);
        }
    }

    /// Moves the timeout to `deadline`, which was computed at `now`. Returns `false` if it has
    /// ended.
    ///
    /// If the deadline is due now, the entry is linked again even if its old deadline has passed,
    /// because it must not wait for the tick under which it was linked.
    #[inline]
    pub(crate) fn reset_to(&self, deadline: Deadline, now: Nanos) -> bool {
        self.state().postpone(deadline, deadline.is_due(now)) || self.move_or_link(deadline, now)
    }

    /// Moves the timeout if it has ended, has to move in the wheel, or is in none.
    // Out of line, so that a reset to a later deadline saves no registers.
    #[inline(never)]
    fn move_or_link(&self, deadline: Deadline, now: Nanos) -> bool {
        self.state().is_linked() && self.shard().move_earlier(self, deadline, now)
            || self.finish_reset(self.state().reset(deadline, deadline.is_due(now)), deadline, now)
    }

    /// Links the entry if a reset that the state word has decided requires it. Returns `false` if
    /// the reset was lost.
    #[inline]
    pub(crate) fn finish_reset(&self, reset: Reset, deadline: Deadline, now: Nanos) -> bool {
        match reset {
            Reset::MustLink => self.link_earlier(deadline, now),
            Reset::WasQueued => self.leave_queue(deadline, now),
            Reset::Done => {}
            Reset::Lost => return false,
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn link_earlier(&self, deadline: Deadline, now: Nanos) {
        // If the timer is gone, the timeout has ended. If the shard is closed, `stop` has taken the
        // entry out.
        if let Some(context) = self.context() {
            let _ = self.link(context.resolution.tick_from(deadline, now));
        }
    }

    /// Links an entry that was moved out of the executor's queue.
    #[cold]
    fn leave_queue(&self, deadline: Deadline, now: Nanos) {
        let Some(context) = self.context() else { return };
        let right = self.link_again(deadline, now, &context);
        // The timeout is linked or has ended when it leaves the count. Its task is dropped
        // afterwards, because a `Drop` of the user may wait for the count.
        context.leave_queue();
        if let Some(right) = right {
            context.contain(|| right.cancelled());
        }
    }

    /// Links an entry that waits again. If the timer was stopped and the entry still waits, cancels
    /// it and returns the right to its task.
    pub(crate) fn link_again(
        &self,
        deadline: Deadline,
        now: Nanos,
        context: &TimerContext,
    ) -> Option<TaskRight<Timeout>> {
        if self.link(context.resolution.tick_from(deadline, now)).is_ok() {
            return None;
        }
        // The entry is in no wheel, unless another thread has linked it since. In that case it may
        // be queued or run, or `stop` may be about to end it, and the state word decides.
        self.clone().cancel_by_stop().inspect(|_| context.end_cancelled())
    }

    /// Links the entry under `tick`, unless it has ended or is linked earlier.
    ///
    /// # Errors
    ///
    /// [`RejectReason::Stopped`] if the shard is closed.
    pub(crate) fn link(&self, tick: u64) -> Result<(), RejectReason> {
        self.shard().submit(self.clone(), tick)?;
        self.shard().confirm_link(self);
        Ok(())
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use crate::Timer;
    use crate::sync::{Arc, AtomicUsize, Mutex, Ordering};
    use std::time::Duration;
    use timer_executor::{ExecuteError, Task, TaskExecutor};

    /// Keeps the tasks that it gets.
    #[derive(Default)]
    struct Keeper(Mutex<Vec<Task>>);

    impl TaskExecutor for Keeper {
        fn execute(&self, task: Task) -> Result<(), ExecuteError> {
            self.0.lock().push(task);
            Ok(())
        }
    }

    #[test]
    fn a_queued_task_goes_by_one_clock_when_its_timer_is_gone() {
        const HOUR: Duration = Duration::from_secs(3_600);
        let (keeper, ran) = (Arc::new(Keeper::default()), Arc::<AtomicUsize>::default());
        let (timer, mut driver) = Timer::builder().executor(keeper.clone()).build_manual().unwrap();
        let timeouts = [(); 2].map(|()| {
            let ran = ran.clone();
            timer.new_timeout(HOUR, move |_| _ = ran.fetch_add(1, Ordering::Relaxed)).unwrap()
        });
        driver.advance(HOUR);
        assert_eq!(keeper.0.lock().len(), 2, "they are queued");
        let now = driver.now();
        drop((timer, driver));
        assert!(timeouts[0].reset(Duration::from_secs(5)));
        assert_eq!(timeouts[0].deadline(), now + Duration::from_secs(5));
        let tasks = std::mem::take(&mut *keeper.0.lock());
        tasks.into_iter().for_each(Task::run);
        assert_eq!(ran.load(Ordering::Relaxed), 1, "the other one is due in five seconds");
        assert!(timeouts[0].is_cancelled() && timeouts[1].is_expired());
    }
}
