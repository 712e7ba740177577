//! Jobs of underway.

use std::time::Duration;

use jiff::{SignedDuration, Span};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;
use timer_bench::durable::{OnRun, Subject, now, payload};
use underway::{Job, To};

use crate::{RUNTIME, ran, set_on_run, transactions};

#[derive(Clone, Serialize, Deserialize)]
struct Due {
    due: i64,
    payload: Vec<u8>,
}

type Error = Box<dyn std::error::Error>;

/// The job and the URL of its database.
pub(crate) struct Underway(Job<Due, ()>, String);

pub(crate) fn open(store: &str, on_run: OnRun) -> Result<Underway, String> {
    if !store.starts_with("postgres") {
        return Err("it has a store on PostgreSQL only".to_owned());
    }
    set_on_run(on_run);
    RUNTIME.block_on(start(store)).map_err(|error| error.to_string())
}

async fn start(store: &str) -> Result<Underway, Error> {
    let pool = PgPoolOptions::new().max_connections(80).connect(store).await?;
    underway::run_migrations(&pool).await?;
    let run = |_, due: Due| async move {
        ran(due.due);
        To::done()
    };
    let job = Job::builder().step(run).name("bench").pool(pool).build().await?;
    let mut worker = job.worker();
    worker.set_concurrency_limit(64);
    tokio::spawn(async move { worker.run_every(Span::new().seconds(1)).await });
    Ok(Underway(job, store.to_owned()))
}

impl Subject for Underway {
    type Id = ();

    fn schedule(&self, delay: Duration) -> Result<(), String> {
        let due = Due { due: now() + delay.as_micros() as i64, payload: payload() };
        let call = async {
            let span = Span::try_from(SignedDuration::try_from(delay)?)?;
            self.0.enqueue_after(&due, span).await?;
            Ok::<(), Error>(())
        };
        RUNTIME.block_on(call).map_err(|error| error.to_string())
    }

    fn cancel(&self, (): ()) -> Result<(), String> {
        Err("not measured".to_owned())
    }

    fn transactions(&self) -> Result<f64, String> {
        transactions(&self.1)
    }
}
