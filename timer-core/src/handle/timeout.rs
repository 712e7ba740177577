//! What a caller does with one timeout.

use crate::clock;
use crate::context::deadline_after;
use crate::entry::state::{Cancel, Reset, State};
use crate::entry::{Owned, Timeout};
use crate::error::WouldDeadlock;
use crate::handle::timer::Timer;
use crate::shard::{MAX_PER_LOCK, Shard, shard_of};
use crate::sync::{event_of, is_running};
use crate::time::{Deadline, IMMEDIATE, Nanos};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};
use timer_executor::panics;

impl Timeout {
    /// Cancels it: `true` exactly once, for the caller that won.
    ///
    /// The task and what it captured are dropped (or told, see [`TimerTask::cancelled`](crate::TimerTask::cancelled)) before
    /// this returns, on this thread. Only a periodic task that is running just now is dropped by its run, as soon as it
    /// returns. `false` if the timeout was handed over to the executor already, was cancelled, or was handed back by `stop`.
    ///
    /// Costs a read-modify-write of the timeout and the way through its shard; O(1).
    ///
    /// # Panics
    ///
    /// Not by itself; a panic in the `Drop` of a capture or in `cancelled` goes to the caller. The accounts are settled by then.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// let request = Arc::new("a request");
    /// let kept = request.clone();
    /// let timeout = timer.new_timeout(Duration::from_secs(30), move |_| println!("{kept} timed out"))?;
    /// assert!(timeout.cancel());
    /// assert_eq!(Arc::strong_count(&request), 1);
    /// assert!(!timeout.cancel());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn cancel(&self) -> bool {
        let (cancel, owned) = self.win_cancel();
        if !self.settle_cancel(cancel) {
            return false;
        }
        if let Some(owned) = owned {
            owned.cancelled();
        }
        true
    }

    /// After the state word has decided: the counts and the wheel. Before user code.
    #[inline]
    pub(crate) fn settle_cancel(&self, cancel: Cancel) -> bool {
        match cancel {
            Cancel::Waiting => self.home().unlink_cancelled(self),
            Cancel::Queued | Cancel::Running => self.count_cancelled(cancel),
            Cancel::Lost => return false,
        }
        true
    }

    /// It is in no wheel: in an executor's queue, or in a run.
    #[cold]
    fn count_cancelled(&self, cancel: Cancel) {
        // Without its timer there is no count either.
        if let Some(context) = self.home().context_of(self) {
            context.counters.cancelled_elsewhere.add_contended(1);
            context.release_permit();
            if cancel == Cancel::Queued {
                context.counters.in_flight.unqueue();
            }
        }
    }

    /// Cancels many, of whatever timers, for less than [`cancel`](Self::cancel) costs for each: what lies all over the memory is
    /// fetched ahead, and each shard's lock is taken once per chunk of 64. How many this call has won.
    ///
    /// A panic in a `cancelled` hook or in the `Drop` of a capture is caught, counted and traced, and the call goes on.
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

    /// Cancels it as [`cancel`](Self::cancel) does, and then waits for a run of it that goes on in another thread, and for the drop of
    /// what that run owned: afterwards the task does not run and will not. `Ok` says whether this call has cancelled it.
    ///
    /// # Errors
    ///
    /// [`WouldDeadlock`], with nothing changed, if a run of this timeout is on this thread's stack, at any depth. Other circular
    /// waits (two tasks that wait for each other) are not detected.
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

    /// Moves a timeout that has not run: it is due `delay` from now. `false` if it has run, was cancelled or handed back.
    ///
    /// To move it later, which is what an idle timeout does with every packet, costs reading the clock and one
    /// read-modify-write of the timeout itself; the wheel finds out when the old deadline comes. To move it earlier goes
    /// through its shard. For a periodic task this sets the next run, from which a fixed rate then counts on; during a run it
    /// sets the run after it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let idle = timer.new_timeout(Duration::from_secs(30), |_| println!("closed"))?;
    /// assert_eq!(driver.advance(Duration::from_secs(29)), 0);
    /// assert!(idle.reset(Duration::from_secs(30)));
    /// assert_eq!(driver.advance(Duration::from_secs(29)), 0);
    /// assert_eq!(driver.advance(Duration::from_secs(1)), 1);
    /// assert!(!idle.reset(Duration::from_secs(30)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "reschedule")]
    #[inline]
    pub fn reset(&self, delay: Duration) -> bool {
        let now = self.now();
        let deadline = deadline_after(now, delay);
        // What is due now must not wait for the tick under which it is linked, even if its old deadline has passed.
        self.reset_to(deadline, now, delay.is_zero())
    }

    /// As [`reset`](Self::reset), to an instant; one that is past is now.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// let lease = timer.new_timeout(Duration::from_secs(10), |_| println!("lease is over"))?;
    /// let renewed = Instant::now() + Duration::from_secs(20);
    /// assert!(lease.reset_at(renewed));
    /// assert_eq!(lease.deadline(), renewed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset_at(&self, deadline: Instant) -> bool {
        let (now, at) = (self.now(), clock::nanos_of(deadline));
        let deadline = if at <= now { Deadline::down(at) } else { Deadline::up(at) };
        self.reset_to(deadline, now, at <= now)
    }

    #[inline]
    pub(crate) fn reset_to(&self, deadline: Deadline, now: Nanos, due: bool) -> bool {
        match self.state().reset(deadline) {
            Reset::Waiting(before) => {
                if deadline < before || due {
                    self.link_earlier(deadline, now);
                }
                true
            }
            Reset::Later => true,
            Reset::Lost => false,
        }
    }

    #[cold]
    #[inline(never)]
    fn link_earlier(&self, deadline: Deadline, now: Nanos) {
        // Without its timer it has ended, and a shard that is shut has given the entry out already.
        if let Some(context) = self.home().context_of(self) {
            let _ = self.home().submit(self.clone(), context.resolution.tick_from(deadline, now));
        }
    }

    /// Runs it now instead of later: the deadline becomes the present and it is handed over as soon as the worker gets to it. `false`
    /// if it is due, was handed over, or has ended. For a periodic task, the next run, and the phase restarts there; during a run,
    /// the one after.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let flush = timer.new_timeout(Duration::from_secs(60), |_| println!("flushed"))?;
    /// assert!(flush.expire_now());
    /// assert_eq!(driver.advance(Duration::ZERO), 1);
    /// assert!(!flush.expire_now());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expire_now(&self) -> bool {
        let now = self.now();
        match self.state().bring_forward(now) {
            Reset::Waiting(_) => {
                let _ = self.home().submit(self.clone(), IMMEDIATE);
                true
            }
            Reset::Later => true,
            Reset::Lost => false,
        }
    }

    /// Whether it was handed over to run, or has run. A periodic one only when it has ended by a panic.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let timeout = timer.new_timeout(Duration::from_millis(5), |me| assert!(me.is_expired()))?;
    /// assert!(!timeout.is_expired());
    /// driver.advance(Duration::from_millis(5));
    /// assert!(timeout.is_expired());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_expired(&self) -> bool {
        matches!(self.state().state(), State::Fired | State::Expired)
    }

    /// Whether it was cancelled, or handed back by `stop`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::new();
    /// let timeout = timer.new_timeout(Duration::from_secs(30), |_| {})?;
    /// timer.stop()?;
    /// assert!(timeout.is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_cancelled(&self) -> bool {
        matches!(self.state().state(), State::Dying | State::Cancelled)
    }

    /// When it is due, or was: the instant of the call plus the delay, to the nanosecond for the first 18 years of the
    /// timer (rounded up to about a millisecond after that). For a periodic task, the current or next run.
    ///
    /// A delay beyond the range of the clock gives a deadline that never comes.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, driver) = Timer::builder().build_manual()?;
    /// let timeout = timer.new_timeout(Duration::from_nanos(1_500_001), |_| {})?;
    /// assert_eq!(timeout.deadline(), driver.now() + Duration::from_nanos(1_500_001));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deadline(&self) -> Instant {
        clock::instant(self.state().deadline().nanos())
    }

    /// How long until it is due, on the timer's clock; zero when it is due or has ended. At most 584 years.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let timeout = timer.new_timeout(Duration::from_secs(30), |_| {})?;
    /// driver.advance(Duration::from_secs(10));
    /// assert_eq!(timeout.remaining(), Duration::from_secs(20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remaining(&self) -> Duration {
        match self.state().state() {
            State::Waiting | State::Queued | State::Running | State::Moved => {
                Duration::from_nanos(self.state().deadline().nanos().saturating_sub(self.now()))
            }
            State::Fired | State::Expired | State::Dying | State::Cancelled => Duration::ZERO,
        }
    }

    /// The timer that it was made by; `None` when the last [`Timer`] is gone.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::builder().name("leases").build()?;
    /// let timeout = timer.new_timeout(Duration::from_secs(30), |_| {})?;
    /// assert_eq!(timeout.timer().as_ref().map(Timer::name), Some("leases"));
    /// drop(timer);
    /// assert!(timeout.timer().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn timer(&self) -> Option<Timer> {
        let context = self.home().context_of(self)?;
        Timer::of_context(&context)
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

    /// The shard in whose wheel it waits, or waited.
    #[inline]
    fn home(&self) -> &'static Shard {
        shard_of(self.shard())
    }

    /// The present of its timer; after that is gone any time, for then it has ended and no time matters.
    #[inline]
    fn now(&self) -> Nanos {
        self.home().present().now()
    }

    /// Cancels, for those who have no caller to pass a panic to.
    fn cancel_and_contain(&self) -> bool {
        let (cancel, owned) = self.win_cancel();
        let won = self.settle_cancel(cancel);
        if let Some(owned) = owned {
            contain(owned);
        }
        won
    }
}

