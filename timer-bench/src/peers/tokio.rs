//! tokio's `sleep`, boxed, pinned and polled once. Dropping it cancels. The runtime has one thread,
//! which drives its wheel.

use super::sleeping::Sleeping;
use super::tasks::Tasks;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, Sleep, sleep, timeout};

#[derive(Clone)]
pub(super) struct Tokio {
    runtime: Arc<Runtime>,
}

/// Builds a runtime with one thread and a clock.
pub(super) fn runtime() -> Arc<Runtime> {
    match Builder::new_multi_thread().worker_threads(1).enable_time().build() {
        Ok(runtime) => Arc::new(runtime),
        Err(error) => panic!("no runtime: {error}"),
    }
}

impl Sleeping for Tokio {
    const NAME: &'static str = "tokio";
    const NO_STOP: &'static str = "a call after the end panics";
    type Sleep = Pin<Box<Sleep>>;

    fn build() -> Self {
        Self { runtime: runtime() }
    }

    fn on_thread<R>(&self, body: impl FnOnce() -> R) -> R {
        let _entered = self.runtime.enter();
        body()
    }

    #[inline]
    fn sleep(delay: Duration) -> Self::Sleep {
        Box::pin(sleep(delay))
    }

    #[inline]
    fn reset(sleep: &mut Self::Sleep, delay: Duration) {
        sleep.as_mut().reset(Instant::now() + delay);
    }
}

/// tokio's timer as tasks use it. It is the clock of the runtime on which they run.
#[derive(Clone)]
pub(super) struct TokioTasks;

impl Tasks for TokioTasks {
    const NAME: &'static str = <Tokio as Sleeping>::NAME;
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
