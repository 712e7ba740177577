//! tokio's `sleep`: boxed and pinned, polled once. Dropping it cancels. The runtime has one thread, which turns its wheel.

use super::storming::Storming;
use super::tasks::Tasks;
use super::wakers::{arm, waker};
use super::{Job, Peer};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, Sleep, sleep, timeout};

#[derive(Clone)]
pub(super) struct Tokio {
    runtime: Arc<Runtime>,
}

/// A runtime with one thread and a clock.
pub(super) fn runtime() -> Arc<Runtime> {
    match Builder::new_multi_thread().worker_threads(1).enable_time().build() {
        Ok(runtime) => Arc::new(runtime),
        Err(error) => panic!("no runtime: {error}"),
    }
}

impl Peer for Tokio {
    const NAME: &'static str = "tokio";
    type Handle = Pin<Box<Sleep>>;
    type Work<J: Job> = Waker;

    fn build(_: Duration) -> Self {
        Self { runtime: runtime() }
    }

    fn on_thread<R>(&self, body: impl FnOnce() -> R) -> R {
        let _entered = self.runtime.enter();
        body()
    }

    fn work<J: Job>(job: J) -> Waker {
        waker(job)
    }

    #[inline]
    fn schedule<J: Job>(&mut self, delay: Duration, work: &Waker) -> Self::Handle {
        let mut sleep = Box::pin(sleep(delay));
        arm(sleep.as_mut(), work);
        sleep
    }

    fn cancel(&mut self, sleep: Self::Handle) {
        drop(sleep);
    }

    #[inline]
    fn reset(&mut self, sleep: &mut Self::Handle, delay: Duration) {
        sleep.as_mut().reset(Instant::now() + delay);
    }

    fn pending(&self) -> Option<usize> {
        None
    }
}

impl Storming for Tokio {
    const NO_STOP: Option<&'static str> = Some("a call after the end panics");
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

/// As tasks use it; the runtime on which they run is the one whose clock this is.
#[derive(Clone)]
pub(super) struct OfTasks;

impl Tasks for OfTasks {
    const NAME: &'static str = Tokio::NAME;
    type Sleep = Sleep;

    fn build() -> Self {
        Self
    }

    fn sleep(&self, delay: Duration) -> Sleep {
        sleep(delay)
    }

    fn reset(sleep: Pin<&mut Sleep>, delay: Duration) {
        sleep.reset(Instant::now() + delay);
    }

    async fn is_in_time<F: Future + Send>(&self, limit: Duration, future: F) -> bool {
        timeout(limit, future).await.is_ok()
    }
}
