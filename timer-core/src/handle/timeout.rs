//! The methods of [`Timeout`] that cancel, move and observe it.

use crate::clock;
use crate::deadline::Deadline;
use crate::engine::engine_of;
use crate::entry::state::State;
use crate::entry::{Timeout, period_nanos};
use crate::handle::timer::Timer;
use crate::sync::Ordering;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

impl Timeout {
    /// Cancels the timeout. Returns `true` for the one caller that has cancelled it.
    ///
    /// Returns `false` if a task that runs once has started, or if the timeout was cancelled or
    /// returned by `stop` before. A task that waits in the queue of an executor can still be
    /// cancelled, and so can a periodic task during a run.
    ///
    /// Before the call returns, it drops the task with its captures, or calls
    /// [`TimerTask::cancelled`](crate::TimerTask::cancelled), on the calling thread. The exception
    /// is a periodic task in the middle of a run. That run drops it when it ends.
    ///
    /// Cancelling takes O(1) time, a read-modify-write of the timeout and an access to its shard.
    ///
    /// # Panics
    ///
    /// Passes on a panic of the task's `Drop` or of `cancelled`. The timeout is cancelled and
    /// counted by then.
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
    /// let delay = Duration::from_secs(30);
    /// let timeout = timer.new_timeout(delay, move |_| println!("{kept} timed out"))?;
    /// assert!(timeout.cancel());
    /// assert_eq!(Arc::strong_count(&request), 1);
    /// assert!(!timeout.cancel());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn cancel(&self) -> bool {
        let (cancel, right) = self.decide_cancel();
        if !self.finish_cancel(cancel) {
            return false;
        }
        if let Some(right) = right {
            right.cancelled();
        }
        true
    }

    /// Moves the deadline to `delay` from now. Returns `false` if a task that runs once has
    /// started, or if the timeout was cancelled or returned by `stop`.
    ///
    /// Moving a deadline later, as an idle timeout does with every packet, costs a reading of the
    /// clock and one read-modify-write of the timeout. The worker relinks the timeout when the old
    /// deadline has come. Moving it earlier also takes an access to its shard.
    ///
    /// A timeout that waits in the queue of an executor leaves the queue, also for a delay of zero.
    ///
    /// For a periodic task this sets the next run, or during a run the one after it. A fixed rate
    /// counts on from the new deadline.
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
        self.reset_to(Deadline::after(now, delay), now)
    }

    /// Moves the deadline to an instant. If that is past, the timeout is due now. Otherwise the
    /// same as [`reset`](Self::reset).
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
        let now = self.now();
        self.reset_to(Deadline::at(|| now, clock::nanos_of(deadline)), now)
    }

    /// Moves the deadline to the current time, so that the task runs as soon as the worker reaches
    /// it. Returns `false` if the timeout was due already, was handed over, or has ended.
    ///
    /// For a periodic task this moves the next run, or during a run the one after it. A fixed rate
    /// counts on from the new deadline.
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
        let deadline = Deadline::down(now);
        self.finish_reset(self.state().bring_forward(deadline), deadline, now)
    }

    /// Gives a periodic task another period, or another delay between its runs. Returns `false` and
    /// changes nothing if the task is not periodic, if it has ended, or if `period` is zero.
    ///
    /// The current deadline stays. The new period is used when the run in progress, or the next
    /// one, ends and sets the deadline of the following run. A task can therefore choose the time
    /// of its next run itself. If a run ends on another thread during the call, the new period may
    /// begin one run later. Call [`reset`](Self::reset) as well to move the next run. A period is
    /// at most 584 years. The call takes O(1) time and no lock.
    ///
    /// # Examples
    ///
    /// A poll that slows down while it finds nothing:
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let second = Duration::from_secs(1);
    /// let poll = timer.schedule_at_fixed_rate(second, second, |_| println!("looked for mail"))?;
    /// assert_eq!(driver.advance(Duration::from_secs(10)), 10);
    /// assert!(poll.reset_period(Duration::from_secs(60)));
    /// assert_eq!(driver.advance(Duration::from_secs(61)), 2); // after 1 s and after 61 s
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "set_period")]
    pub fn reset_period(&self, period: Duration) -> bool {
        let goes_on = matches!(self.state().state(), State::Waiting | State::Queued | State::Running | State::Moved);
        let nanos = period_nanos(period).filter(|_| goes_on);
        let (Some(shared), Some(nanos)) = (self.period(), nanos) else { return false };
        // ORDERING: Relaxed, because the period is the only value that is passed on.
        shared.store(nanos, Ordering::Relaxed);
        true
    }

    /// Returns `true` if the task has started. For a periodic task, returns `true` once a run has
    /// panicked, because no further run follows.
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

    /// Returns `true` if the timeout was cancelled or returned by `stop`.
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

    /// Returns the deadline, the instant of the scheduling call plus the delay. For a periodic
    /// task, returns the deadline of the current or next run.
    ///
    /// The deadline is exact to the nanosecond during the first 18 years of the system's uptime,
    /// and rounded up to 32 ns after that. A delay beyond the range of the clock gives a deadline
    /// that never comes.
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

    /// Returns the time until the deadline by the timer's clock, at most 584 years. Returns zero if
    /// the timeout is due or has ended.
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

    /// Returns the timer that accepted this timeout. Returns `None` once the last [`Timer`] handle
    /// is gone.
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
        engine_of(self.shard_id()).and_then(Timer::try_from_engine)
    }
}

// A panic cannot leave a timeout half changed, because each change is one step of its state word.
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
        // An `Instant` would print numbers that mean nothing to a reader.
        let deadline = self.state().deadline().nanos();
        let now = self.now();
        let distance = Duration::from_nanos(deadline.abs_diff(now));
        let due = if now <= deadline { format!("in {distance:?}") } else { format!("{distance:?} ago") };
        f.debug_struct("Timeout").field("state", &state).field("due", &format_args!("{due}")).finish()
    }
}
