//! apalis as a peer of the bench: `apalis-peer PEER WORKLOAD FILE|URL [--SETTING NUMBER]..`.
//!
//! It keeps times in seconds and cuts off the rest, so that a task runs up to a second early. Here
//! the times of tasks with a delay are rounded up. One worker looks for up to 1,000 tasks every
//! 100 ms. On SQLite each connection syncs its commits. The crate's own setup would not do so.
#![forbid(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use apalis::prelude::*;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use timer_bench::durable::cases;
use timer_bench::durable::subject::{OnRun, Subject, now, payload};
use timer_bench::out::{Heap, Run};
use timer_bench::settings::Settings;
use tokio::runtime::Runtime;

const BATCH: usize = 1_000;
const POLL: Duration = Duration::from_millis(100);
const CONNECTIONS: u32 = 16;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));
/// The function that handlers call. A process has one subject.
static ON_RUN: OnceLock<OnRun> = OnceLock::new();

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Due {
    due: i64,
    payload: Vec<u8>,
}

async fn run(due: Due) -> Result<(), BoxDynError> {
    if let Some(on_run) = ON_RUN.get() {
        on_run(due.due);
    }
    Ok(())
}

enum Apalis {
    Sqlite(apalis_sqlite::SqliteStorage<Due>),
    Postgres(apalis_postgres::PostgresStorage<Due>),
}

async fn open(store: &str) -> Result<Apalis, Box<dyn Error>> {
    if store.starts_with("postgres") {
        let pool = sqlx::postgres::PgPoolOptions::new().max_connections(CONNECTIONS).connect(store).await?;
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
        let due = Due { due: now() + delay.as_micros() as i64, payload: payload() };
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

fn main() -> ExitCode {
    let parsed = Settings::parse(std::env::args_os().skip(1));
    let Ok(([peer, workload, store], settings)) = parsed.as_ref().map(|(words, settings)| (words.as_slice(), settings))
    else {
        eprintln!("usage: apalis-peer PEER WORKLOAD FILE|URL [--SETTING NUMBER]..");
        return ExitCode::from(2);
    };
    let this = Run { peer: peer.clone(), workload: workload.clone(), settings: settings.clone(), heap: Heap::System };
    match cases::run::<Apalis>(&this, store) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{peer} {workload}: {why:?}");
            ExitCode::FAILURE
        }
    }
}
