//! A delay queue with keys of the user.

mod contents;
mod expire;
mod index;

use super::{DelayQueue, Expired, Key};
use crate::clock;
use crate::deadline::{Deadline, Nanos};
use crate::handle::Timer;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::{fmt, mem};
use index::{Index, hash_of};
use std::hash::RandomState;
use std::time::{Duration, Instant};

/// A map whose entries come out when their deadlines have passed.
///
/// It is a [`DelayQueue`] with a hash table from the user's keys to its items. As in a `HashMap`,
/// `S` makes the hashers of the keys.
///
/// # Cost
///
/// A look-up reads a slot of the hash table and then the entry, so it costs about as much as a
/// look-up in a `HashMap`. Replacing a value costs a look-up and a move to the new deadline. An
/// entry takes about 60 bytes in addition to its key and its value.
///
/// # Panics of the user's key
///
/// If `Hash` or `Eq` of a key panics in a call with that key, the map does not change. If `Hash`
/// panics while an entry comes out, that entry is dropped. The map can be used after both. No call
/// uses `Hash` of other keys, and no entry that comes out uses `Eq`.
///
/// # Examples
///
/// Sessions that end after a minute without a request:
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
/// use timer_core::delay_queue::DelayMap;
///
/// const IDLE: Duration = Duration::from_secs(60);
///
/// let mut sessions = DelayMap::new(&Timer::new());
/// assert_eq!(sessions.insert("alice", 1, IDLE), None);
/// assert_eq!(sessions.insert("alice", 2, IDLE), Some(1));
/// assert!(sessions.reset("alice", IDLE));
/// assert!(!sessions.reset("bob", IDLE));
/// assert_eq!(sessions.remove("alice").unwrap().into_inner(), 2);
/// ```
pub struct DelayMap<K, V, S = RandomState> {
    index: Index,
    hash_builder: S,
    queue: DelayQueue<(K, V)>,
}

impl<K, V, S> Unpin for DelayMap<K, V, S> {}

impl<K, V> DelayMap<K, V> {
    /// Creates an empty map on the clock of `timer`. Starts the worker of the timer if it does not
    /// run yet. The map itself allocates nothing yet.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// assert!(DelayMap::<u64, String>::new(Timer::global()).is_empty());
    /// ```
    pub fn new(timer: &Timer) -> Self {
        Self::with_hasher(timer, RandomState::new())
    }

    /// Creates an empty map with room for `capacity` entries in its tables.
    ///
    /// # Panics
    ///
    /// Panics if a table would exceed `isize::MAX` bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// assert!(DelayMap::<u64, String>::with_capacity(Timer::global(), 1_000).is_empty());
    /// ```
    pub fn with_capacity(timer: &Timer, capacity: usize) -> Self {
        Self::with_capacity_and_hasher(timer, capacity, RandomState::new())
    }
}

impl<K, V, S> DelayMap<K, V, S> {
    /// Creates an empty map whose keys are hashed by `hash_builder`. Otherwise the same as
    /// [`new`](DelayMap::new).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// use std::hash::{BuildHasherDefault, DefaultHasher};
    ///
    /// // The keys come from this program, so nobody can choose keys that collide.
    /// let hashers = BuildHasherDefault::<DefaultHasher>::default();
    /// let mut leases = DelayMap::with_hasher(Timer::global(), hashers);
    /// leases.insert(17_u64, "worker 3", Duration::from_secs(30));
    /// assert_eq!(leases.get(&17), Some(&"worker 3"));
    /// ```
    pub fn with_hasher(timer: &Timer, hash_builder: S) -> Self {
        Self { index: Index::default(), hash_builder, queue: DelayQueue::new(timer) }
    }

    /// Creates an empty map with room for `capacity` entries in its tables, whose keys are hashed
    /// by `hash_builder`.
    ///
    /// # Panics
    ///
    /// Panics if a table would exceed `isize::MAX` bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// use std::hash::RandomState;
    ///
    /// let hashers = RandomState::new();
    /// let map = DelayMap::<u64, u64>::with_capacity_and_hasher(Timer::global(), 1_000, hashers);
    /// assert!(map.is_empty());
    /// ```
    pub fn with_capacity_and_hasher(timer: &Timer, capacity: usize, hash_builder: S) -> Self {
        let index = Index::with_capacity(capacity);
        Self { index, hash_builder, queue: DelayQueue::with_capacity(timer, capacity) }
    }

    /// Returns the [`BuildHasher`] that makes the hashers of the keys.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// use std::hash::BuildHasher;
    ///
    /// let map = DelayMap::<&str, u8>::new(Timer::global());
    /// assert_eq!(map.hasher().hash_one("key"), map.hasher().hash_one("key"));
    /// ```
    pub fn hasher(&self) -> &S {
        &self.hash_builder
    }
}

