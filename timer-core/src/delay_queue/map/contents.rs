//! The entries of a map, whether or not they are due.

use super::{DelayMap, Index, with_user_key};
use crate::clock;
use crate::delay_queue::Expired;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use std::time::{Duration, Instant};

impl<K, V, S> DelayMap<K, V, S> {
    /// Returns the keys and values, due ones included, in no particular order. Costs O(n) for a
    /// table of n entries.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let mut map = DelayMap::new(&Timer::new());
    /// map.insert("key", 1, Duration::from_secs(5));
    /// assert!(map.iter().eq([(&"key", &1)]));
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.queue.iter().map(|(_, (key, value))| (key, value))
    }

    /// Returns the key of the entry that comes out next, whether or not it is due, with the
    /// exceptions and the cost of [`DelayQueue::peek`](crate::delay_queue::DelayQueue::peek).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let mut map = DelayMap::new(&Timer::new());
    /// map.insert("key", 1, Duration::from_secs(5));
    /// assert_eq!(map.peek(), Some(&"key"));
    /// ```
    pub fn peek(&self) -> Option<&K> {
        self.queue.get(&self.queue.peek()?).map(|(key, _)| key)
    }

    /// Returns the number of entries, due ones included.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// assert_eq!(DelayMap::<u8, u8>::new(&Timer::new()).len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns `true` if there is no entry.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// assert!(DelayMap::<u8, u8>::new(&Timer::new()).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Removes and drops all entries. Their keys find nothing from then on.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// DelayMap::<u8, u8>::new(&Timer::new()).clear();
    /// ```
    pub fn clear(&mut self) {
        drop(self.drain());
    }

    /// Removes all entries, due or not, and returns them in no particular order. Their keys find
    /// nothing from then on, even if the iterator is dropped early.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let mut map = DelayMap::new(&Timer::new());
    /// map.insert("key", 1, Duration::from_secs(5));
    /// assert_eq!(map.drain().count(), 1);
    /// ```
    pub fn drain(&mut self) -> impl Iterator<Item = Expired<V, K>> + use<K, V, S> {
        self.index = Index::default();
        self.queue.drain().map(with_user_key)
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> DelayMap<K, V, S> {
    /// Returns `true` if the entry of `key` has neither come out nor been removed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// assert!(!DelayMap::<&str, u8>::new(&Timer::new()).contains_key("key"));
    /// ```
    pub fn contains_key<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.read(key).is_some()
    }

    /// Returns a reference to the value of `key`. Returns `None` if its entry has come out or has
    /// been removed. An entry whose deadline has passed stays until then, and
    /// [`get_unexpired`](Self::get_unexpired) does not return it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let mut map = DelayMap::new(&Timer::new());
    /// map.insert("key", 1, Duration::from_secs(5));
    /// assert_eq!(map.get("key"), Some(&1));
    /// ```
    pub fn get<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.read(key).map(|(value, _)| value)
    }

    /// Returns a reference to the value of `key` if its deadline has not passed. Otherwise the same
    /// as [`get`](Self::get).
    ///
    /// A cache reads its entries with this call, so that none is used after its time although
    /// nothing has polled the map since. The call reads the clock once if it finds an entry.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let mut tokens = DelayMap::new(&timer);
    /// tokens.insert("alice", "token", Duration::from_secs(60));
    /// driver.advance(Duration::from_secs(60));
    /// assert_eq!(tokens.get_unexpired("alice"), None);
    /// assert_eq!(tokens.get("alice"), Some(&"token"));
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn get_unexpired<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (value, deadline) = self.read(key)?;
        (!deadline.is_due(self.queue.items.now())).then_some(value)
    }

    /// Returns a reference to the value of `key` and its deadline by one look-up. Otherwise the
    /// same as [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let timer = Timer::new();
    /// let mut tokens = DelayMap::new(&timer);
    /// tokens.insert("alice", "token", Duration::from_secs(60));
    /// let (token, deadline) = tokens.get_with_deadline("alice").unwrap();
    /// assert_eq!(*token, "token");
    /// assert!(deadline - timer.now() <= Duration::from_secs(60));
    /// ```
    pub fn get_with_deadline<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> Option<(&V, Instant)>
    where
        K: Borrow<Q>,
    {
        let (value, deadline) = self.read(key)?;
        Some((value, clock::instant(deadline.nanos())))
    }

    /// Returns a mutable reference to the value of `key`. Otherwise the same as [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let mut map = DelayMap::new(&Timer::new());
    /// map.insert("key", 1, Duration::from_secs(5));
    /// *map.get_mut("key").unwrap() += 1;
    /// ```
    pub fn get_mut<Q: ?Sized + Eq + Hash>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.queue.get_mut(&self.find(key)?).map(|(_, value)| value)
    }

    /// Returns the deadline of `key`. Returns `None` if its entry has come out or has been removed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let map = DelayMap::<&str, u8>::new(&Timer::new());
    /// assert_eq!(map.deadline("key"), None);
    /// ```
    pub fn deadline<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> Option<Instant>
    where
        K: Borrow<Q>,
    {
        self.get_with_deadline(key).map(|(_, deadline)| deadline)
    }

    /// Makes room for `additional` entries in the tables of keys. The first removal of an entry
    /// gives back the room if there are more than 1,024 places and less than a tenth is used.
    ///
    /// # Panics
    ///
    /// Panics if a table would exceed `isize::MAX` bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// DelayMap::<u8, u8>::new(&Timer::new()).reserve(1_000);
    /// ```
    pub fn reserve(&mut self, additional: usize) {
        self.index.reserve(additional);
        self.queue.reserve(additional);
    }

    /// Gives back memory that was needed for more entries than there are now. O(entries).
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// DelayMap::<u8, u8>::new(&Timer::new()).shrink_to_fit();
    /// ```
    pub fn shrink_to_fit(&mut self) {
        self.index.shrink_to_fit();
        self.queue.shrink_to_fit();
    }
}

/// Inserts entries with their delays from now.
impl<K: Eq + Hash, V, S: BuildHasher> Extend<(K, V, Duration)> for DelayMap<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V, Duration)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value, delay)| drop(self.insert(key, value, delay)));
    }
}
