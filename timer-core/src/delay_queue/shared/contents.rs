//! Methods for all items of a shared queue, due or not.

use super::{Expired, SharedDelayQueue};

impl<T> SharedDelayQueue<T> {
    /// Returns the number of items, due ones included.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::SharedDelayQueue};
    /// assert_eq!(SharedDelayQueue::<u8>::new(&Timer::new()).len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.shared.state.lock().items.len()
    }

    /// Returns `true` if there is no item.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::SharedDelayQueue};
    /// assert!(SharedDelayQueue::<u8>::new(&Timer::new()).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if the queue was closed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::SharedDelayQueue};
    /// let queue = SharedDelayQueue::<u8>::new(&Timer::new());
    /// assert!(!queue.is_closed());
    /// queue.close();
    /// assert!(queue.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.shared.state.lock().is_closed
    }

    /// Removes all items, due or not, and returns them in no particular order.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::SharedDelayQueue};
    /// let queue = SharedDelayQueue::new(&Timer::new());
    /// queue.insert("item", Duration::from_secs(5));
    /// assert_eq!(queue.drain().count(), 1);
    /// ```
    pub fn drain(&self) -> impl Iterator<Item = Expired<T>> + use<T> {
        self.shared.state.lock().items.drain()
    }
}
