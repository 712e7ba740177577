//! Timers as tasks of a runtime with several threads use them.

pub(super) mod limits;
pub(super) mod sleepers;

use super::Stop;
use tokio::runtime::{Builder, Runtime};

/// A runtime with so many workers.
fn runtime(workers: usize) -> Result<Runtime, Stop> {
    let built = Builder::new_multi_thread().worker_threads(workers).enable_time().build();
    built.map_err(|error| Stop::Unavailable(format!("no runtime: {error}")))
}
