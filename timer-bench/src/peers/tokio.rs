//! tokio's `sleep`, boxed, pinned and polled once. Dropping it cancels. The runtime has one thread,
//! which drives its wheel.
//!
//! A build with `--cfg tokio_unstable` measures the alternative timer of the runtime instead, under
//! the name `tokio-alt`.

use super::sleeping::Sleeping;
use crate::peer::Sleeps;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, Sleep, sleep, timeout};

/// The name of this timer.
pub(crate) const NAME: &str = if cfg!(tokio_unstable) { "tokio-alt" } else { "tokio" };

fn runtime(workers: usize) -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).enable_time();
    #[cfg(tokio_unstable)]
    builder.enable_alt_timer();
    builder.build()
}

#[derive(Clone)]
pub(crate) struct Tokio(Arc<Runtime>);

impl Sleeping for Tokio {
    const NAME: &'static str = NAME;
    type Sleep = Pin<Box<Sleep>>;

    fn build() -> Self {
        match runtime(1) {
            Ok(runtime) => Self(Arc::new(runtime)),
            Err(error) => panic!("no runtime: {error}"),
        }
    }

    fn on_thread<R>(&self, body: impl FnOnce() -> R) -> R {
        let _entered = self.0.enter();
        body()
    }

    /// The alternative timer frees dropped sleeps when the worker wakes. A drop does not wake it.
    fn wake(&self) {
        drop(self.0.spawn(async {}));
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
pub(crate) struct TokioSleeps;

impl Sleeps for TokioSleeps {
    type Sleep = Sleep;

    fn runtime(workers: usize) -> io::Result<Runtime> {
        runtime(workers)
    }

    fn build() -> Self {
        Self
    }

    fn sleep(&self, delay: Duration) -> Sleep {
        sleep(delay)
    }

    fn reset(sleep: Pin<&mut Sleep>, delay: Duration) {
        sleep.reset(Instant::now() + delay);
    }

    async fn limit<F: Future + Send>(&self, limit: Duration, future: F) {
        _ = timeout(limit, future).await;
    }
}
