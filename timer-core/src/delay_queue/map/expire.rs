//! The expiry of the entries of a map.

use super::{DelayMap, with_user_key};
use crate::delay_queue::{Expired, Key};
use core::future::poll_fn;
use core::hash::{BuildHasher, Hash};
use core::iter;
use core::task::{Context, Poll, ready};
use std::collections::HashMap;
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
        forget(&mut self.keys, &expired);
        self.shrink_if_sparse();
        Poll::Ready(Some(with_user_key(expired)))
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
        forget(&mut self.keys, &expired);
        self.shrink_if_sparse();
        Some(with_user_key(expired))
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
        let next = || self.queue.try_next().inspect(|item| forget(&mut self.keys, item));
        expired.extend(iter::from_fn(next).take(max - 1).map(with_user_key));
        self.shrink_if_sparse();
        Poll::Ready(expired.len() - before)
    }
}

/// Removes the key of an entry that has come out.
fn forget<K: Eq + Hash, V, S: BuildHasher>(keys: &mut HashMap<K, Key, S>, expired: &Expired<(K, V)>) {
    let Some((key, item)) = keys.remove_entry(&expired.value.0) else { return };
    // The table may have lost the key in a panic of `Hash` and got it back with a later entry.
    if item != expired.key {
        keys.insert(key, item);
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use crate::Timer;
    use std::time::Duration;

    #[test]
    fn an_entry_leaves_the_key_of_a_later_one() {
        let (timer, mut driver) = Timer::builder().build_manual().unwrap();
        let mut map = DelayMap::new(&timer);
        map.insert("key", 1, Duration::from_secs(1));
        // A panic of `Hash` while the table grows has this effect.
        map.keys.clear();
        map.insert("key", 2, Duration::from_secs(60));
        driver.advance(Duration::from_secs(1));
        let Poll::Ready(Some(expired)) = map.poll_expired(&mut Context::from_waker(core::task::Waker::noop())) else {
            panic!("the first entry is due")
        };
        assert_eq!((expired.into_inner(), map.get("key")), (1, Some(&2)));
    }
}
