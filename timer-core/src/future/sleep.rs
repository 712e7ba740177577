//! A future that is ready at its deadline.

use super::registration::Registration;
use crate::clock;
use crate::config::MissedTickBehavior;
use crate::deadline::{Deadline, Nanos};
use crate::entry::{Period, Timeout, period_nanos};
use crate::shard::{BlockId, shard_of};
use crate::sync::Arc;
use crate::timer_context::TimerContext;
use core::fmt;
use core::pin::Pin;
use std::time::{Duration, Instant};

/// A future that is ready at its deadline, made by [`Timer::sleep`](crate::Timer::sleep) and
/// [`Timer::sleep_until`](crate::Timer::sleep_until).
///
/// The future is [`Unpin`], may move between tasks and threads, and can be used again after a
/// reset. Dropping it cancels it. The first poll that has to wait for a deadline takes 48 bytes of
/// heap. A reset before the deadline takes none. It stays ready if it is polled again. On virtual
/// time this holds until its timer is stopped.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// # futures::executor::block_on(async {
/// let timer = Timer::new();
/// let mut idle = timer.sleep(Duration::from_millis(1));
/// idle.reset_after(Duration::from_millis(2));
/// (&mut idle).await;
/// assert!(idle.is_elapsed());
/// # });
/// ```
#[doc(alias = "Delay")]
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    /// The name of the timer's shards. `None` for a timer that has no shards.
    pub(super) block: Option<BlockId>,
    /// Whether the timer had a worker, or needed none, when the future was made.
    pub(super) started: bool,
    /// Whether the timer is manual, so that no other timer can take its place.
    pub(super) is_virtual: bool,
    pub(super) deadline: Deadline,
    /// `None` until a poll has to wait for the deadline.
    pub(super) registration: Option<Registration>,
}

impl Sleep {
    #[inline]
    pub(crate) fn new(block: Option<BlockId>, started: bool, is_virtual: bool, deadline: Deadline) -> Self {
        Self { block, started, is_virtual, deadline, registration: None }
    }

