//! Timers that are futures: boxed if they cannot be moved, armed by one poll, cancelled by being dropped.

use super::storming::Storming;
use super::{Job, Peer};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// What such a timer has of its own; the rest of a [`Peer`] and of storms is the same for all.
pub trait Sleeping: Clone + Send + 'static {
    /// As [`Peer::NAME`].
    const NAME: &'static str;

    /// As [`Peer::NO_RESET`].
    const NO_RESET: Option<&'static str> = None;

    /// Why it cannot be stopped while callers go on.
    const NO_STOP: &'static str;

    /// One pending timer.
    type Sleep: Future + Send + Unpin;

    /// A new one.
    fn build() -> Self;

    /// As [`Peer::on_thread`].
    fn on_thread<R>(&self, body: impl FnOnce() -> R) -> R {
        body()
    }

    /// One that ends after `delay`, not polled yet.
    fn sleep(delay: Duration) -> Self::Sleep;

    /// As [`Peer::reset`].
    fn reset(sleep: &mut Self::Sleep, delay: Duration);
}

impl<S: Sleeping> Peer for S {
    const NAME: &'static str = S::NAME;
    const NO_RESET: Option<&'static str> = S::NO_RESET;
    type Handle = S::Sleep;
    type Work<J: Job> = Waker;

    fn build(_: Duration) -> Self {
        S::build()
    }

    fn on_thread<R>(&self, body: impl FnOnce() -> R) -> R {
        S::on_thread(self, body)
    }

    fn work<J: Job>(job: J) -> Waker {
        Waker::from(Arc::new(Waking(job)))
    }

    #[inline]
    fn schedule<J: Job>(&mut self, delay: Duration, work: &Waker) -> S::Sleep {
        let mut sleep = S::sleep(delay);
        // If it is due already, the job is done here.
        if Pin::new(&mut sleep).poll(&mut Context::from_waker(work)).is_ready() {
            work.wake_by_ref();
        }
        sleep
    }

    fn cancel(&mut self, sleep: S::Sleep) {
        drop(sleep);
    }

    #[inline]
    fn reset(&mut self, sleep: &mut S::Sleep, delay: Duration) {
        S::reset(sleep, delay);
    }

    fn pending(&self) -> Option<usize> {
        None
    }
}

impl<S: Sleeping> Storming for S {
    const NO_STOP: Option<&'static str> = Some(S::NO_STOP);
    const DROP_CANCELS: bool = true;
    type Back = ();

    #[inline]
    fn try_schedule<J: Job>(&mut self, delay: Duration, work: &Waker) -> Option<S::Sleep> {
        Some(self.schedule::<J>(delay, work))
    }

    #[inline]
    fn has_cancelled(&mut self, sleep: S::Sleep) -> Option<bool> {
        self.cancel(sleep);
        None
    }

    fn stop_beside_callers(&self) {}

    fn run_back((): ()) {}
}

/// A waker that does a job. One allocation; clones are the same.
struct Waking<J>(J);

impl<J: Job> Wake for Waking<J> {
    fn wake(self: Arc<Self>) {
        self.0.run();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.run();
    }
}
