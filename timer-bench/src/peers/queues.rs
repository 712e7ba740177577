//! Delay queues that one task owns: ours and tokio-util's.

use crate::peer::Queue;
use std::task::{Context, Poll};
use std::time::Duration;
use timer_core::Timer;
use timer_core::delay_queue::{self, DelayQueue, Expired};
use tokio_util::time::delay_queue as theirs;

impl Queue for DelayQueue<u64> {
    type Key = delay_queue::Key;

    fn new() -> Self {
        DelayQueue::new(Timer::global())
    }

    #[inline]
    fn insert(&mut self, item: u64, delay: Duration) -> Self::Key {
        self.insert(item, delay)
    }

    #[inline]
    fn remove(&mut self, key: Self::Key) {
        self.remove(&key);
    }

    #[inline]
    fn reset(&mut self, key: Self::Key, delay: Duration) {
        self.reset(&key, delay);
    }

    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<u64>> {
        self.poll_expired(context).map(|expired| Some(expired?.into_inner()))
    }

    #[inline]
    fn try_next(&mut self, _: &mut Context<'_>) -> Option<u64> {
        self.try_next().map(Expired::into_inner)
    }
}

impl Queue for theirs::DelayQueue<u64> {
    type Key = theirs::Key;

    fn new() -> Self {
        theirs::DelayQueue::new()
    }

    #[inline]
    fn insert(&mut self, item: u64, delay: Duration) -> Self::Key {
        self.insert(item, delay)
    }

    #[inline]
    fn remove(&mut self, key: Self::Key) {
        self.try_remove(&key);
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
