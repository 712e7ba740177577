//! Tasks of fang.

use std::time::Duration;

use chrono::{DateTime, Utc};
use fang::asynk::async_queue::{AsyncQueue, AsyncQueueable};
use fang::asynk::async_runnable::AsyncRunnable;
use fang::asynk::async_worker_pool::AsyncWorkerPool;
use fang::{FangError, Scheduled, SleepParams};
use serde::{Deserialize, Serialize};
use sqlx::{Connection, Executor};
use timer_bench::durable::{OnRun, Subject, now, payload};

use crate::{RUNTIME, ran, set_on_run, transactions};

const WORKERS: u32 = 8;
const POLL: Duration = Duration::from_millis(100);

#[derive(Serialize, Deserialize)]
struct Due {
    due: i64,
    payload: Vec<u8>,
}

#[typetag::serde]
#[async_trait::async_trait]
impl AsyncRunnable for Due {
    async fn run(&self, _: &dyn AsyncQueueable) -> Result<(), FangError> {
        ran(self.due);
        Ok(())
    }

    fn cron(&self) -> Option<Scheduled> {
        DateTime::<Utc>::from_timestamp_micros(self.due).map(Scheduled::ScheduleOnce)
    }
}

/// The queue and the URL of its database.
pub(crate) struct Fang(AsyncQueue, String);

pub(crate) fn open(store: &str, on_run: OnRun) -> Result<Fang, String> {
    set_on_run(on_run);
    RUNTIME.block_on(start(store)).map_err(|error| format!("{error:?}"))
}

async fn start(store: &str) -> Result<Fang, FangError> {
    let uri = if store.starts_with("postgres") {
        let mut connection = sqlx::PgConnection::connect(store).await?;
        connection.execute(include_str!("fang_postgres.sql")).await?;
        store.to_owned()
    } else {
        for end in ["", "-wal", "-shm"] {
            let _absent = std::fs::remove_file(format!("{store}{end}"));
        }
        let uri = format!("sqlite://{store}?mode=rwc");
        let mut connection = sqlx::SqliteConnection::connect(&uri).await?;
        connection.execute("pragma journal_mode = wal").await?;
        connection.execute(include_str!("fang_sqlite.sql")).await?;
        uri
    };
    let mut queue = AsyncQueue::builder().uri(uri.clone()).max_pool_size(16_u32).build();
    queue.connect().await?;
    let sleep =
        SleepParams { sleep_period: POLL, max_sleep_period: POLL, min_sleep_period: POLL, sleep_step: Duration::ZERO };
    let mut workers: AsyncWorkerPool<AsyncQueue> =
        AsyncWorkerPool::builder().queue(queue.clone()).number_of_workers(WORKERS).sleep_params(sleep).build();
    workers.start().await;
    Ok(Fang(queue, uri))
}

impl Subject for Fang {
    type Id = Vec<u8>;

    fn schedule(&self, delay: Duration) -> Result<Vec<u8>, String> {
        let due = Due { due: now() + delay.as_micros() as i64, payload: payload() };
        let task = RUNTIME.block_on(self.0.schedule_task(&due)).map_err(|error| format!("{error:?}"))?;
        Ok(task.id.into_bytes().to_vec())
    }

    fn cancel(&self, _: Vec<u8>) -> Result<(), String> {
        Err("not measured".to_owned())
    }

    fn transactions(&self) -> Result<f64, String> {
        transactions(&self.1)
    }
}
