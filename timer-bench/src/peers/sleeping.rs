//! Timers that are futures. They are boxed if they cannot be moved, armed by one poll, and
//! cancelled by a drop.

use crate::peer::{Job, Peer};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// The specific part of such a timer. The rest of [`Peer`] is the same for all.
pub(crate) trait Sleeping: Clone + Send + 'static {
    /// See [`Peer::NAME`].
    const NAME: &'static str;

    /// See [`Peer::NO_RESET`].
    const NO_RESET: Option<&'static str> = None;

    /// A pending timer.
    type Sleep: Future + Send + Unpin;

    /// Builds a timer.
    fn build() -> Self;

    /// See [`Peer::on_thread`].
    fn on_thread<R>(&self, body: impl FnOnce() -> R) -> R {
        body()
    }

    /// See [`Peer::wake`].
    fn wake(&self) {}

    /// Returns a sleep of `delay` that has not been polled.
    fn sleep(delay: Duration) -> Self::Sleep;

    /// See [`Peer::reset`].
    fn reset(sleep: &mut Self::Sleep, delay: Duration);
}

impl<S: Sleeping> Peer for S {
    const NAME: &'static str = S::NAME;
    const NO_RESET: Option<&'static str> = S::NO_RESET;
    const DROP_CANCELS: bool = true;
    type Handle = S::Sleep;
    type Work<J: Job> = Waker;

    fn build(_: Duration) -> Self {
        S::build()
    }

    fn on_thread<R>(&self, body: impl FnOnce() -> R) -> R {
        S::on_thread(self, body)
    }

    fn wake(&self) {
        S::wake(self);
    }

    fn work<J: Job>(job: J) -> Waker {
        Waker::from(Arc::new(JobWaker(job)))
    }

    #[inline]
    fn schedule<J: Job>(&mut self, delay: Duration, work: &Waker) -> S::Sleep {
        let mut sleep = S::sleep(delay);
        // A sleep that is already due runs the job here.
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
}

/// A waker that runs a job. It is one allocation, and clones share it.
struct JobWaker<J>(J);

impl<J: Job> Wake for JobWaker<J> {
    fn wake(self: Arc<Self>) {
        self.0.run();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.run();
    }
}
