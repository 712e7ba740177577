//! Queues whose items come out when their deadlines have passed: [`DelayQueue`] for one task,
//! [`DelayMap`] with keys of the user, and [`SharedDelayQueue`] for many threads.
//!
//! A delay queue fits where many items expire in one place, such as the entries of a cache, the
//! sessions of a server, or the jobs that a scheduler has put off. An item costs no task, no waker
//! and no allocation. A queue owns a timing wheel. [`DelayQueue`] and [`DelayMap`] wait by one
//! sleep of their timer, and the consumers of a [`SharedDelayQueue`] park their threads. Inserting,
//! moving and removing an item cost O(1) amortized, whatever the number of items. The items of a
//! tick are sorted when the first of them comes out.
//!
//! ```
//! use std::time::Duration;
//! use timer_core::Timer;
//! use timer_core::delay_queue::DelayQueue;
//!
//! # futures::executor::block_on(async {
//! let mut cache = DelayQueue::new(&Timer::new());
//! let session = cache.insert("session", Duration::from_secs(60));
//! cache.insert("token", Duration::from_millis(2));
//! cache.reset(&session, Duration::from_millis(4));
//! assert_eq!(cache.next().await.unwrap().into_inner(), "token");
//! assert_eq!(cache.next().await.unwrap().into_inner(), "session");
//! assert!(cache.next().await.is_none());
//! # });
//! ```
//!
//! # Promises
//!
//! - No item comes out before its deadline. An item comes out at most one tick of the timer after
//!   it, if the queue is polled in time.
//! - A queue that is polled late hands out all items that are due, in the order of their deadlines.
//!   Items with the same deadline come out in the order in which they were inserted. An item that
//!   was moved counts as inserted at its move or, if the move was to a later deadline, by its
//!   former deadline. A value that replaces another one in a [`DelayMap`] counts as moved. An item
//!   that was due already when it was inserted or moved may come out before others of the current
//!   tick.
//! - A [`Key`] stays valid until its item has been handed out or removed. After that it finds
//!   nothing, ever. No operation panics because of a key, and a key of one queue has no meaning for
//!   another.
//! - Items are dropped when they leave, and an empty queue gives back nearly all of its memory. A
//!   queue that has a few items left keeps the table of its peak, which takes 24 bytes and a value
//!   per item.
//!
//! The queues keep their timer alive. If the timer is stopped or its bound is reached, the sleep of
//! a [`DelayQueue`] or a [`DelayMap`] [moves to the timer of the process](crate::future#refusals). On
//! virtual time it is not woken in that case.

mod contents;
mod due;
mod expire;
mod items;
mod map;
mod queue;
mod shared;

pub use crate::wheel::Key;
pub use map::DelayMap;
pub use queue::DelayQueue;
pub use shared::SharedDelayQueue;

use std::time::Instant;

/// An item that has left a delay queue, with its key and its deadline.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
/// use timer_core::delay_queue::DelayQueue;
///
/// # futures::executor::block_on(async {
/// let mut queue = DelayQueue::new(&Timer::new());
/// let key = queue.insert("item", Duration::from_millis(2));
/// let expired = queue.next().await.unwrap();
/// assert_eq!(expired.key(), key);
/// assert_eq!(expired.into_inner(), "item");
/// # });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired<T, K = Key> {
    key: K,
    deadline: Instant,
    value: T,
}

impl<T, K> Expired<T, K> {
    /// Returns the key that the item had.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// assert_eq!(queue.remove(&key).unwrap().key(), key);
    /// ```
    pub fn key(&self) -> K
    where
        K: Copy,
    {
        self.key
    }

    /// Returns a reference to the key that the item had.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let mut map = DelayMap::new(&Timer::new());
    /// map.insert("session".to_owned(), 7, Duration::from_secs(5));
    /// assert_eq!(map.remove("session").unwrap().key_ref(), "session");
    /// ```
    pub fn key_ref(&self) -> &K {
        &self.key
    }

    /// Returns the deadline that the item had.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let timer = Timer::new();
    /// let mut queue = DelayQueue::new(&timer);
    /// let deadline = timer.now() + Duration::from_secs(5);
    /// let key = queue.insert_at("item", deadline);
    /// assert_eq!(queue.remove(&key).unwrap().deadline(), deadline);
    /// ```
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns a reference to the item.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// assert_eq!(*queue.remove(&key).unwrap().get_ref(), "item");
    /// ```
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// Returns a reference to the item for changing it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// let key = queue.insert(1, Duration::from_secs(5));
    /// *queue.remove(&key).unwrap().get_mut() += 1;
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// Returns the item.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// assert_eq!(queue.remove(&key).unwrap().into_inner(), "item");
    /// ```
    pub fn into_inner(self) -> T {
        self.value
    }
}