    /// Moves the deadline to `deadline`, whether or not the future was ready before.
    ///
    /// If a task waits for the future, that task is woken at the new deadline. If the future was
    /// ready, poll it again. While the future waits, a later deadline costs a reading of the clock
    /// and one read-modify-write of its entry.
    ///
    /// This method has the signature of tokio's. [`reset_at`](Self::reset_at) needs no pin.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::pin::pin;
    /// # use timer_core::time::{Duration, Instant, sleep};
    /// let mut idle = pin!(sleep(Duration::from_secs(30)));
    /// let deadline = Instant::now() + Duration::from_secs(60);
    /// idle.as_mut().reset(deadline);
    /// assert_eq!(idle.deadline(), deadline);
    /// ```
    #[inline]
    pub fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
        self.reset_at(deadline);
    }

    /// Moves the deadline to an instant, as [`reset`](Self::reset) does. If that is past, the future
    /// is ready at its next poll, or its task is woken at once if it waits.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use timer_core::Timer;
    /// let mut idle = Timer::new().sleep(Duration::from_secs(30));
    /// let deadline = Instant::now() + Duration::from_secs(60);
    /// idle.reset_at(deadline);
    /// assert_eq!(idle.deadline(), deadline);
    /// ```
    #[inline]
    pub fn reset_at(&mut self, deadline: Instant) {
        let when = clock::nanos_of(deadline);
        // A far deadline does not need an exact reading.
        let now = self.now_or(|| clock::now_or_coarse(when));
        self.set(Deadline::at(|| now, when), now);
    }

    /// Moves the deadline to `delay` from now on the clock of the timer, as [`reset`](Self::reset)
    /// does.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let mut idle = timer.sleep(Duration::from_secs(30));
    /// driver.advance(Duration::from_secs(29));
    /// idle.reset_after(Duration::from_secs(30));
    /// driver.advance(Duration::from_secs(29));
    /// assert!(!idle.is_elapsed());
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    #[inline]
    pub fn reset_after(&mut self, delay: Duration) {
        let now = self.now();
        self.set(Deadline::after(now, delay), now);
    }

    /// Returns the deadline, to the nanosecond for the first 18 years of the clock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, driver) = Timer::builder().build_manual()?;
    /// let second = Duration::from_secs(1);
    /// assert_eq!(timer.sleep(second).deadline(), driver.now() + second);
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn deadline(&self) -> Instant {
        clock::instant(self.deadline.nanos())
    }

    /// Returns `true` if the deadline has come, whether or not the future was polled since.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let sleep = timer.sleep(Duration::from_secs(1));
    /// assert!(!sleep.is_elapsed());
    /// driver.advance(Duration::from_secs(1));
    /// assert!(sleep.is_elapsed());
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn is_elapsed(&self) -> bool {
        self.entry().is_some_and(Timeout::is_expired) || self.deadline.is_due(self.due_by(self.now()))
    }

    /// Moves a deadline that has come to the next tick of an interval. Returns the instant of the
    /// tick that has come.
    ///
    /// A wheel whose tick is longer than [`TOLERANCE`] may itself delay the poll by one tick, so a
    /// tick of the interval is then missed only if it is later than that.
    pub(crate) fn next_tick(&mut self, period: Duration, missed: MissedTickBehavior) -> Instant {
        let due = self.deadline.nanos();
        let now = self.now();
        let period = period_nanos(period).unwrap_or(1);
        let next = if now <= due.saturating_add(TOLERANCE) {
            due.saturating_add(period)
        } else {
            let tick = Some(self.tick_nanos()).filter(|tick| *tick > TOLERANCE);
            Period::Rate(period).next(due, now, tick.unwrap_or(0), missed)
        };
        self.set(Deadline::up(next), now);
        clock::instant(due)
    }

    /// Fetches the entry into the cache, which the next poll and the drop both read.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Some(entry) = self.entry() {
            entry.prefetch();
        }
    }

    /// Moves the deadline to one that was computed at `now`.
    #[inline]
    pub(crate) fn set(&mut self, deadline: Deadline, now: Nanos) {
        self.deadline = deadline;
        let due_by = self.due_by(now);
        let has_fired = |entry: &Timeout| !entry.reset_to(deadline, due_by) && !entry.is_cancelled();
        if self.entry().is_some_and(has_fired) {
            // The next poll schedules a new entry. One that `stop` has cancelled stays, so that the
            // poll changes the timer.
            self.registration = None;
        }
    }

    #[inline]
    fn entry(&self) -> Option<&Timeout> {
        self.registration.as_ref().map(|registration| &registration.entry)
    }

    /// Returns the current time of the timer. Once the timer is gone, that is the system's current
    /// time.
    fn now(&self) -> Nanos {
        self.now_or(clock::now)
    }

    /// Returns the same as [`now`](Self::now), but calls `system` to read the system's clock.
    fn now_or(&self, system: impl FnOnce() -> Nanos) -> Nanos {
        let id = self.entry().map(Timeout::shard_id).or_else(|| self.block.map(|block| block.local_shard().1));
        match id {
            Some(id) => shard_of(id).now_of(id, system),
            None => system(),
        }
    }

    /// Returns the time up to which deadlines are due at `now`.
    #[inline]
    fn due_by(&self, now: Nanos) -> Nanos {
        if self.is_virtual { self.due_by_on_virtual_time(now) } else { now }
    }

    #[cold]
    fn due_by_on_virtual_time(&self, now: Nanos) -> Nanos {
        self.context().map_or(now, |context| context.present.due_by(now))
    }

    /// Returns the context of the timer, or `None` if the timer is gone.
    fn context(&self) -> Option<Arc<TimerContext>> {
        let (shard, id) = self.block.map(BlockId::local_shard)?;
        shard.context(id)
    }

    /// Returns the length of the timer's tick. Returns 0 on virtual time that stands still and once
    /// the timer is gone.
    #[cold]
    fn tick_nanos(&self) -> Nanos {
        self.context().map_or(0, |context| context.tick_nanos())
    }
}

/// The lateness up to which a tick of an interval is not missed, as in tokio. Executors poll some
/// milliseconds late under load, and a short interval would lose its rate otherwise.
const TOLERANCE: Nanos = 5_000_000;

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}