/// Ends a task that was cancelled; a panic of it is counted and traced.
fn contain(owned: Owned<&Timeout>) {
    let timeout = owned.timeout().clone();
    if let Err(message) = panics::catch(|| owned.cancelled())
        && let Some(context) = timeout.home().context_of(&timeout)
    {
        context.task_panicked(&message);
    }
}

/// Cancels at most [`MAX_PER_LOCK`]; how many were won.
fn cancel_chunk(chunk: &[&Timeout]) -> usize {
    let (mut owned, mut waiting) = (Vec::with_capacity(chunk.len()), Vec::with_capacity(chunk.len()));
    let mut won = 0;
    for timeout in chunk {
        let (cancel, task) = timeout.win_cancel();
        owned.extend(task);
        match cancel {
            Cancel::Waiting => waiting.push(*timeout),
            cancel => won += usize::from(timeout.settle_cancel(cancel)),
        }
    }
    won += waiting.len();
    while let Some(home) = waiting.first().map(|first| first.home()) {
        let mut here = Vec::with_capacity(waiting.len());
        waiting.retain(|timeout| {
            let is_here = timeout.home().index() == home.index();
            if is_here {
                here.push(*timeout);
            }
            !is_here
        });
        if !home.try_unlink_all(&here) {
            here.into_iter().for_each(|timeout| home.unlink_cancelled(timeout));
        }
    }
    owned.into_iter().for_each(contain);
    won
}

/// A timeout that is cancelled when this is dropped. A panic of user code in that is caught, counted and traced.
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

// Whatever a panic interrupts, a timeout is one word that is changed in one step.
impl UnwindSafe for Timeout {}
impl RefUnwindSafe for Timeout {}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state().state() {
            State::Waiting => "pending",
            State::Queued => "queued",
            State::Running | State::Moved => "running",
            State::Fired | State::Expired => "expired",
            State::Dying | State::Cancelled => "cancelled",
        };
        f.debug_struct("Timeout").field("state", &state).field("deadline", &self.deadline()).finish()
    }
}
