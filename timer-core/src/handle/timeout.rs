//! What a caller does with one timeout.

use crate::clock;
use crate::context::{deadline_after, deadline_at};
use crate::entry::Timeout;
use crate::entry::state::State;
use crate::handle::timer::Timer;
use crate::timer::engine_of;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

impl Timeout {
    /// Cancels it: `true` exactly once, for the caller that won.
    ///
    /// The task and what it captured are dropped (or told, see [`TimerTask::cancelled`](crate::TimerTask::cancelled)) before
    /// this returns, on this thread. Only a periodic task that is running just now is dropped by
    /// its run, as soon as it returns. `false` if the task has started, the timeout was cancelled,
    /// or was handed back by `stop`. What waits in an executor's queue can be cancelled.
    ///
    /// Costs a read-modify-write of the timeout and the way through its shard; O(1).
    ///
    /// # Panics
    ///
    /// Not by itself; a panic in the `Drop` of a capture or in `cancelled` goes to the caller. All
    /// is counted by then.
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
        let (cancel, right) = self.win_cancel();
        if !self.finish_cancel(cancel) {
            return false;
        }
        if let Some(right) = right {
            right.cancelled();
        }
        true
    }

    /// Moves a timeout that has not run: it is due `delay` from now. `false` if it has run, was
    /// cancelled or handed back.
    ///
    /// To move it later, which is what an idle timeout does with every packet, costs reading the
    /// clock and one read-modify-write of the timeout itself; the wheel finds out when the old
    /// deadline comes. To move it earlier goes through its shard. For a periodic task this sets the
    /// next run, from which a fixed rate then counts on; during a run it sets the run after it.
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
        // What is due now must not wait for the tick under which it is linked, even if its old
        // deadline has passed.
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
        let now = self.now();
        let deadline = deadline_at(now, deadline);
        self.reset_to(deadline, now, deadline.is_due(now))
    }

    /// Runs it now instead of later: the deadline becomes the present and it is handed over as soon
    /// as the worker gets to it. `false` if it is due, was handed over, or has ended. For a
    /// periodic task, the next run, and the phase restarts there; during a run, the one after.
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
        self.bring_forward()
    }

    /// Whether its task has started, or has run. A periodic one only when it has ended by a panic.
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

    /// When it is due, or was: the instant of the call plus the delay, to the nanosecond for the
    /// first 18 years of the system's uptime (rounded up to 32 ns after that). For a periodic task,
    /// the current or next run.
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

    /// How long until it is due, on the timer's clock; zero when it is due or has ended. At most
    /// 584 years.
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
        engine_of(self.shard_id()).and_then(Timer::try_from_engine)
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
