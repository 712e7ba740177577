//! A delay queue for many threads, of which one is the leader and the others are followers.
//!
//! Several threads may wait for an item. If each of them waited for the deadline of the first item,
//! all of them would wake up for it and all but one in vain. So one thread, the *leader*, waits for
//! that deadline, and the others, the *followers*, wait without one.
//!
//! # Taking
//!
//! A consumer holds the lock except while it waits and between the collection steps in step 1.
//!
//! 1. It takes an item that is due and goes on with step 4. If the queue is closed or the
//!    consumer's time is up, it goes on with step 4 without an item. If many items are due, it
//!    collects them in steps of bounded work. Between two of them it lets another thread have the
//!    lock, which may be a consumer that takes further steps of the same collection.
//! 2. If there is no leader, it becomes the leader and waits until the first deadline. Otherwise it
//!    joins the line of followers and waits to be woken.
//! 3. When it wakes up, it resigns as leader or leaves the line, and starts again with step 1.
//! 4. If there is no leader, it removes the first follower from the line, unlocks, and wakes that
//!    follower.
//!
//! # Inserting
//!
//! A producer inserts its item under the lock. If the item is due before the instant that the
//! leader waits for, the producer unlocks and wakes the leader, which starts again with step 1.
//!
//! # No item is left behind
//!
//! Whenever the queue is unlocked and somebody waits, there is a leader, or a consumer that is in
//! step 1 or has been removed from the line and is about to start again with step 1. This is so
//! because only step 3 removes the leader. After it the consumer does not wait until it becomes the
//! leader again, joins the line of another leader, or comes to step 4, which removes a follower if
//! there is one. A wake-up that comes before the consumer waits is not lost, because the parker
//! keeps it. The leader wakes up by the deadline of the first item, because a producer wakes it for
//! each earlier item.

mod contents;

use super::items::Items;
use super::{Expired, Key};
use crate::clock;
use crate::deadline::{Deadline, Nanos, after};
use crate::entry::Timeout;
use crate::handle::{CancelOnDrop, MAX_PARK, Timer};
use crate::sync::{Arc, Mutex, Parker, yield_lock};
use core::fmt;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A delay queue for many producers and many consumers on threads. Clones are handles to the same
/// queue.
///
/// [`take`](Self::take) blocks its thread until an item is due, so do not call it in async code. An
/// item wakes one of the threads that wait.
///
/// # Cost
///
/// All calls lock the queue. A call that takes the first item of a tick sorts all items of that
/// tick, about 50 ms for a million, and lets other threads have the lock in between, so none of
/// them waits for it longer than a millisecond. These calls hold the lock for longer if the queue
/// is large:
///
/// - [`drain`](Self::drain) costs O(n).
/// - The call that removes the last item gives back the memory of the peak, which takes about 10 ms
///   after a million items.
/// - An insertion beyond the former peak may move the table of the items, which grows by a quarter
///   at a time. That takes up to 10 ms for a million items.
///
/// # Examples
///
/// ```
/// use std::thread;
/// use std::time::Duration;
/// use timer_core::Timer;
/// use timer_core::delay_queue::SharedDelayQueue;
///
/// let retries = SharedDelayQueue::new(&Timer::new());
/// let consumer = thread::spawn({
///     let retries = retries.clone();
///     move || std::iter::from_fn(|| retries.take()).map(|retry| retry.into_inner()).next()
/// });
/// retries.insert("GET /", Duration::from_millis(2));
/// assert_eq!(consumer.join().unwrap(), Some("GET /"));
/// ```
#[doc(alias = "DelayQueue")]
pub struct SharedDelayQueue<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    timer: Timer,
    state: Mutex<State<T>>,
}

struct State<T> {
    items: Items<T>,
    leader: Option<Leader>,
    followers: VecDeque<Arc<Parker>>,
    is_closed: bool,
}

/// The number of steps of a collection before another thread may have the lock. Each step reads a
/// chunk of 64 values. They take about 0.1 ms.
const MAX_STEPS: usize = if cfg!(timer_loom) { 1 } else { 32 };

/// The thread that waits for the first deadline.
struct Leader {
    parker: Arc<Parker>,
    /// The tick of that deadline, or `u64::MAX` if there was no item.
    tick: u64,
}

