//! A delay queue that one task owns.

use super::items::Items;
use super::{Expired, Key};
use crate::clock;
use crate::deadline::{Deadline, Nanos};
use crate::future::Sleep;
use crate::handle::Timer;
use core::fmt;
use std::time::{Duration, Instant};

/// A queue whose items come out when their deadlines have passed.
///
/// One task owns the queue and awaits [`next`](Self::next) or polls it. If an item is inserted or
/// moved so that it is due before all others, a waiting task is woken at the deadline of that item.
/// If the last item is removed, the task is woken at once. An item that was moved to a later
/// deadline may also wake the task at its former deadline.
///
/// # Cost
///
/// Inserting, moving and removing an item cost O(1) amortized. Inserting and moving read the clock
/// once. An item needs no allocation. It takes about 40 bytes in addition to its value, and its
/// share of the slack of the arrays. The table of the values grows by a quarter at a time.
///
/// # Examples
///
/// A cache whose entries expire:
///
/// ```
/// use std::collections::HashMap;
/// use std::time::Duration;
/// use timer_core::Timer;
/// use timer_core::delay_queue::{DelayQueue, Key};
///
/// struct Cache {
///     entries: HashMap<String, (u64, Key)>,
///     expirations: DelayQueue<String>,
/// }
///
/// impl Cache {
///     fn insert(&mut self, key: String, value: u64) {
///         let expiration = self.expirations.insert(key.clone(), Duration::from_millis(2));
///         if let Some((_, former)) = self.entries.insert(key, (value, expiration)) {
///             self.expirations.remove(&former);
///         }
///     }
///
///     async fn expire_next(&mut self) -> Option<u64> {
///         let expired = self.expirations.next().await?;
///         self.entries.remove(expired.get_ref()).map(|(value, _)| value)
///     }
/// }
///
/// # futures::executor::block_on(async {
/// let mut cache = Cache { entries: HashMap::new(), expirations: DelayQueue::new(&Timer::new()) };
/// cache.insert("a".to_owned(), 1);
/// cache.insert("a".to_owned(), 2);
/// assert_eq!(cache.expire_next().await, Some(2));
/// assert_eq!(cache.expire_next().await, None);
/// # });
/// ```
pub struct DelayQueue<T> {
    pub(super) items: Items<T>,
    pub(super) sleep: Sleep,
    /// The tick that the sleep waits for, if the last poll was pending.
    pub(super) armed: Option<u64>,
}

// No item is ever pinned.
impl<T> Unpin for DelayQueue<T> {}

impl<T> DelayQueue<T> {
    /// Creates an empty queue on the clock of `timer`. Starts the worker of the timer if it does
    /// not run yet. The queue itself allocates nothing yet.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let queue = DelayQueue::<String>::new(Timer::global());
    /// assert!(queue.is_empty());
    /// ```
    pub fn new(timer: &Timer) -> Self {
        Self { items: Items::new(timer, usize::MAX), sleep: timer.sleep(Duration::ZERO), armed: None }
    }

    /// Creates an empty queue with room for `capacity` items in its table.
    ///
    /// # Panics
    ///
    /// Panics if the table would exceed `isize::MAX` bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let queue = DelayQueue::<String>::with_capacity(Timer::global(), 1_000);
    /// assert!(queue.is_empty());
    /// ```
    pub fn with_capacity(timer: &Timer, capacity: usize) -> Self {
        let mut queue = Self::new(timer);
        queue.reserve(capacity);
        queue
    }

    /// Inserts `value` with a deadline `delay` from now, and returns its key.
    ///
    /// A delay of zero is due at once. A delay beyond the range of the clock never comes.
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
    #[inline]
    pub fn insert(&mut self, value: T, delay: Duration) -> Key {
        let now = self.items.now();
        self.put(value, Deadline::after(now, delay), now)
    }

