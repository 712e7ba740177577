//! The job of all queues, and the constants and functions that they share.

use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;
use timer_bench::durable::subject::{Micros, OnRun, now, payload};
use tokio::runtime::Runtime;

/// The time between two looks for due jobs.
pub(crate) const POLL: Duration = Duration::from_millis(100);
pub(crate) const CONNECTIONS: u32 = 16;

/// The number of jobs that are fetched at a time, or that run at the same time.
pub(crate) const BATCH: usize = 1_000;

pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

/// The function that handlers call. A process has one subject.
pub(crate) static ON_RUN: OnceLock<OnRun> = OnceLock::new();

/// The arguments of a job.
#[derive(Clone, Debug, Serialize, Deserialize, riverqueue::JobArgs)]
#[river(kind = "bench")]
pub(crate) struct Due {
    pub(crate) due: Micros,
    payload: Vec<u8>,
}

impl Due {
    pub(crate) fn after(delay: Duration) -> Self {
        Self { due: now() + delay.as_micros() as Micros, payload: payload() }
    }

    /// Handles the job.
    pub(crate) fn run(&self) {
        if let Some(on_run) = ON_RUN.get() {
            on_run(self.due);
        }
    }
}

pub(crate) async fn connect(url: &str) -> Result<PgPool, sqlx::Error> {
    PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await
}