impl<T> State<T> {
    /// Step 2. Returns the time until which the consumer waits.
    fn enlist(&mut self, parker: &Arc<Parker>) -> Option<Nanos> {
        if self.leader.is_some() {
            self.followers.push_back(parker.clone());
            return None;
        }
        let next = self.items.next();
        self.leader = Some(Leader { parker: parker.clone(), tick: next.unwrap_or(u64::MAX) });
        next.map(|tick| self.items.start_of(tick))
    }

    /// Performs step 3.
    fn retire(&mut self, parker: &Arc<Parker>) {
        if self.leader.as_ref().is_some_and(|leader| Arc::ptr_eq(&leader.parker, parker)) {
            self.leader = None;
        } else {
            self.followers.retain(|follower| !Arc::ptr_eq(follower, parker));
        }
    }

    /// Performs step 4.
    fn successor(&mut self) -> Option<Arc<Parker>> {
        if self.leader.is_none() { self.followers.pop_front() } else { None }
    }

    /// Returns the leader if it waits beyond `tick`.
    fn leader_after(&mut self, tick: u64) -> Option<Arc<Parker>> {
        let leader = self.leader.as_mut().filter(|leader| tick < leader.tick)?;
        leader.tick = tick;
        Some(leader.parker.clone())
    }
}

impl<T> SharedDelayQueue<T> {
    /// Creates an empty queue on the clock of `timer`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::SharedDelayQueue};
    /// assert!(SharedDelayQueue::<u8>::new(Timer::global()).is_empty());
    /// ```
    pub fn new(timer: &Timer) -> Self {
        let items = Items::new(timer, MAX_STEPS);
        let state = State { items, leader: None, followers: VecDeque::new(), is_closed: false };
        Self { shared: Arc::new(Shared { timer: timer.clone(), state: Mutex::new(state) }) }
    }

    /// Inserts `value` with a deadline `delay` from now, and returns its key.
    ///
    /// If the queue is closed, only [`try_take`](Self::try_take), [`remove`](Self::remove) and
    /// [`drain`](Self::drain) are sure to find the item.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::SharedDelayQueue};
    /// let queue = SharedDelayQueue::new(&Timer::new());
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// assert!(queue.remove(&key).is_some());
    /// ```
    pub fn insert(&self, value: T, delay: Duration) -> Key {
        self.put(value, |now| Deadline::after(now, delay))
    }

