//! The timetable, which is the number of pending timeouts by the time at which they are due.

use crate::clock;
use crate::deadline::{Nanos, after};
use std::fmt;
use std::time::{Duration, Instant};
pub(crate) use tally::Tally;

mod tally;

const SECOND: Nanos = 1_000_000_000;
const MINUTE: Nanos = 60 * SECOND;
const QUARTER: Nanos = 15 * MINUTE;
const HOUR: Nanos = 60 * MINUTE;
const DAY: Nanos = 24 * HOUR;

/// The steps that end with a minute, an hour and a day.
const STEP_OF_MINUTE: usize = 60;
const STEP_OF_HOUR: usize = STEP_OF_MINUTE + 59;
const STEP_OF_DAY: usize = STEP_OF_HOUR + 92;

/// The number of pending timeouts by the time at which they will run, as returned by
/// [`Timer::timetable`](crate::Timer::timetable).
///
/// It has one number for each second of the next minute, each minute of the next hour and each
/// quarter of an hour of the next day. Nothing that happens afterwards is in it.
///
/// A periodic task counts with its next run only, and the items of a delay queue with that of the
/// earliest. Tasks that wait in an executor's queue have left the wheels and do not count, and
/// neither do timeouts that the worker is about to run.
///
/// # Accuracy
///
/// - If no timeout was moved to a later deadline, each number of up to 32,768 is exact. Above that,
///   the timeouts that are due at about the end of the time are counted by a sample. The standard
///   error is at most 0.4 % of the number, and about 0.1 % if the deadlines are spread evenly. With
///   a hashed wheel all numbers are exact.
/// - Timeouts that were moved to a later deadline, and have not reached the former one, are found
///   by a sample as well, of up to 8,192 all. If half of the timeouts were moved, the standard
///   error is about 0.5 %, and up to 2 % for numbers below 10,000. With a hashed wheel it is 0.3 %
///   of all pending timeouts.
/// - Timeouts that are scheduled, moved or cancelled during the call may be counted as before or
///   after.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
///
/// let (timer, _driver) = Timer::builder().build_manual()?;
/// for second in 1..=100 {
///     timer.new_timeout(Duration::from_secs(second), |_| {})?;
/// }
/// let timetable = timer.timetable();
/// assert_eq!(timetable.due_within(Duration::from_secs(10)), 10);
/// assert_eq!(timetable.due_within(Duration::from_secs(60)), 60);
/// assert_eq!(timetable.waiting(), 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Timetable {
    taken_at: Nanos,
    /// The number of timeouts up to each step. The steps are 0, the seconds of a minute, the
    /// minutes of an hour, the quarters of a day, and all time.
    counts: Box<[u64]>,
    expected_lag: Nanos,
}

impl Timetable {
    /// Returns the number of timeouts that are due or will run within `delay`, by the clock of the
    /// timer.
    ///
    /// Between two seconds of the first minute, two minutes of the first hour and two quarters of
    /// an hour, the number is interpolated. For more than a day it is the number for a day.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// assert_eq!(timer_core::Timer::new().timetable().due_within(Duration::from_secs(60)), 0);
    /// ```
    pub fn due_within(&self, delay: Duration) -> u64 {
        let delay = after(0, delay);
        let (step, rest, length) = if delay < MINUTE {
            (delay / SECOND, delay % SECOND, SECOND)
        } else if delay < HOUR {
            (STEP_OF_MINUTE as u64 - 1 + delay / MINUTE, delay % MINUTE, MINUTE)
        } else if delay < DAY {
            (STEP_OF_HOUR as u64 - 4 + delay / QUARTER, delay % QUARTER, QUARTER)
        } else {
            (STEP_OF_DAY as u64, 0, 1)
        };
        let before = self.counts[step as usize];
        let next = self.counts[step as usize + 1];
        let part = u128::from(next - before) * u128::from(rest) / u128::from(length);
        before + part as u64
    }

    /// Returns the number of all timeouts in the timetable, however late they are due. It may
    /// differ from [`pending_timeouts`](crate::Timer::pending_timeouts), see the type.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// # let timer = timer_core::Timer::new();
    /// timer.new_timeout(Duration::from_secs(1_000_000), |_| {})?;
    /// assert_eq!(timer.timetable().waiting(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn waiting(&self) -> u64 {
        self.counts.last().copied().unwrap_or_default()
    }

    /// Returns the longest lag that the timeouts of the next minute are expected to have because
    /// others are due at the same time.
    ///
    /// This is the time that the worker will need for a crowd. It is computed as if each timeout
    /// takes the mean time of those before
    /// ([`expiry_time`](crate::TimerStats::expiry_time)), and as if all that are due within the
    /// same 5 ms are due at their beginning. So an even load is expected to lag by up to 5 ms times
    /// the share of its time that the worker is busy. The wait for a thread of an executor is not
    /// in it. It is zero until 64 timeouts have run, and on virtual time.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(timer_core::Timer::new().timetable().expected_lag().is_zero());
    /// ```
    pub fn expected_lag(&self) -> Duration {
        Duration::from_nanos(self.expected_lag)
    }

    /// Returns the moment from which the delays count.
    ///
    /// # Examples
    ///
    /// ```
    /// let timetable = timer_core::Timer::new().timetable();
    /// assert!(timetable.taken_at() <= std::time::Instant::now());
    /// ```
    pub fn taken_at(&self) -> Instant {
        clock::instant(self.taken_at)
    }
}

impl fmt::Debug for Timetable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timetable")
            .field("minute", &self.counts[STEP_OF_MINUTE])
            .field("hour", &self.counts[STEP_OF_HOUR])
            .field("day", &self.counts[STEP_OF_DAY])
            .field("waiting", &self.waiting())
            .field("expected_lag", &self.expected_lag())
            .finish_non_exhaustive()
    }
}
