//! The durable timer of this workspace, with its defaults.

use super::subject::{Micros, OnRun, Subject, payload};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};
use timer_durable::store::Store;
use timer_durable::{Call, Due, DurableTimer, DurableTimerBuilder, TimeoutId, Topic};
use timer_durable_postgres::PostgresStore;
use timer_durable_sqlite::SqliteStore;

const TOPIC: Topic<Vec<u8>> = Topic::new("bench");

/// The largest number of calls of [`Subject::submit`] without an answer, half of what a timer
/// accepts.
const MAX_SUBMITTED: usize = 8_192;

pub(crate) struct Ours {
    pub(super) timer: DurableTimer,
    /// The calls of [`Subject::submit`], which a thread waits for.
    calls: SyncSender<Call<TimeoutId>>,
}

impl Ours {
    /// Opens a timer that has the topic of the cases beside those of `builder`.
    pub(super) fn open_with(builder: DurableTimerBuilder, store: &str, on_run: OnRun) -> Result<Self, String> {
        let store: Box<dyn Store> = if store.starts_with("postgres") {
            Box::new(PostgresStore::new(store).map_err(|error| error.to_string())?)
        } else {
            Box::new(SqliteStore::open(store).map_err(|error| error.to_string())?)
        };
        let handler = move |due: &Due<Vec<u8>>| {
            let due = due.due().duration_since(UNIX_EPOCH).unwrap_or_default();
            on_run(Micros::try_from(due.as_micros()).unwrap_or(Micros::MAX));
            Ok(())
        };
        let timer = builder.topic(TOPIC, handler).open(store).wait();
        let timer = timer.map_err(|error| error.to_string())?;
        let (calls, submitted) = sync_channel::<Call<TimeoutId>>(MAX_SUBMITTED);
        thread::spawn(move || {
            for call in submitted {
                _ = call.wait();
            }
        });
        Ok(Self { timer, calls })
    }
}

impl Subject for Ours {
    const SUBMIT_WAITS: bool = false;

    fn open(store: &str, on_run: OnRun) -> Result<Self, String> {
        Self::open_with(DurableTimer::builder(), store, on_run)
    }

    fn schedule(&self, delay: Duration) -> Result<(), String> {
        self.timer.new_timeout(TOPIC, delay, &payload()).wait().map(drop).map_err(|error| error.to_string())
    }

    fn submit(&self, delay: Duration) -> Result<(), String> {
        let call = self.timer.new_timeout(TOPIC, delay, &payload());
        self.calls.send(call).map_err(|error| error.to_string())
    }
}
