//! Further ways to cancel: many at once, with a wait for a run that goes on, at the end of a scope.

use crate::entry::state::Cancel;
use crate::entry::{TaskRight, Timeout};
use crate::error::WouldDeadlock;
use crate::shard::MAX_PER_LOCK;
use crate::sync::{event_of, is_running};
use std::fmt;
use timer_executor::panics;

impl Timeout {
    /// Cancels many, of whatever timers, for less than [`cancel`](Self::cancel) costs for each:
    /// what lies all over the memory is fetched ahead, and each shard's lock is taken once per
    /// chunk of 64. How many this call has won.
    ///
    /// A panic in a `cancelled` hook or in the `Drop` of a capture is caught, counted and traced,
    /// and the call goes on.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{Timeout, Timer};
    ///
    /// let timer = Timer::new();
    /// let requests = (0..100).map(|_| (Duration::from_secs(30), |_: &Timeout| println!("timed out")));
    /// let timeouts: Vec<Timeout> = timer.new_timeouts(requests).into_iter().flatten().collect();
    /// assert_eq!(Timeout::cancel_all(&timeouts), 100);
    /// assert_eq!(timer.pending_timeouts(), 0);
    /// ```
    #[doc(alias = "invokeAll")]
    pub fn cancel_all<'a>(timeouts: impl IntoIterator<Item = &'a Timeout>) -> usize {
        let mut timeouts = timeouts.into_iter().inspect(|timeout| timeout.prefetch());
        let (mut chunk, mut next) = (Vec::new(), Vec::new());
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

    /// Cancels it as [`cancel`](Self::cancel) does, and then waits for a run of it that goes on in
    /// another thread, and for the drop of what that run right: afterwards the task does not run
    /// and will not. `Ok` says whether this call has cancelled it. It does not wait for another
    /// canceller that is about to drop the task; one that `stop` has handed back may still be run
    /// by its owner.
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], with nothing changed, if a run of this timeout is on this thread's stack,
    /// at any depth. Other circular waits (two tasks that wait for each other) are not detected.
    ///
    /// # Panics
    ///
    /// As for [`cancel`](Self::cancel): a panic of user code that this call runs goes to the caller.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// let flush = timer.schedule_with_fixed_delay(Duration::ZERO, Duration::from_secs(1), |_| println!("flushed"))?;
    /// flush.cancel_and_wait()?;
    /// println!("no flush runs from here on: what it used may go");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_and_wait(&self) -> Result<bool, WouldDeadlock> {
        let this = self.address();
        if is_running(|running| running.timeout == this) {
            return Err(WouldDeadlock);
        }
        let won = self.cancel();
        if self.state().wait_for_run() {
            event_of(this).wait(None, || !self.state().wait_for_run());
        }
        Ok(won)
    }

    /// Ties it to a scope: it is cancelled when the guard is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// {
    ///     let _deadline = timer.new_timeout(Duration::from_secs(5), |_| println!("too slow"))?.cancel_on_drop();
    ///     println!("the work");
    /// }
    /// assert_eq!(timer.pending_timeouts(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_on_drop(self) -> CancelOnDrop {
        CancelOnDrop { timeout: self, armed: true }
    }

    /// Cancels, for those who have no caller to pass a panic to.
    fn cancel_and_contain(&self) -> bool {
        let (cancel, right) = self.win_cancel();
        let won = self.finish_cancel(cancel);
        if let Some(right) = right {
            contain(right);
        }
        won
    }
}

/// Ends a task that was cancelled; a panic of it is counted and traced.
fn contain(right: TaskRight<&Timeout>) {
    let timeout = right.timeout().clone();
    let Err(message) = panics::catch(|| right.cancelled()) else { return };
    if let Some(context) = timeout.context() {
        context.task_panicked(&message);
    }
}

/// Cancels at most [`MAX_PER_LOCK`]; how many were won.
fn cancel_chunk(chunk: &[&Timeout]) -> usize {
    let (mut right, mut waiting) = (Vec::with_capacity(chunk.len()), Vec::with_capacity(chunk.len()));
    let mut won = 0;
    for timeout in chunk {
        let (cancel, task) = timeout.win_cancel();
        right.extend(task);
        match cancel {
            Cancel::Waiting => waiting.push(*timeout),
            cancel => won += usize::from(timeout.finish_cancel(cancel)),
        }
    }
    won += waiting.len();
    while let Some(shard) = waiting.first().map(|first| first.shard()) {
        let mut here = Vec::with_capacity(waiting.len());
        waiting.retain(|timeout| {
            let is_here = timeout.shard().index() == shard.index();
            if is_here {
                here.push(*timeout);
            }
            !is_here
        });
        if !shard.try_unlink_all(&here) {
            here.into_iter().for_each(|timeout| shard.unlink_cancelled(timeout));
        }
    }
    right.into_iter().for_each(contain);
    won
}

/// A timeout that is cancelled when this is dropped. A panic of user code in that is caught,
/// counted and traced.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let timer = Timer::new();
/// let guard = timer.new_timeout(Duration::from_secs(5), |_| println!("too slow"))?.cancel_on_drop();
/// assert!(guard.reset(Duration::from_secs(10))); // a guard is a timeout
/// let timeout = guard.into_inner(); // not cancelled
/// assert!(!timeout.is_cancelled());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it cancels the timeout at once"]
pub struct CancelOnDrop {
    timeout: Timeout,
    armed: bool,
}

impl CancelOnDrop {
    /// The timeout, which is not cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let timer = Timer::new();
    /// let guard = timer.new_timeout(Duration::from_secs(5), |_| {})?.cancel_on_drop();
    /// assert!(guard.into_inner().cancel());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_inner(mut self) -> Timeout {
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
            self.timeout.cancel_and_contain();
        }
    }
}

impl fmt::Debug for CancelOnDrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancelOnDrop").field(&**self).finish()
    }
}
