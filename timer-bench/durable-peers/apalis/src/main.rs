//! apalis as a peer of the program `durable`: `FILE|URL NAME CASE SETTING..`.
//!
//! It keeps times in seconds and cuts off the rest, so that a task runs up to a second early. Here
//! the times of tasks with a delay are rounded up. One worker looks for up to 1,000 tasks every
//! 100 ms. On SQLite each connection syncs its commits. The crate's own setup would not do so.
#![forbid(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use apalis::prelude::*;
use serde::{Deserialize, Serialize};
use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use timer_bench::durable::{OnRun, Subject, cases, now, payload};
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
    if let Some(on_run) = ON_RUN.get().map(Arc::clone) {
        on_run(due.due);
    }
    Ok(())
}

enum Apalis {
    Sqlite(apalis_sqlite::SqliteStorage<Due>),
    /// The storage and its URL.
    Postgres(apalis_postgres::PostgresStorage<Due>, String),
}

/// Returns the number of transactions that have ended in the database of `url`. The query runs in
/// another database.
async fn transactions(url: &str) -> Result<f64, sqlx::Error> {
    let options = PgConnectOptions::from_str(url)?;
    let name = options.get_database().unwrap_or_default().to_owned();
    let mut connection = PgConnection::connect_with(&options.database("postgres")).await?;
    let question = "select (xact_commit + xact_rollback)::float8 from pg_stat_database where datname = $1";
    sqlx::query_scalar(question).bind(name).fetch_one(&mut connection).await
}

async fn open(store: String) -> Result<Apalis, Box<dyn Error>> {
    if store.starts_with("postgres") {
        let pool = sqlx::postgres::PgPoolOptions::new().max_connections(CONNECTIONS).connect(&store).await?;
        apalis_postgres::PostgresStorage::setup(&pool).await?;
        let config = apalis_postgres::Config::default().queue("bench").batch_size(BATCH);
        let storage = apalis_postgres::PostgresStorage::new(&pool).with_config(config);
        let backend = storage.clone().poll_with_interval(POLL);
        let worker = WorkerBuilder::new("bench-1").backend(backend).build(run);
        tokio::spawn(async move { worker.run().await });
        return Ok(Apalis::Postgres(storage, store));
    }
    for end in ["", "-wal", "-shm"] {
        let _absent = std::fs::remove_file(format!("{store}{end}"));
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
    type Id = ();

    fn schedule(&self, delay: Duration) -> Result<(), String> {
        let due = Due { due: now() + delay.as_micros() as i64, payload: payload() };
        let micros = due.due.unsigned_abs();
        let second = if delay.is_zero() { micros / 1_000_000 } else { micros.div_ceil(1_000_000) };
        let task = TaskBuilder::new(due).run_at_timestamp(second).build();
        match self {
            Self::Sqlite(storage) => {
                RUNTIME.block_on(storage.clone().push_task(task)).map_err(|error| error.to_string())
            }
            Self::Postgres(storage, _) => {
                RUNTIME.block_on(storage.clone().push_task(task)).map_err(|error| error.to_string())
            }
        }
    }

    fn cancel(&self, (): ()) -> Result<(), String> {
        Err("it cannot cancel a task by its id".to_owned())
    }

    fn transactions(&self) -> Result<f64, String> {
        match self {
            Self::Sqlite(_) => Err("it has no database on a server".to_owned()),
            Self::Postgres(_, url) => RUNTIME.block_on(transactions(url)).map_err(|error| error.to_string()),
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [store, peer, case, settings @ ..] = words.as_slice() else {
        eprintln!("usage: durable-peers-apalis FILE|URL NAME CASE SETTING..");
        return ExitCode::FAILURE;
    };
    let rows = Settings::parse(settings.iter().map(String::as_str)).and_then(|settings| {
        cases::run(peer, case, &settings, |on_run| {
            let _first = ON_RUN.set(on_run);
            RUNTIME.block_on(open(store.clone())).map_err(|error| error.to_string())
        })
    });
    match rows {
        Ok(rows) => rows.iter().for_each(|row| println!("{row}")),
        Err(error) => {
            eprintln!("{peer} {case}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