/// Creates an empty map on the [current timer](Timer::current).
impl<K, V, S: Default> Default for DelayMap<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(&Timer::current(), S::default())
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> DelayMap<K, V, S> {
    /// Inserts `value` with a deadline `delay` from now.
    ///
    /// Returns the value that it replaces, if `key` has not come out and has not been removed. The
    /// new deadline holds in any case. An entry whose value is replaced keeps its former key and
    /// counts as moved.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let mut map = DelayMap::new(&Timer::new());
    /// assert_eq!(map.insert("key", 1, Duration::from_secs(5)), None);
    /// assert_eq!(map.insert("key", 2, Duration::from_secs(5)), Some(1));
    /// ```
    pub fn insert(&mut self, key: K, value: V, delay: Duration) -> Option<V> {
        let now = self.queue.items.now();
        self.put(key, value, Deadline::after(now, delay), now)
    }

    /// Inserts `value` with a deadline, which may have passed. Otherwise the same as
    /// [`insert`](Self::insert).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let timer = Timer::new();
    /// let mut map = DelayMap::new(&timer);
    /// let deadline = timer.now() + Duration::from_secs(5);
    /// map.insert_at("key", 1, deadline);
    /// assert_eq!(map.deadline("key"), Some(deadline));
    /// ```
    pub fn insert_at(&mut self, key: K, value: V, deadline: Instant) -> Option<V> {
        let now = self.queue.items.now();
        self.put(key, value, Deadline::at(|| now, clock::nanos_of(deadline)), now)
    }

    fn put(&mut self, key: K, value: V, deadline: Deadline, now: Nanos) -> Option<V> {
        // The methods of the key may panic, so they are called before the map changes.
        let hash = hash_of(&self.hash_builder, &key);
        if let Some(item) = self.find_hashed(hash, &key) {
            let former = self.queue.get_mut(&item).map(|(_, current)| mem::replace(current, value));
            self.queue.relink(item, deadline, now);
            return former;
        }
        self.index.reserve(1);
        let item = self.queue.put((key, value), deadline, now);
        self.index.insert(hash, item.index());
        None
    }

    /// Returns the key of an entry in the queue.
    #[inline]
    fn find<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> Option<Key>
    where
        K: Borrow<Q>,
    {
        self.find_hashed(hash_of(&self.hash_builder, key), key)
    }

    #[inline]
    fn find_hashed<Q: ?Sized + Eq>(&self, hash: u32, key: &Q) -> Option<Key>
    where
        K: Borrow<Q>,
    {
        let items = &self.queue.items;
        self.index.find(hash, |row| {
            let is_wanted = items.get_row(row).is_some_and(|((found, _), _)| found.borrow() == key);
            is_wanted.then(|| items.key(row))
        })
    }

    /// Returns the value and the deadline of an entry.
    #[inline]
    fn read<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> Option<(&V, Deadline)>
    where
        K: Borrow<Q>,
    {
        self.index.find(hash_of(&self.hash_builder, key), |row| {
            let ((found, value), deadline) = self.queue.items.get_row(row)?;
            (found.borrow() == key).then_some((value, deadline))
        })
    }

    /// Removes an entry before it comes out. Returns `None` if it has come out or has been removed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let mut map = DelayMap::new(&Timer::new());
    /// map.insert("key", 1, Duration::from_secs(5));
    /// assert_eq!(map.remove("key").unwrap().into_inner(), 1);
    /// assert!(map.remove("key").is_none());
    /// ```
    pub fn remove<Q: ?Sized + Eq + Hash>(&mut self, key: &Q) -> Option<Expired<V, K>>
    where
        K: Borrow<Q>,
    {
        let hash = hash_of(&self.hash_builder, key);
        let item = self.find_hashed(hash, key)?;
        self.index.remove(hash, item.index());
        self.index.shrink_if_sparse();
        self.queue.remove(&item).map(with_user_key)
    }

    /// Moves an entry to `delay` from now. Returns `false` if it has come out or has been removed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let mut map = DelayMap::new(&Timer::new());
    /// map.insert("key", 1, Duration::from_secs(5));
    /// assert!(map.reset("key", Duration::from_secs(60)));
    /// ```
    pub fn reset<Q: ?Sized + Eq + Hash>(&mut self, key: &Q, delay: Duration) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_some_and(|item| self.queue.reset(&item, delay))
    }

    /// Moves an entry to `deadline`, or makes it due at once if that has passed. Returns `false` if
    /// it has come out or has been removed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let timer = Timer::new();
    /// let mut map = DelayMap::new(&timer);
    /// map.insert("key", 1, Duration::from_secs(5));
    /// assert!(map.reset_at("key", timer.now() + Duration::from_secs(60)));
    /// ```
    pub fn reset_at<Q: ?Sized + Eq + Hash>(&mut self, key: &Q, deadline: Instant) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_some_and(|item| self.queue.reset_at(&item, deadline))
    }
}

fn with_user_key<K, V>(expired: Expired<(K, V)>) -> Expired<V, K> {
    let (key, value) = expired.value;
    Expired { key, deadline: expired.deadline, value }
}

impl<K, V, S> fmt::Debug for DelayMap<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayMap").field("len", &self.queue.len()).finish_non_exhaustive()
    }
}
