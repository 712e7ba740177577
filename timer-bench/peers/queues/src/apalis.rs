//! apalis on SQLite or PostgreSQL.
//!
//! It keeps times in seconds and cuts off the rest, so that a task runs up to a second early. Here
//! the times of tasks with a delay are rounded up. One worker looks for up to 1,000 tasks. On
//! SQLite each connection syncs its commits. The crate's own setup would not do so.

use crate::job::{BATCH, CONNECTIONS, Due, ON_RUN, POLL, RUNTIME, connect};
use apalis::prelude::*;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use std::error::Error;
use std::str::FromStr;
use std::time::Duration;
use timer_bench::durable::subject::{OnRun, Subject};

async fn run(due: Due) -> Result<(), BoxDynError> {
    due.run();
    Ok(())
}

pub(crate) enum Apalis {
    Sqlite(apalis_sqlite::SqliteStorage<Due>),
    Postgres(apalis_postgres::PostgresStorage<Due>),
}

async fn open(store: &str) -> Result<Apalis, Box<dyn Error>> {
    if store.starts_with("postgres") {
        let pool = connect(store).await?;
        apalis_postgres::PostgresStorage::setup(&pool).await?;
        let config = apalis_postgres::Config::default().queue("bench").batch_size(BATCH);
        let storage = apalis_postgres::PostgresStorage::new(&pool).with_config(config);
        let backend = storage.clone().poll_with_interval(POLL);
        let worker = WorkerBuilder::new("bench-1").backend(backend).build(run);
        tokio::spawn(async move { worker.run().await });
        return Ok(Apalis::Postgres(storage));
    }
    let options = SqliteConnectOptions::from_str(&format!("sqlite://{store}"))?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(30));
    let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await?;
    apalis_sqlite::SqliteStorage::migrations().run(&pool).await?;
    let config = apalis_sqlite::Config::default().queue("bench").batch_size(BATCH);
    let storage = apalis_sqlite::SqliteStorage::new(&pool).with_config(config);
    let backend = storage.clone().poll_with_interval(POLL);
    let worker = WorkerBuilder::new("bench-1").backend(backend).build(run);
    tokio::spawn(async move { worker.run().await });
    Ok(Apalis::Sqlite(storage))
}

impl Subject for Apalis {
    fn open(store: &str, on_run: OnRun) -> Result<Self, String> {
        let _first = ON_RUN.set(on_run);
        RUNTIME.block_on(open(store)).map_err(|error| error.to_string())
    }

    fn schedule(&self, delay: Duration) -> Result<(), String> {
        let due = Due::after(delay);
        let micros = due.due.unsigned_abs();
        let second = if delay.is_zero() { micros / 1_000_000 } else { micros.div_ceil(1_000_000) };
        let task = TaskBuilder::new(due).run_at_timestamp(second).build();
        match self {
            Self::Sqlite(storage) => {
                RUNTIME.block_on(storage.clone().push_task(task)).map_err(|error| error.to_string())
            }
            Self::Postgres(storage) => {
                RUNTIME.block_on(storage.clone().push_task(task)).map_err(|error| error.to_string())
            }
        }
    }
}
