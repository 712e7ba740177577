//! Futures that wait for a timer, on any executor: [`Sleep`], [`TimeoutFuture`], [`Interval`].
//!
//! They are made by a [`Timer`](crate::Timer), and keep nothing of it alive: it may be stopped or dropped while they wait, and they say
//! so. They need no runtime, no reactor and no feature; tasks are woken on the thread that takes the timer's turns, with nothing
//! held, whatever executor the timer's own tasks run on. On virtual time [`ManualDriver::advance`](crate::ManualDriver::advance) wakes
//! exactly what is due:
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
//! assert_eq!(year.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
//! # Ok::<(), timer_core::BuildError>(())
//! ```
//!
//! What is promised:
//! - The deadline is fixed when the future is made. Ready is never early.
//! - One that is never polled, or is ready at its first poll, touches no count, no lock and no heap. No count that threads share is
//!   touched by any, but the bound of the timer, if there is one.
//! - At most one allocation in a future's life, none per reset or tick.
//! - Dropped, on any thread, it is cancelled: the waker is dropped, and nothing is left behind.
//! - `stop`, and the drop of the last `Timer`, wake all; they say [`Stopped`](crate::RejectReason::Stopped), count as cancelled, and are
//!   not among what `stop` hands back. One that waits says so even if it has become due meanwhile.
//! - The clone, the drop and the wake of a waker are foreign code: they run with nothing held; their panics are caught and counted in
//!   [`task_panics`](crate::TimerStats::task_panics). If the clone panics, the task is asked to poll again.
//!
//! # The protocol
//!
//! A future owns an *entry* (`crate::entry`), made at the first poll that has to wait. Its job is the waker; its state word
//! decides whose that is: the turn's, that has changed the word from `Waiting` to `Fired`; the future's own, while it has a *claim* on the
//! entry (`Running`), and when it has cancelled it; `stop`'s, that has cancelled it.
//!
//! 1. *Poll*, the first for a deadline. Not registered: asks the shard of this CPU whether it still serves the timer, and the clock
//!    whether the deadline has come; then there is an answer. Else clones the waker, makes the entry, which is `Waiting`, and
//!    gives the wheel's reference to the shard: under its lock, or that of its inbox, it is seen to that the timer is the
//!    same, that there is a permit, that it is counted; and it is linked. If the future has an entry that has run, it claims it, puts
//!    the waker in, and the shard releases it (`Waiting`) when all else is seen to.
//! 2. *Poll* while it is registered. The state word says what there is: `Waiting`, and if the waker is the one that it has, that is
//!    all. If it is another: clones it, claims the entry, exchanges the wakers, releases it, and links it again if it is not linked.
//! 3. *Expiry*. The turn has taken the entry out of the wheel, and wins it (`Fired`), or finds it moved and links it again, or claimed or
//!    cancelled, and forgets it. It takes the waker out, says `Expired`, and wakes.
//! 4. *Drop*. Cancels as [`Timeout::cancel`](crate::Timeout::cancel) does: wins the state word, unlinks the entry, drops the waker.
//! 5. *Reset*. If it waits: the new deadline into the state word, one read-modify-write; a deadline that is earlier is linked again.
//!    The waker stays. If it has run: the next poll is step 1.
//! 6. *Stop*. Shuts the shards and takes their wheels; what waits it cancels, counts and wakes. `Cancelled` is for good.
//!
//! Why the races are harmless:
//! - *Poll against expiry* (2, 3). The claim and the expiry are changes of one word from `Waiting`. If the expiry is first, the claim finds
//!   `Fired` or `Expired`: ready. If the claim is first, the turn forgets the entry; the future links it again after the release,
//!   and what is overdue is due at once.
//! - *A new deadline against the end of a run* (1, 3). `Fired` lasts while the turn takes the waker out; it calls nothing foreign
//!   meanwhile. A poll that finds it asks to be polled again.
//! - *A task that is woken inline*, on the turn's thread, and polls, resets or drops its future: the entry is `Expired` by then and the
//!   waker taken out, so it is as if on another thread.
//! - *Drop against expiry* (4, 3). One of them wins; the other does nothing. What the future loses, it leaves to the turn, which still has a
//!   reference.
//! - *Reset against expiry* (5, 3). Likewise: either the turn reads the new deadline, or the reset finds that it has run.
//! - *Stop against a claim* (6, 1 and 2). `stop` cannot cancel what is claimed, and forgets it. The future finds the shard shut when it
//!   registers or links the entry, and ends it itself. If `stop` meets it after the release, it cancels it; either way it counts once.
//! - *Requests* of an entry's former life, that still wait in an inbox: they make the wheel agree with the state word, whenever they
//!   are read.
//! - *A timer that is gone, and its shards serve another*: the generation in the entry's name is not the shard's, under either lock.

mod interval;
mod registration;
mod sleep;
mod timeout;

pub use interval::Interval;
pub(crate) use interval::next_tick;
pub use sleep::Sleep;
pub use timeout::{TimeoutError, TimeoutFuture};