    /// Inserts `value` with a deadline, which may have passed, and returns its
    /// key.
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
    /// assert_eq!(queue.deadline(&key), Some(deadline));
    /// ```
    #[inline]
    pub fn insert_at(&mut self, value: T, deadline: Instant) -> Key {
        let now = self.items.now();
        self.put(value, Deadline::at(|| now, clock::nanos_of(deadline)), now)
    }

    #[inline]
    pub(super) fn put(&mut self, value: T, deadline: Deadline, now: Nanos) -> Key {
        let (key, tick) = self.items.insert(value, deadline, now);
        self.wake_by(tick, now);
        key
    }

    /// Removes an item before it comes out.
    ///
    /// Returns `None` if the item has come out or has been removed. An item that is due and has not
    /// come out yet can be removed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// assert_eq!(queue.remove(&key).unwrap().into_inner(), "item");
    /// assert!(queue.remove(&key).is_none());
    /// ```
    #[doc(alias = "try_remove")]
    pub fn remove(&mut self, key: &Key) -> Option<Expired<T>> {
        let removed = self.items.remove(*key);
        self.wake_if_empty();
        removed
    }

    /// Moves an item to `delay` from now. Its key stays valid.
    ///
    /// A move to a later deadline is the cheapest, because it leaves the item in its slot of the
    /// wheel. At the former deadline a waiting task is woken, and its poll moves the item to the
    /// slot of its new deadline. The item is moved only once, however often it was reset until
    /// then.
    ///
    /// Returns `false` if the item has come out or has been removed. Nothing is changed then.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// assert!(queue.reset(&key, Duration::from_secs(60)));
    /// queue.remove(&key);
    /// assert!(!queue.reset(&key, Duration::from_secs(60)));
    /// ```
    pub fn reset(&mut self, key: &Key, delay: Duration) -> bool {
        let now = self.items.now();
        self.relink(*key, Deadline::after(now, delay), now)
    }

    /// Moves an item to `deadline`, or makes it due at once if that has passed. Its key stays
    /// valid.
    ///
    /// Returns `false` if the item has come out or has been removed. Nothing is changed then.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let timer = Timer::new();
    /// let mut queue = DelayQueue::new(&timer);
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// assert!(queue.reset_at(&key, timer.now() + Duration::from_secs(60)));
    /// ```
    pub fn reset_at(&mut self, key: &Key, deadline: Instant) -> bool {
        let now = self.items.now();
        self.relink(*key, Deadline::at(|| now, clock::nanos_of(deadline)), now)
    }

    pub(super) fn relink(&mut self, key: Key, deadline: Deadline, now: Nanos) -> bool {
        let tick = self.items.reset(key, deadline, now);
        tick.inspect(|tick| self.wake_by(*tick, now)).is_some()
    }

    /// Makes the sleep of a waiting task end by `tick`, because an item is due then.
    #[inline]
    fn wake_by(&mut self, tick: u64, now: Nanos) {
        if self.armed.is_some_and(|armed| tick < armed) {
            self.sleep.set(Deadline::up(self.items.start_of(tick)), now);
            self.armed = Some(tick);
        }
    }

    /// Wakes a waiting task if there is nothing left for it to wait for.
    pub(super) fn wake_if_empty(&mut self) {
        if self.armed.is_some() && self.items.len() == 0 {
            let now = self.items.now();
            self.wake_by(0, now);
        }
    }
}

/// Creates an empty queue on the [current timer](Timer::current).
///
/// # Examples
///
/// ```
/// use timer_core::delay_queue::DelayQueue;
///
/// #[derive(Default)]
/// struct Scheduler {
///     retries: DelayQueue<String>,
/// }
///
/// assert!(Scheduler::default().retries.is_empty());
/// ```
impl<T> Default for DelayQueue<T> {
    fn default() -> Self {
        Self::new(&Timer::current())
    }
}

impl<T> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayQueue").field("len", &self.len()).finish_non_exhaustive()
    }
}
