//! async-io's `Timer`, polled once. Dropping it cancels. There is one reactor for the whole process, with a thread of its own.

use super::tasks::Tasks;
use super::wakers::{arm, waker};
use super::{Job, Peer};
use async_io::Timer;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
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

/// A timer gives the instant at which it fired; a sleep gives nothing.
pub(super) struct Asleep(Timer);

impl Future for Asleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(|_| ())
    }
}

impl Tasks for AsyncIo {
    const NAME: &'static str = <Self as Peer>::NAME;
    type Sleep = Asleep;

    fn build() -> Self {
        Self
    }

    fn sleep(&self, delay: Duration) -> Asleep {
        Asleep(Timer::after(delay))
    }

    fn reset(mut sleep: Pin<&mut Asleep>, delay: Duration) {
        sleep.0.set_after(delay);
    }
}
