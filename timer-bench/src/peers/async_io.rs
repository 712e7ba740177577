//! async-io's `Timer`. Dropping it cancels. One reactor with its own thread serves the whole
//! process.

use super::sleeping::Sleeping;
use crate::peer::Sleeps;
use async_io::Timer;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

#[derive(Clone)]
pub(crate) struct AsyncIo;

impl Sleeping for AsyncIo {
    const NAME: &'static str = "async-io";
    type Sleep = Timer;

    fn build() -> Self {
        Self
    }

    #[inline]
    fn sleep(delay: Duration) -> Timer {
        Timer::after(delay)
    }

    fn reset(timer: &mut Timer, delay: Duration) {
        timer.set_after(delay);
    }
}

impl Sleeps for AsyncIo {
    type Sleep = Timer;

    fn build() -> Self {
        Self
    }

    fn sleep(&self, delay: Duration) -> Timer {
        Timer::after(delay)
    }

    fn reset(mut sleep: Pin<&mut Timer>, delay: Duration) {
        sleep.set_after(delay);
    }

    async fn limit<F: Future + Send>(&self, limit: Duration, future: F) {
        let mut future = pin!(future);
        let mut sleep = pin!(Timer::after(limit));
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => sleep.as_mut().poll(context).map(drop),
        })
        .await;
    }
}
