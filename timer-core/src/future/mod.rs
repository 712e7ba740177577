//! Futures that wait for a timer on any async runtime: [`Sleep`], [`TimeoutFuture`] and
//! [`Interval`].
//!
//! A [`Timer`](crate::Timer) makes these futures. They do not keep it alive. They need no runtime, no
//! reactor and no feature of this crate. Whatever the executor of the timer, their tasks are woken
//! on the thread that takes the timer's turns, while it holds no lock. On virtual time,
//! [`ManualDriver::advance`](crate::ManualDriver::advance) wakes the tasks whose deadlines have
//! come. [`time`](crate::time) has functions with tokio's names for the timer of the process.
//!
//! ```
//! use std::pin::pin;
//! use std::task::{Context, Poll, Waker};
//! use std::time::Duration;
//! use timer_core::Timer;
//!
//! let (timer, mut driver) = Timer::builder().build_manual()?;
//! let mut cx = Context::from_waker(Waker::noop());
//! let mut year = pin!(timer.sleep(Duration::from_secs(365 * 86_400)));
//! assert_eq!(year.as_mut().poll(&mut cx), Poll::Pending);
//! assert_eq!(driver.advance(Duration::from_secs(365 * 86_400)), 1);
//! assert_eq!(year.as_mut().poll(&mut cx), Poll::Ready(()));
//! # Ok::<(), timer_core::BuildError>(())
//! ```
//!
//! # Refusals
//!
//! The futures have no error for a timer that refuses a deadline, because it was stopped, its last
//! handle was dropped, its bound is reached, or the system has no thread or shard for it. Such a
//! future registers the same deadline with the timer of the process
//! ([`Timer::global`](crate::Timer::global)). If that timer is manual, bounded or stopped, the
//! future goes to an unbounded timer that the crate keeps for this purpose. A future of a manual
//! timer stays pending instead, because no other timer knows its time.
//!
//! No future is ready before its deadline, so a caller that loops on one cannot spin. If the system
//! refuses a thread to every timer, or if no shard is left for any, a future is ready at the first
//! poll after its deadline, but nothing wakes its task for that poll. A program that calls
//! [`Timer::start`](crate::Timer::start) at its start finds out then.
//!
//! # Promises
//!
//! - The deadline is fixed when the future is made. A future is never ready early.
//! - A future that is never polled, or is ready at its first poll, touches no counter, lock or
//!   heap.
//! - A future takes 48 bytes of heap for each deadline for which a poll has to wait. A reset before
//!   the deadline takes none. A thread keeps the memory of up to 64 ended futures for its next
//!   ones, as it does for all small timeouts.
//! - Dropping a future, on any thread, cancels it and drops its waker.
//! - `stop`, and the drop of the last `Timer` or of its driver, wake all tasks, so that their
//!   futures move to another timer. They count as cancelled, and `stop` does not hand them back.
//! - A future that was accepted is not refused when it is polled with another waker.
//! - The clone, the wake and the drop of a waker are user code. They run while no lock is held, and
//!   their panics are caught and counted in [`task_panics`](crate::TimerStats::task_panics). If the
//!   clone panics, the waker is asked for another poll.
//!
//! # The protocol
//!
//! A future that waits owns an entry, as the caller of `new_timeout` does. The job of the entry is
//! the waker. The entry is used up when it has fired.
//!
//! 1. *First poll for a deadline.* The future checks that the shard of its CPU still serves the
//!    timer, and returns if the deadline has come. Otherwise it clones the waker and schedules an
//!    entry.
//! 2. *Later poll.* The future reads the state word. If the entry waits and the waker is the same,
//!    the poll is pending. If the waker is another one, the future cancels the entry and links a
//!    new one, which takes over the count and the permit of the old one.
//! 3. *Expiry.* The turn's thread wins the entry, ends the run, and wakes the task.
//! 4. *Drop.* The future cancels the entry as [`Timeout::cancel`](crate::Timeout::cancel) does.
//! 5. *Reset.* An entry that waits is reset as by [`Timeout::reset`](crate::Timeout::reset). An
//!    entry that has fired is dropped, and the next poll is step 1.
//! 6. *Stop.* `stop` cancels the entries that wait, and wakes their tasks.
//! 7. *Refusal.* If step 1 is refused or the entry was cancelled by step 6, the future performs
//!    step 1 with another timer and belongs to that timer from then on.
//!
//! Two races exist in addition to those of a timeout:
//!
//! - *A task that is woken inline* on the thread of the turn may poll, reset or drop its future.
//!   The run has ended by then and the waker is taken out, so this is the same as on another
//!   thread.
//! - *Another waker against `stop`.* If the shard is closed when the future links the new entry,
//!   the future counts the old one as cancelled and goes on with step 7. Otherwise `stop` finds the
//!   new entry. It counts once either way.

mod interval;
mod poll;
mod registration;
mod sleep;
mod timeout;
mod timer;

pub use interval::Interval;
pub use sleep::Sleep;
pub use timeout::{Elapsed, TimeoutFuture};
