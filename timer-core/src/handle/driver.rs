//! The driver of a timer in a program's own event loop, on the real clock.

use crate::clock;
use crate::deadline::NO_TICK;
use crate::engine::Unprocessed;
use crate::sync::{Arc, yield_now};
use crate::worker::Dispatcher;
use std::fmt;
use std::time::Instant;

/// The driver that takes the turns of a timer built by
/// [`build_driven`](crate::TimerBuilder::build_driven).
///
/// Call [`turn`](Self::turn) in your loop, sleep until the instant that it returns, and call it
/// again. A late turn loses no timeout, and its tasks run late. Set a function that [wakes the
/// loop](Self::on_wake) if other threads schedule timeouts or move them earlier while the loop
/// sleeps, or if periodic tasks run on an executor. Dropping the driver stops the timer.
///
/// On Linux a time-out of `epoll_wait`, `poll` or `select` is late by up to 0.1 % of the wait, 0.5
/// % with a nice value above 0, and at most 100 ms. A timerfd in the same loop is exact. The
/// example `event_loop` in the repository uses one.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc::{RecvTimeoutError, channel};
/// use std::time::{Duration, Instant};
/// use timer_core::Timer;
///
/// let (timer, mut driver) = Timer::builder().build_driven()?;
/// let (work, inbox) = channel::<&str>();
/// timer.new_timeout(Duration::from_millis(2), move |_| drop(work))?; // ends the loop
/// loop {
///     let turn = driver.turn();
///     let pause = turn.next_deadline.map_or(Duration::from_secs(1), |next| next - Instant::now());
///     match inbox.recv_timeout(pause) {
///         Ok(message) => println!("{message}"),
///         Err(RecvTimeoutError::Timeout) => {}
///         Err(RecvTimeoutError::Disconnected) => break,
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Driver {
    dispatcher: Dispatcher,
}

/// The outcome of [`Driver::turn`].
///
/// # Examples
///
/// ```
/// let (_timer, mut driver) = timer_core::Timer::builder().build_driven()?;
/// let turn = driver.turn();
/// assert_eq!((turn.expired, turn.next_deadline), (0, None));
/// # Ok::<(), timer_core::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// The number of timeouts that ran or were handed over to the executor.
    pub expired: usize,
    /// The instant at which to take the next turn. It is never later than the tick of the earliest
    /// deadline. It may be the current time, and it may belong to a timeout that was cancelled or
    /// moved since. It is `None` if no timeout waits.
    #[doc(alias = "next")]
    pub next_deadline: Option<Instant>,
}

impl Driver {
    pub(crate) fn new(dispatcher: Dispatcher) -> Self {
        Self { dispatcher }
    }

    /// Runs all timeouts that are due now. Timeouts that their tasks schedule without a delay wait
    /// for the next turn, so a turn always ends. If another thread holds the lock of a shard that
    /// has due timeouts, the turn waits until that thread has released it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_driven()?;
    /// timer.new_timeout(Duration::ZERO, |_| println!("due already"))?;
    /// assert_eq!(driver.turn().expired, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "poll")]
    pub fn turn(&mut self) -> Turn {
        let engine = self.dispatcher.engine.clone();
        let context = &*engine.context;
        context.alarm.disarm();
        let expired = self.dispatcher.turn_to_end(context.now());
        loop {
            context.alarm.arm();
            // If an executor has dropped a task, the loop must not sleep.
            if context.backlog.has_abandoned() {
                context.alarm.disarm();
                return Turn { expired, next_deadline: Some(Instant::now()) };
            }
            let next = engine.next();
            if context.alarm.set(next) {
                let next_deadline = (next != NO_TICK).then(|| clock::instant(context.resolution.start_of(next)));
                return Turn { expired, next_deadline };
            }
            yield_now();
        }
    }

    /// Sets the function that wakes the loop. It may write to an eventfd, push to a channel or
    /// unpark a thread.
    ///
    /// The function is called when a turn is needed before the instant that the last
    /// [`turn`](Self::turn) returned, for example because a timeout was scheduled or moved to an
    /// earlier deadline, or because a periodic run on an executor has ended. It runs on the thread
    /// that causes this, which holds no lock. It is seldom called more than once between two turns.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, mut driver) = Timer::builder().build_driven()?;
    /// let looping = std::thread::current();
    /// driver.on_wake(move || looping.unpark());
    /// driver.turn();
    /// timer.new_timeout(Duration::from_millis(1), |_| {})?;
    /// std::thread::park(); // returns at once
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "wakeup")]
    #[doc(alias = "set_waker")]
    pub fn on_wake(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        self.dispatcher.engine.context.alarm.set_wake_hook(Some(Arc::new(wake)));
    }

    /// Stops the timer and returns the timeouts that have not run.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::Timer;
    /// let (timer, driver) = Timer::builder().build_driven()?;
    /// timer.new_timeout(Duration::from_secs(60), |_| {})?;
    /// assert_eq!(driver.stop().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop(self) -> Vec<Unprocessed> {
        self.dispatcher.engine.stop()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.dispatcher.engine.context.alarm.set_wake_hook(None);
        self.dispatcher.engine.abandon();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("pending", &self.dispatcher.engine.pending()).finish_non_exhaustive()
    }
}
