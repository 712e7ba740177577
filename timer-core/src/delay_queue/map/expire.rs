//! The expiry of the entries of a map.

use super::{DelayMap, hash_of, with_user_key};
use crate::delay_queue::Expired;
use core::future::poll_fn;
use core::hash::{BuildHasher, Hash};
use core::iter;
use core::task::{Context, Poll, ready};
use std::time::Instant;

impl<K, V, S> DelayMap<K, V, S> {
    /// Returns the next deadline, rounded up to the tick of the timer, with the exceptions of
    /// [`DelayQueue::next_deadline`](crate::delay_queue::DelayQueue::next_deadline). Call
    /// [`try_next`](Self::try_next) at that instant. Returns `None` if the map is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let mut map = DelayMap::new(&Timer::new());
    /// assert_eq!(map.next_deadline(), None);
    /// map.insert("key", 1, Duration::from_secs(5));
    /// assert!(map.next_deadline() >= map.deadline("key"));
    /// ```
    #[doc(alias = "next_wake")]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.queue.next_deadline()
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> DelayMap<K, V, S> {
    /// Waits for the next entry whose deadline has passed. Returns `None` if the map is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// # futures::executor::block_on(async {
    /// let mut map = DelayMap::new(&Timer::new());
    /// map.insert("key", 1, Duration::from_millis(2));
    /// let expired = map.next().await.unwrap();
    /// assert_eq!((expired.key(), expired.into_inner()), ("key", 1));
    /// # });
    /// ```
    pub async fn next(&mut self) -> Option<Expired<V, K>> {
        poll_fn(|cx| self.poll_expired(cx)).await
    }

    /// Polls for the next entry whose deadline has passed. Returns `None` if the map is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::task::{Context, Poll, Waker};
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// let mut map = DelayMap::<u8, u8>::new(&Timer::new());
    /// assert_eq!(map.poll_expired(&mut Context::from_waker(Waker::noop())), Poll::Ready(None));
    /// ```
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<Option<Expired<V, K>>> {
        let Some(expired) = ready!(self.queue.poll_expired(cx)) else { return Poll::Ready(None) };
        Poll::Ready(Some(self.forget(expired)))
    }

    /// Returns an entry whose deadline has passed, or `None` if there is none. Does not wait and
    /// does not use the timer.
    ///
    /// Use this call for a map behind a mutex, where no task can wait for entries. A loop that
    /// waits sleeps until [`next_deadline`](Self::next_deadline).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// use std::sync::Mutex;
    ///
    /// let (timer, mut driver) = Timer::builder().build_manual()?;
    /// let sessions = Mutex::new(DelayMap::new(&timer));
    /// let requested = |user: &'static str| {
    ///     let mut sessions = sessions.lock().unwrap();
    ///     while let Some(session) = sessions.try_next() {
    ///         println!("{} has left", session.key());
    ///     }
    ///     sessions.insert(user, (), Duration::from_secs(60));
    /// };
    /// requested("alice");
    /// driver.advance(Duration::from_secs(60));
    /// requested("bob");
    /// assert_eq!(sessions.lock().unwrap().len(), 1);
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    pub fn try_next(&mut self) -> Option<Expired<V, K>> {
        let expired = self.queue.try_next()?;
        Some(self.forget(expired))
    }

    /// Polls for up to `max` entries whose deadlines have passed and appends them to `expired`.
    /// Returns the number of entries. It is 0 if the map is empty or `max` is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::future::poll_fn;
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayMap};
    /// # futures::executor::block_on(async {
    /// let mut map = DelayMap::new(&Timer::new());
    /// (0..10).for_each(|id| drop(map.insert(id, (), Duration::ZERO)));
    /// let mut batch = Vec::new();
    /// assert_eq!(poll_fn(|cx| map.poll_expired_many(cx, &mut batch, 64)).await, 10);
    /// # });
    /// ```
    pub fn poll_expired_many(
        &mut self,
        cx: &mut Context<'_>,
        expired: &mut Vec<Expired<V, K>>,
        max: usize,
    ) -> Poll<usize> {
        if max == 0 {
            return Poll::Ready(0);
        }
        let Some(first) = ready!(self.poll_expired(cx)) else { return Poll::Ready(0) };
        let before = expired.len();
        expired.push(first);
        // One by one, so that a key whose hash panics takes only its own entry with it.
        expired.extend(iter::from_fn(|| self.try_next()).take(max - 1));
        Poll::Ready(expired.len() - before)
    }

    /// Removes an entry that has come out from the hash table.
    #[inline]
    fn forget(&mut self, expired: Expired<(K, V)>) -> Expired<V, K> {
        self.index.remove(hash_of(&self.hash_builder, &expired.value.0), expired.key.index());
        self.index.shrink_if_sparse();
        with_user_key(expired)
    }
}
