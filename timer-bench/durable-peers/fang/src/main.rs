//! fang and underway as peers of the program `durable`: `FILE|URL fang|underway CASE SETTING..`.
//!
//! fang has eight workers, which look for tasks every 100 ms instead of every five seconds.
//! underway runs on PostgreSQL only. Its worker starts 64 tasks at a time, is notified of new ones,
//! and looks for due ones every second instead of every minute.
#![forbid(unsafe_code)]

mod fang_tasks;
mod underway_jobs;

use std::process::ExitCode;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use timer_bench::durable::{OnRun, cases};
use timer_bench::settings::Settings;
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [store, peer, case, settings @ ..] = words.as_slice() else {
        eprintln!("usage: durable-peers-fang FILE|URL fang|underway CASE SETTING..");
        return ExitCode::FAILURE;
    };
    let rows = Settings::parse(settings.iter().map(String::as_str)).and_then(|settings| match peer.as_str() {
        "fang" => cases::run(peer, case, &settings, |on_run| fang_tasks::open(store, on_run)),
        "underway" => cases::run(peer, case, &settings, |on_run| underway_jobs::open(store, on_run)),
        _ => Err(format!("no peer `{peer}`; there are fang and underway")),
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

/// The function that handlers call. A process has one subject.
static ON_RUN: std::sync::OnceLock<OnRun> = std::sync::OnceLock::new();

/// Returns the number of transactions that have ended in the database of `url`. The query runs in
/// another database.
fn transactions(url: &str) -> Result<f64, String> {
    let answer = async {
        let options = PgConnectOptions::from_str(url)?;
        let name = options.get_database().unwrap_or_default().to_owned();
        let mut connection = PgConnection::connect_with(&options.database("postgres")).await?;
        let question = "select (xact_commit + xact_rollback)::float8 from pg_stat_database where datname = $1";
        sqlx::query_scalar(question).bind(name).fetch_one(&mut connection).await
    };
    RUNTIME.block_on(answer).map_err(|error: sqlx::Error| error.to_string())
}

fn set_on_run(on_run: OnRun) {
    let _first = ON_RUN.set(on_run);
}

fn ran(due: i64) {
    if let Some(on_run) = ON_RUN.get().map(Arc::clone) {
        on_run(due);
    }
}
