//! async-io's `Timer`, polled once. Dropping it cancels. One reactor with its own thread serves the
//! whole process.

use super::sleeping::Sleeping;
use super::tasks::Tasks;
use async_io::Timer;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

#[derive(Clone)]
pub(super) struct AsyncIo;

impl Sleeping for AsyncIo {
    const NAME: &'static str = "async-io";
    const NO_STOP: &'static str = "its thread never ends";
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

/// A sleep without output. async-io's timer returns the instant at which it fired.
pub(super) struct UnitSleep(Timer);

impl Future for UnitSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(|_| ())
    }
}

impl Tasks for AsyncIo {
    const NAME: &'static str = <Self as Sleeping>::NAME;
    type Sleep = UnitSleep;

    fn build() -> Self {
        Self
    }

    fn sleep(&self, delay: Duration) -> UnitSleep {
        UnitSleep(Timer::after(delay))
    }

    fn reset(mut sleep: Pin<&mut UnitSleep>, delay: Duration) {
        sleep.0.set_after(delay);
    }
}