    /// Inserts `value` with a deadline, which may have passed. Otherwise the same as
    /// [`insert`](Self::insert).
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::SharedDelayQueue};
    /// let timer = Timer::new();
    /// let queue = SharedDelayQueue::new(&timer);
    /// queue.insert_at("item", timer.now());
    /// assert_eq!(queue.try_take().unwrap().into_inner(), "item");
    /// ```
    pub fn insert_at(&self, value: T, deadline: Instant) -> Key {
        self.put(value, |now| Deadline::at(|| now, clock::nanos_of(deadline)))
    }

    fn put(&self, value: T, deadline: impl FnOnce(Nanos) -> Deadline) -> Key {
        let mut state = self.shared.state.lock();
        let now = state.items.now();
        let (key, tick) = state.items.insert(value, deadline(now), now);
        let leader = state.leader_after(tick);
        drop(state);
        if let Some(leader) = leader {
            leader.unpark();
        }
        key
    }

    /// Removes an item before it comes out. Returns `None` if it has come out or has been removed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::SharedDelayQueue};
    /// let queue = SharedDelayQueue::new(&Timer::new());
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// assert_eq!(queue.remove(&key).unwrap().into_inner(), "item");
    /// assert!(queue.remove(&key).is_none());
    /// ```
    pub fn remove(&self, key: &Key) -> Option<Expired<T>> {
        self.shared.state.lock().items.remove(*key)
    }

    /// Blocks until an item is due and returns it. Returns `None` if the queue is closed and
    /// nothing is due.
    ///
    /// On virtual time, another thread has to move the time.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::SharedDelayQueue};
    /// let queue = SharedDelayQueue::new(&Timer::new());
    /// queue.insert("item", Duration::from_millis(2));
    /// assert_eq!(queue.take().unwrap().into_inner(), "item");
    /// ```
    pub fn take(&self) -> Option<Expired<T>> {
        self.take_before(None)
    }

    /// Blocks until an item is due and returns it. Returns `None` after `limit`, or if the queue is
    /// closed and nothing is due.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::SharedDelayQueue};
    /// let queue = SharedDelayQueue::<u8>::new(&Timer::new());
    /// assert!(queue.take_timeout(Duration::from_millis(2)).is_none());
    /// ```
    #[doc(alias = "poll")]
    pub fn take_timeout(&self, limit: Duration) -> Option<Expired<T>> {
        let now = self.shared.timer.engine.context.now();
        self.take_before(Some(after(now, limit)))
    }

    /// Returns an item that is due, or `None` if there is none. Blocks only for the lock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::SharedDelayQueue};
    /// let queue = SharedDelayQueue::new(&Timer::new());
    /// queue.insert("item", Duration::from_secs(5));
    /// assert!(queue.try_take().is_none());
    /// ```
    pub fn try_take(&self) -> Option<Expired<T>> {
        let mut state = self.shared.state.lock();
        loop {
            if let Some(taken) = state.items.try_take_due() {
                return taken.ok();
            }
            state = yield_lock(&self.shared.state, state);
        }
    }

    fn take_before(&self, limit: Option<Nanos>) -> Option<Expired<T>> {
        let parker = Arc::new(Parker::default());
        let mut alarm = None;
        let mut state = self.shared.state.lock();
        let taken = loop {
            let Some(taken) = state.items.try_take_due() else {
                state = yield_lock(&self.shared.state, state);
                continue;
            };
            let taken = taken.ok();
            let is_over = |limit| limit <= state.items.now();
            if taken.is_some() || state.is_closed || limit.is_some_and(is_over) {
                break taken;
            }
            let first = state.enlist(&parker);
            drop(state);
            self.wait(&parker, first.into_iter().chain(limit).min(), &mut alarm);
            state = self.shared.state.lock();
            state.retire(&parker);
        };
        let successor = state.successor();
        drop(state);
        if let Some(successor) = successor {
            successor.unpark();
        }
        taken
    }

    /// Waits for a wake-up, or until a time of the timer's clock. On virtual time it may return
    /// early, and `alarm` keeps the timeout that ends the wait.
    fn wait(&self, parker: &Arc<Parker>, until: Option<Nanos>, alarm: &mut Option<CancelOnDrop>) {
        let Some(until) = until else { return parker.park(None) };
        if !self.shared.timer.has_virtual_time() {
            return parker.park(Some(clock::until(until)));
        }
        // Parking uses the system's clock, so a timeout reports the virtual deadline.
        let bell = parker.clone();
        let next = self.shared.timer.new_timeout_at(clock::instant(until), move |_| bell.unpark());
        // The old alarm is dropped after the new one is scheduled, so that the timer always has a
        // pending one.
        *alarm = next.ok().map(Timeout::cancel_on_drop);
        // Another thread may have moved the time since, and may never move it again. Then nobody
        // runs the timeout.
        parker.park(Some(MAX_PARK));
    }

    /// Closes the queue. Consumers take the items that are due and return `None` after that.
    ///
    /// Items that are not due stay in the queue for [`drain`](Self::drain).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::SharedDelayQueue};
    /// let queue = SharedDelayQueue::new(&Timer::new());
    /// queue.insert("item", Duration::from_secs(5));
    /// queue.close();
    /// assert!(queue.take().is_none());
    /// assert_eq!(queue.drain().count(), 1);
    /// ```
    pub fn close(&self) {
        let mut state = self.shared.state.lock();
        state.is_closed = true;
        let leader = state.leader.as_ref().map(|leader| leader.parker.clone());
        let waiting: Vec<_> = leader.into_iter().chain(state.followers.drain(..)).collect();
        drop(state);
        waiting.iter().for_each(|parker| parker.unpark());
    }
}

impl<T> Clone for SharedDelayQueue<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

/// Creates an empty queue on the [current timer](Timer::current).
impl<T> Default for SharedDelayQueue<T> {
    fn default() -> Self {
        Self::new(&Timer::current())
    }
}

impl<T> fmt::Debug for SharedDelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedDelayQueue").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
