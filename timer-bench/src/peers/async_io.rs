//! async-io's `Timer`, polled once. Dropping it cancels. There is one reactor for the whole process, with a thread of its own.

use super::wakers::{arm, waker};
use super::{Job, Peer};
use async_io::Timer;
use std::pin::Pin;
use std::task::Waker;
use std::time::Duration;

#[derive(Clone)]
pub(super) struct AsyncIo;

impl Peer for AsyncIo {
    const NAME: &'static str = "async-io";
    type Handle = Timer;
    type Work<J: Job> = Waker;

    fn build(_: Duration) -> Self {
        Self
    }

    fn work<J: Job>(job: J) -> Waker {
        waker(job)
    }

    #[inline]
    fn schedule<J: Job>(&mut self, delay: Duration, work: &Waker) -> Timer {
        let mut timer = Timer::after(delay);
        arm(Pin::new(&mut timer), work);
        timer
    }

    fn cancel(&mut self, timer: Timer) {
        drop(timer);
    }

    fn reset(&mut self, timer: &mut Timer, delay: Duration) {
        timer.set_after(delay);
    }

    fn pending(&self) -> Option<usize> {
        None
    }
}
