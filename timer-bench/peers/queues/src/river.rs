//! River for Rust on PostgreSQL.
//!
//! A job with a delay is made available by the scheduler of the elected client, which looks every
//! 5 s by default, and is fetched when the queue polls, every second by default. Both look every
//! 100 ms here. A job without a delay is announced by `NOTIFY`, at most once in the cooldown.

use crate::job::{BATCH, Due, ON_RUN, POLL, RUNTIME, connect};
use riverqueue::jiff::Timestamp;
use riverqueue::migrate::PostgresMigrator;
use riverqueue::{
    BoxError, Client, InsertOpts, Job, MaintenanceConfig, QueueConfig, WorkContext, WorkOutcome, Workers,
};
use std::error::Error;
use std::time::Duration;
use timer_bench::durable::subject::{OnRun, Subject};

/// The shortest time between two fetches.
const COOLDOWN: Duration = Duration::from_millis(10);

pub(crate) struct River(Client);

async fn run(_: WorkContext, job: Job<Due>) -> Result<WorkOutcome, BoxError> {
    job.args.run();
    Ok(WorkOutcome::Complete)
}

async fn open(url: &str) -> Result<Client, Box<dyn Error>> {
    let pool = connect(url).await?;
    PostgresMigrator::new(pool.clone()).migrate_up().await?;
    let mut workers = Workers::new();
    workers.add_fn(run)?;
    let client = Client::builder(pool)
        .workers(workers)
        .fetch_cooldown(COOLDOWN)
        .maintenance(MaintenanceConfig::default().with_scheduler_interval(POLL))
        .queue("default", QueueConfig::new(BATCH).with_fetch_poll_interval(POLL))
        .build()?;
    client.start()?.detach();
    Ok(client)
}

impl Subject for River {
    fn open(store: &str, on_run: OnRun) -> Result<Self, String> {
        let _first = ON_RUN.set(on_run);
        RUNTIME.block_on(open(store)).map(Self).map_err(|error| error.to_string())
    }

    fn schedule(&self, delay: Duration) -> Result<(), String> {
        let due = Due::after(delay);
        let mut options = InsertOpts::default();
        if !delay.is_zero() {
            let at = Timestamp::from_microsecond(due.due).map_err(|error| error.to_string())?;
            options = options.with_scheduled_at(at);
        }
        let inserted = RUNTIME.block_on(async { self.0.insert(due).opts(options).await });
        inserted.map(drop).map_err(|error| error.to_string())
    }
}
