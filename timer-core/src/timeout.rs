//! The caller's handle to one timeout.

use crate::entry::{AnyEntry, Head};
use crate::shard::Submitted;
use crate::state::{State, Word};
use crate::sync::Arc;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

/// One accepted timeout. A handle: clones are the same timeout, and dropping all of them does **not** cancel it.
///
/// All methods may be called from any thread, at any time, also from inside tasks and after the timer is gone. None blocks.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let timer = Timer::new();
/// let timeout = timer.new_timeout(Duration::from_secs(30), |_| println!("no answer"))?;
/// assert!(timeout.reset(Duration::from_secs(60)));
/// assert!(timeout.cancel());
/// assert!(timeout.is_cancelled() && !timeout.is_expired());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[doc(alias = "HashedWheelTimeout")]
#[doc(alias = "ScheduledFuture")]
#[doc(alias = "TimerTaskEntry")]
pub struct Timeout {
    entry: Arc<dyn AnyEntry>,
}

impl Timeout {
    #[inline]
    pub(crate) fn from_entry(entry: Arc<dyn AnyEntry>) -> Self {
        Self { entry }
    }

    #[inline]
    pub(crate) fn entry(&self) -> &Arc<dyn AnyEntry> {
        &self.entry
    }

    #[inline]
    pub(crate) fn head(&self) -> &Head {
        self.entry.head()
    }

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
    pub fn cancel(&self) -> bool {
        self.entry.cancel(self)
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
    pub fn reset(&self, delay: Duration) -> bool {
        let context = self.head().context();
        let now = context.clock.now();
        let deadline = context.deadline(now, delay);
        let moved = |word| Word::from_bits(word).reset(deadline).map(Word::to_bits);
        let Ok(before) = self.entry.state().update(moved) else {
            return false;
        };
        let before = Word::from_bits(before);
        // What is due now must not wait for the tick under which it is linked, even if its old deadline has passed.
        let sooner = deadline < before.deadline() || delay.is_zero();
        if sooner && before.is_waiting() {
            let tick = context.tick_of(deadline, now);
            // A shard that has closed has taken the entry out already.
            let _: Submitted = self.head().home().submit(self.entry.clone(), tick);
        }
        true
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
        self.entry.word().state() == State::Fired
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
        self.entry.word().state() == State::Cancelled
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
        self.head().context().clock.instant(self.entry.word().deadline().nanos())
    }
}

// Whatever a panic interrupts, a timeout is one word that is changed in one step.
impl UnwindSafe for Timeout {}
impl RefUnwindSafe for Timeout {}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.entry.word().state() {
            State::Pending | State::Repeating => "pending",
            State::Running | State::Moved => "running",
            State::Fired => "expired",
            State::Cancelled => "cancelled",
        };
        f.debug_struct("Timeout").field("state", &state).field("deadline", &self.deadline()).finish()
    }
}
