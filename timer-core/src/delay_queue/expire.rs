//! The expiry of the items of a queue that one task owns.

use super::{DelayQueue, Expired};
use crate::clock;
use crate::deadline::Deadline;
use core::future::{Future, poll_fn};
use core::iter;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::time::Instant;

impl<T> DelayQueue<T> {
    /// Waits for the next item whose deadline has passed. Returns `None` if the queue is empty.
    ///
    /// Dropping the future before it is ready loses no item.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// # futures::executor::block_on(async {
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// queue.insert("item", Duration::from_millis(2));
    /// assert_eq!(queue.next().await.unwrap().into_inner(), "item");
    /// assert!(queue.next().await.is_none());
    /// # });
    /// ```
    pub async fn next(&mut self) -> Option<Expired<T>> {
        poll_fn(|cx| self.poll_expired(cx)).await
    }

    /// Polls for the next item whose deadline has passed. Returns `None` if the queue is empty.
    ///
    /// If the queue is empty, the task is not woken by a later insertion. Poll again after it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::task::{Context, Poll, Waker};
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// assert_eq!(queue.poll_expired(&mut cx), Poll::Ready(None));
    /// queue.insert("item", Duration::from_secs(5));
    /// assert!(queue.poll_expired(&mut cx).is_pending());
    /// ```
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        loop {
            let now = match self.items.take_due() {
                Ok(expired) => return Poll::Ready(Some(expired)),
                Err(now) => now,
            };
            let Some(next) = self.items.next() else {
                self.armed = None;
                return Poll::Ready(None);
            };
            if self.armed != Some(next) {
                self.sleep.set(Deadline::up(self.items.start_of(next)), now);
                self.armed = Some(next);
            }
            ready!(Pin::new(&mut self.sleep).poll(cx));
            self.armed = None;
        }
    }

    /// Returns an item whose deadline has passed, or `None` if there is none. Does not wait.
    ///
    /// A program can call this together with [`next_deadline`](Self::next_deadline) and wait for
    /// items by a sleep or its own loop. The timer's thread then takes no part in the waiting.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// assert!(queue.try_next().is_none());
    /// queue.insert("item", Duration::from_millis(2));
    /// while let Some(wake) = queue.next_deadline() {
    ///     std::thread::park_timeout(wake.saturating_duration_since(Instant::now()));
    ///     while let Some(expired) = queue.try_next() {
    ///         assert_eq!(expired.into_inner(), "item");
    ///     }
    /// }
    /// ```
    pub fn try_next(&mut self) -> Option<Expired<T>> {
        self.items.take_due().ok()
    }

    /// Returns the next deadline, rounded up to the tick of the timer. Call
    /// [`try_next`](Self::try_next) at that instant. Returns `None` if the queue is empty.
    ///
    /// No item comes out before that instant, and if an item is due, the instant has passed. The
    /// instant may be earlier than the next deadline, because an item was removed or moved to a
    /// later deadline. A call of `try_next` at that instant corrects it. Call `next_deadline` again
    /// after each insertion, removal and reset.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// assert_eq!(queue.next_deadline(), None);
    /// let key = queue.insert("item", Duration::from_secs(5));
    /// assert!(queue.next_deadline() >= queue.deadline(&key));
    /// ```
    #[doc(alias = "next_wake")]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.items.next().map(|tick| clock::instant(self.items.start_of(tick)))
    }

    /// Polls for up to `max` items whose deadlines have passed and appends them to `expired`.
    /// Returns the number of items. It is 0 if the queue is empty or `max` is 0.
    ///
    /// A batch costs less than single polls, because only its first item is polled.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::future::poll_fn;
    /// # use std::time::Duration;
    /// # use timer_core::{Timer, delay_queue::DelayQueue};
    /// # futures::executor::block_on(async {
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// for id in 0..100 {
    ///     queue.insert(id, Duration::ZERO);
    /// }
    /// let mut batch = Vec::new();
    /// assert_eq!(poll_fn(|cx| queue.poll_expired_many(cx, &mut batch, 64)).await, 64);
    /// assert_eq!(poll_fn(|cx| queue.poll_expired_many(cx, &mut batch, 64)).await, 36);
    /// assert_eq!(poll_fn(|cx| queue.poll_expired_many(cx, &mut batch, 64)).await, 0);
    /// # });
    /// ```
    pub fn poll_expired_many(
        &mut self,
        cx: &mut Context<'_>,
        expired: &mut Vec<Expired<T>>,
        max: usize,
    ) -> Poll<usize> {
        if max == 0 {
            return Poll::Ready(0);
        }
        let Some(first) = ready!(self.poll_expired(cx)) else { return Poll::Ready(0) };
        let before = expired.len();
        expired.push(first);
        expired.extend(iter::from_fn(|| self.items.take_due().ok()).take(max - 1));
        Poll::Ready(expired.len() - before)
    }
}
