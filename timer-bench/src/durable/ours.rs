//! The durable timer of this workspace, with its defaults.

use super::subject::{Micros, OnRun, Subject, payload};
use std::time::{Duration, UNIX_EPOCH};
use timer_durable::{Due, DurableTimer, PostgresStore, SqliteStore, Store, Topic};

const TOPIC: Topic<Vec<u8>> = Topic::new("bench");

pub(crate) struct Ours(DurableTimer);

impl Subject for Ours {
    const SUBMIT_WAITS: bool = false;

    fn open(store: &str, on_run: OnRun) -> Result<Self, String> {
        let store: Box<dyn Store> = if store.starts_with("postgres") {
            Box::new(PostgresStore::connect(store).map_err(|error| error.to_string())?)
        } else {
            Box::new(SqliteStore::open(store).map_err(|error| error.to_string())?)
        };
        let handler = move |due: &Due<Vec<u8>>| {
            let due = due.due().duration_since(UNIX_EPOCH).unwrap_or_default();
            on_run(Micros::try_from(due.as_micros()).unwrap_or(Micros::MAX));
            Ok(())
        };
        let timer = DurableTimer::builder().topic(TOPIC, handler).open(store);
        timer.map(Self).map_err(|error| error.to_string())
    }

    fn schedule(&self, delay: Duration) -> Result<(), String> {
        self.0.new_timeout(TOPIC, delay, &payload()).map(drop).map_err(|error| error.to_string())
    }

    fn submit(&self, delay: Duration) -> Result<(), String> {
        // The call takes effect although nobody waits for the future.
        drop(self.0.new_timeout_async(TOPIC, delay, &payload()));
        Ok(())
    }
}
