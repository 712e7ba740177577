//! The expiry of the entries of a map.

use super::{DelayMap, with_user_key};
use crate::delay_queue::Expired;
use core::future::poll_fn;
use core::hash::Hash;
use core::iter;
use core::task::{Context, Poll, ready};

impl<K: Clone + Eq + Hash, V> DelayMap<K, V> {
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
        self.keys.remove(&expired.value.0);
        self.shrink_if_sparse();
        Poll::Ready(Some(with_user_key(expired)))
    }

    /// Polls for up to `max` entries whose deadlines have passed and appends them to `expired`.
    /// Returns the number of entries, which is 0 if the map is empty or `max` is 0.
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
        let next = || self.queue.try_next().inspect(|item| _ = self.keys.remove(&item.value.0));
        expired.extend(iter::from_fn(next).take(max - 1).map(with_user_key));
        self.shrink_if_sparse();
        Poll::Ready(expired.len() - before)
    }
}
