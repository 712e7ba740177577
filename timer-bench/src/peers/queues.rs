//! Delay queues that one task owns, behind one trait: ours and tokio-util's.

use std::task::{Context, Poll};
use std::time::Duration;
use timer_core::Timer;
use timer_core::delay_queue::{self, DelayQueue};
use tokio_util::time::delay_queue as theirs;

/// A queue that one task owns. It is created and used on a runtime.
pub(crate) trait Queue {
    /// The name on the command line and in the tables.
    const NAME: &'static str;

    /// The name of an item in the queue.
    type Key: Copy;

    /// Creates an empty queue.
    fn new() -> Self;

    /// Inserts `item`, to come out `delay` from now.
    fn insert(&mut self, item: u64, delay: Duration) -> Self::Key;

    /// Removes an item and returns it.
    fn remove(&mut self, key: Self::Key) -> Option<u64>;

    /// Moves the deadline of an item to `delay` from now.
    fn reset(&mut self, key: Self::Key, delay: Duration);

    /// Polls for the next item that is due. Returns `None` if the queue is empty.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<u64>>;
}

impl Queue for DelayQueue<u64> {
    const NAME: &'static str = super::OURS;
    type Key = delay_queue::Key;

    fn new() -> Self {
        DelayQueue::new(Timer::global())
    }

    #[inline]
    fn insert(&mut self, item: u64, delay: Duration) -> Self::Key {
        self.insert(item, delay)
    }

    #[inline]
    fn remove(&mut self, key: Self::Key) -> Option<u64> {
        self.remove(&key).map(delay_queue::Expired::into_inner)
    }

    #[inline]
    fn reset(&mut self, key: Self::Key, delay: Duration) {
        self.reset(&key, delay);
    }

    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<u64>> {
        self.poll_expired(context).map(|expired| Some(expired?.into_inner()))
    }
}

impl Queue for theirs::DelayQueue<u64> {
    const NAME: &'static str = <super::delay_queue::Queue as super::Peer>::NAME;
    type Key = theirs::Key;

    fn new() -> Self {
        theirs::DelayQueue::new()
    }

    #[inline]
    fn insert(&mut self, item: u64, delay: Duration) -> Self::Key {
        self.insert(item, delay)
    }

    #[inline]
    fn remove(&mut self, key: Self::Key) -> Option<u64> {
        self.try_remove(&key).map(theirs::Expired::into_inner)
    }

    #[inline]
    fn reset(&mut self, key: Self::Key, delay: Duration) {
        self.reset(&key, delay);
    }

    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<u64>> {
        self.poll_expired(context).map(|expired| Some(expired?.into_inner()))
    }
}
