//! Other ways to cancel a timeout: many at once, with a wait for a run in progress, or at the end
//! of a scope.

use crate::entry::state::Cancel;
use crate::entry::{TaskRight, Timeout};
use crate::error::DeadlockError;
use crate::shard::{MAX_PER_LOCK, contain};
use crate::sync::{event_of, is_running};

impl Timeout {
    /// Cancels many timeouts, which may belong to several timers. Returns the number of timeouts
    /// that this call has cancelled.
    ///
    /// This costs less than a [`cancel`](Self::cancel) per timeout, because the call prefetches the
    /// entries and takes the lock of each shard once per chunk of 64 timeouts.
    ///
    /// A panic in a [`TimerTask::cancelled`](crate::TimerTask::cancelled) or in the `Drop` of a
    /// task is caught, counted and traced, and the call continues.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{Timeout, Timer};
    ///
    /// let timer = Timer::new();
    /// let delay = Duration::from_secs(30);
    /// let requests = (0..100).map(|_| (delay, |_: &Timeout| println!("timed out")));
    /// let timeouts: Vec<Timeout> = timer.new_timeouts(requests).into_iter().flatten().collect();
    /// assert_eq!(Timeout::cancel_all(&timeouts), 100);
    /// assert_eq!(timer.pending_timeouts(), 0);
    /// ```
    #[doc(alias = "invokeAll")]
    pub fn cancel_all<'a>(timeouts: impl IntoIterator<Item = &'a Timeout>) -> usize {
        let mut timeouts = timeouts.into_iter().fuse().inspect(|timeout| timeout.prefetch());
        let mut chunk = Vec::new();
        let mut next = Vec::new();
        chunk.extend(timeouts.by_ref().take(MAX_PER_LOCK));
        let mut won = 0;
        while !chunk.is_empty() {
            next.extend(timeouts.by_ref().take(MAX_PER_LOCK));
            won += cancel_chunk(&chunk);
            chunk.clear();
            std::mem::swap(&mut chunk, &mut next);
        }
        won
    }

    /// Cancels the timeout and waits for the end of a run in progress on another thread.
    ///
    /// The returned value is that of [`cancel`](Self::cancel). When the call returns, the task is
    /// not running and will not run again, and a run that was in progress has dropped its captures.
    /// The call does not wait for another thread that has cancelled the timeout and is about to
    /// drop the task. The owner of an [`Unprocessed`](crate::Unprocessed) timeout may still run it.
    ///
    /// # Errors
    ///
    /// Returns [`DeadlockError`] and changes nothing if a run of this timeout is on the stack of
    /// the calling thread. Other circular waits, such as two tasks that wait for each other, are
    /// not detected.
    ///
    /// # Panics
    ///
    /// Passes on a panic of the task's `Drop` or of `cancelled`, as [`cancel`](Self::cancel) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// let second = Duration::from_secs(1);
    /// let flush = timer.schedule_with_fixed_delay(second, second, |_| println!("flushed"))?;
    /// flush.cancel_and_wait()?;
    /// println!("no flush is running, and none will run");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_and_wait(&self) -> Result<bool, DeadlockError> {
        let this = self.address();
        if is_running(|running| running.timeout == this) {
            return Err(DeadlockError);
        }
        let won = self.cancel();
        if self.state().wait_for_run() {
            event_of(this).wait(None, || !self.state().wait_for_run());
        }
        Ok(won)
    }

    /// Turns the handle into a guard that cancels the timeout when it is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// {
    ///     let timeout = timer.new_timeout(Duration::from_secs(5), |_| println!("too slow"))?;
    ///     let _guard = timeout.cancel_on_drop();
    ///     println!("the work");
    /// }
    /// assert_eq!(timer.pending_timeouts(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_on_drop(self) -> CancelOnDrop {
        CancelOnDrop { timeout: self, armed: true }
    }
}

/// Drops a task that was cancelled. A panic of user code is counted and traced.
fn cancel_contained(right: TaskRight<&Timeout>) {
    contain(right.timeout().shard_id(), || right.cancelled());
}

/// Cancels at most [`MAX_PER_LOCK`] timeouts. Returns the number of timeouts that this call has
/// cancelled.
fn cancel_chunk(chunk: &[&Timeout]) -> usize {
    let mut rights = Vec::with_capacity(chunk.len());
    let mut waiting = Vec::with_capacity(chunk.len());
    let mut won = 0;
    for timeout in chunk {
        let (cancel, right) = timeout.decide_cancel();
        rights.extend(right);
        match cancel {
            Cancel::WasWaiting => waiting.push(*timeout),
            cancel => won += usize::from(timeout.finish_cancel(cancel)),
        }
    }
    won += waiting.len();
    waiting.sort_unstable_by_key(|timeout| timeout.shard_id().index);
    for here in waiting.chunk_by(|one, other| one.shard_id().index == other.shard_id().index) {
        let shard = here[0].shard();
        if !shard.try_unlink_all(here) {
            here.iter().for_each(|timeout| shard.unlink_cancelled(timeout));
        }
    }
    rights.into_iter().for_each(cancel_contained);
    won
}

/// A guard that cancels its timeout when it is dropped, made by [`Timeout::cancel_on_drop`].
///
/// A panic of the task's `Drop` or of [`TimerTask::cancelled`](crate::TimerTask::cancelled) is then
/// caught, counted and traced.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let timer = Timer::new();
/// let timeout = timer.new_timeout(Duration::from_secs(5), |_| println!("too slow"))?;
/// let guard = timeout.cancel_on_drop();
/// assert!(guard.reset(Duration::from_secs(10))); // A guard has the methods of a timeout.
/// let timeout = guard.disarm();
/// assert!(!timeout.is_cancelled());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it cancels the timeout at once"]
#[derive(Debug)]
pub struct CancelOnDrop {
    timeout: Timeout,
    armed: bool,
}

impl CancelOnDrop {
    /// Returns the timeout without cancelling it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let timer = Timer::new();
    /// let guard = timer.new_timeout(Duration::from_secs(5), |_| {})?.cancel_on_drop();
    /// assert!(guard.disarm().cancel());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "into_inner")]
    pub fn disarm(mut self) -> Timeout {
        self.armed = false;
        self.timeout.clone()
    }
}

impl std::ops::Deref for CancelOnDrop {
    type Target = Timeout;

    fn deref(&self) -> &Timeout {
        &self.timeout
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.armed {
            // A `Drop` must not pass on a panic of user code.
            contain(self.timeout.shard_id(), || self.timeout.cancel());
        }
    }
}
