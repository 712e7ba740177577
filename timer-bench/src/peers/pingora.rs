//! pingora-timeout's `fast_sleep`, boxed and polled once. Dropping it leaves its node where it is: timers of the same 10 ms
//! share one. There is one for the whole process.

use super::storming::Storming;
use super::wakers::{arm, waker};
use super::{Job, Peer};
use pingora_timeout::fast_timeout::fast_sleep;
use std::pin::Pin;
use std::task::Waker;
use std::time::Duration;

#[derive(Clone)]
pub(super) struct Pingora;

impl Peer for Pingora {
    const NAME: &'static str = "pingora";
    const NO_RESET: Option<&'static str> = Some("a sleep cannot be moved");
    type Handle = Pin<Box<dyn Future<Output = ()> + Send>>;
    type Work<J: Job> = Waker;

    fn build(_: Duration) -> Self {
        Self
    }

    fn work<J: Job>(job: J) -> Waker {
        waker(job)
    }

    #[inline]
    fn schedule<J: Job>(&mut self, delay: Duration, work: &Waker) -> Self::Handle {
        let mut sleep = Box::pin(fast_sleep(delay));
        arm(sleep.as_mut(), work);
        sleep
    }

    fn cancel(&mut self, sleep: Self::Handle) {
        drop(sleep);
    }

    fn reset(&mut self, _: &mut Self::Handle, _: Duration) {}

    fn pending(&self) -> Option<usize> {
        None
    }
}

impl Storming for Pingora {
    const NO_STOP: Option<&'static str> = Some("its thread never ends");
    const DROP_CANCELS: bool = true;
    type Back = ();

    #[inline]
    fn try_schedule<J: Job>(&mut self, delay: Duration, work: &Waker) -> Option<Self::Handle> {
        Some(self.schedule::<J>(delay, work))
    }

    #[inline]
    fn has_cancelled(&mut self, sleep: Self::Handle) -> Option<bool> {
        self.cancel(sleep);
        None
    }

    fn stop_beside_callers(&self) {}

    fn run_back((): ()) {}
}
