//! graphile_worker for Rust on PostgreSQL, which writes the ends of jobs in batches. `NOTIFY`
//! announces a job without a delay. The local queue of graphile_worker is off. Without a pause
//! between two fetches, the local queue looks for jobs all the time, and with a pause it is later
//! than the worker alone.

use crate::job::{Due, ON_RUN, POLL, RUNTIME, connect};
use chrono::DateTime;
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, JobSpecBuilder, TaskHandler, WorkerContext, WorkerOptions, WorkerUtils,
};
use std::error::Error;
use std::time::Duration;
use timer_bench::durable::subject::{OnRun, Subject};

/// The number of jobs that run at the same time, each of which ends with a batch.
const CONCURRENCY: usize = 64;

/// The time in which the ends of a batch are collected.
const BATCH_DELAY: Duration = Duration::from_millis(5);

pub(crate) struct Graphile(WorkerUtils);

impl TaskHandler for Due {
    const IDENTIFIER: &'static str = "bench";

    async fn run(self, _: WorkerContext) -> impl IntoTaskHandlerResult {
        Due::run(&self);
    }
}

async fn open(url: &str) -> Result<WorkerUtils, Box<dyn Error>> {
    let worker = WorkerOptions::default()
        .pg_pool(connect(url).await?)
        .concurrency(CONCURRENCY)
        .poll_interval(POLL)
        .complete_job_batch_delay(BATCH_DELAY)
        .define_job::<Due>()
        .init()
        .await?;
    let jobs = worker.create_utils();
    tokio::spawn(async move { worker.run().await });
    Ok(jobs)
}

impl Subject for Graphile {
    fn open(store: &str, on_run: OnRun) -> Result<Self, String> {
        let _first = ON_RUN.set(on_run);
        RUNTIME.block_on(open(store)).map(Self).map_err(|error| error.to_string())
    }

    fn schedule(&self, delay: Duration) -> Result<(), String> {
        let due = Due::after(delay);
        let mut job = JobSpec::default();
        if !delay.is_zero() {
            let at = DateTime::from_timestamp_micros(due.due).ok_or("a time out of range")?;
            job = JobSpecBuilder::new().run_at(at).build();
        }
        RUNTIME.block_on(self.0.add_job(due, job)).map(drop).map_err(|error| error.to_string())
    }
}
