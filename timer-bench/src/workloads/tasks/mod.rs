//! The workloads of tasks on a runtime with several threads.

pub(super) mod limits;
pub(super) mod sleepers;

use super::Stop;
use tokio::runtime::{Builder, Runtime};

/// Builds a runtime with `workers` workers.
fn runtime(workers: usize) -> Result<Runtime, Stop> {
    let built = Builder::new_multi_thread().worker_threads(workers).enable_time().build();
    built.map_err(|error| Stop::Unavailable(format!("no runtime: {error}")))
}
