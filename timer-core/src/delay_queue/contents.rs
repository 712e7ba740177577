//! The items of a queue that one task owns, whether or not they are due.

use super::{DelayQueue, Expired, Key};
use std::time::{Duration, Instant};

impl<T> DelayQueue<T> {
    /// Returns `true` if the item of `key` has neither come out nor been removed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// assert!(queue.contains_key(&key));
    /// ```
    pub fn contains_key(&self, key: &Key) -> bool {
        self.get(key).is_some()
    }

    /// Returns the keys and items, due ones included, in no particular order. Costs O(n) for a
    /// table of n items.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// assert!(queue.iter().eq([(key, &"item")]));
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.items.iter()
    }

    /// Returns a reference to an item. Returns `None` if it has come out or has been removed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// assert_eq!(queue.get(&key), Some(&"item"));
    /// ```
    pub fn get(&self, key: &Key) -> Option<&T> {
        self.items.get(*key)
    }

    /// Returns a mutable reference to an item. Returns `None` if it has come out or has been
    /// removed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// let key = queue.insert(1, Duration::from_secs(5));
    /// *queue.get_mut(&key).unwrap() += 1;
    /// assert_eq!(queue.remove(&key).unwrap().into_inner(), 2);
    /// ```
    pub fn get_mut(&mut self, key: &Key) -> Option<&mut T> {
        self.items.get_mut(*key)
    }

    /// Returns the deadline of an item. Returns `None` if the item has come out or has been
    /// removed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let timer = Timer::new();
    /// let mut queue = DelayQueue::new(&timer);
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// assert!(queue.deadline(&key).unwrap() > timer.now());
    /// ```
    pub fn deadline(&self, key: &Key) -> Option<Instant> {
        self.items.deadline(*key)
    }

    /// Returns the key of the item that comes out next, whether or not it is due. Returns `None` if
    /// the queue is empty.
    ///
    /// Costs O(1) after an item of the same tick has come out. Otherwise the call reads the items
    /// of the first tick if that is within 64 ticks, and else all items of the same slot of the
    /// wheel, which may be the whole queue. It also reads items that were due when they were
    /// inserted, and items that were moved to a later deadline and whose former deadlines come
    /// first.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// queue.insert("later", Duration::from_secs(60));
    /// let soon = queue.insert("soon", Duration::from_secs(5));
    /// assert_eq!(queue.peek(), Some(soon));
    /// ```
    pub fn peek(&self) -> Option<Key> {
        self.items.peek()
    }

    /// Returns the number of items, due ones included.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// assert_eq!(DelayQueue::<u8>::new(&Timer::new()).len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns `true` if there is no item.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// assert!(DelayQueue::<u8>::new(&Timer::new()).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes and drops all items. Their keys find nothing from then on.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// queue.clear();
    /// assert!(queue.get(&key).is_none());
    /// ```
    pub fn clear(&mut self) {
        drop(self.drain());
    }

    /// Removes all items, due or not, and returns them in no particular order. Their keys find
    /// nothing from then on, even if the iterator is dropped early.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// queue.insert("item", Duration::from_secs(5));
    /// assert_eq!(queue.drain().count(), 1);
    /// assert!(queue.is_empty());
    /// ```
    pub fn drain(&mut self) -> impl Iterator<Item = Expired<T>> + use<T> {
        let drained = self.items.drain();
        self.wake_if_empty();
        drained
    }

    /// Makes room for `additional` items in the table, so that inserting them does not reallocate
    /// it.
    ///
    /// # Panics
    ///
    /// Panics if the table would exceed `isize::MAX` bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// DelayQueue::<u8>::new(&Timer::new()).reserve(1_000);
    /// ```
    pub fn reserve(&mut self, additional: usize) {
        self.items.reserve(additional);
    }

    /// Gives back memory that was needed for more items than there are now. Costs O(n) for a table
    /// of n items.
    ///
    /// The slots of the wheel shrink by themselves, and a queue that becomes empty gives back its
    /// table of items. This call shortens the table of a queue that is not empty. It cannot move
    /// items, so it gives back the end of the table, behind the last item.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// DelayQueue::<u8>::new(&Timer::new()).shrink_to_fit();
    /// ```
    pub fn shrink_to_fit(&mut self) {
        self.items.shrink_to_fit();
    }
}

/// Inserts items with their delays from now.
impl<T> Extend<(T, Duration)> for DelayQueue<T> {
    fn extend<I: IntoIterator<Item = (T, Duration)>>(&mut self, items: I) {
        items.into_iter().for_each(|(value, delay)| _ = self.insert(value, delay));
    }
}
