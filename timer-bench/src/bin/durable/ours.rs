//! The durable timer of this workspace.

use std::time::{Duration, UNIX_EPOCH};
use timer_bench::durable::{Micros, OnRun, Subject, payload};
use timer_durable::{Due, DurableTimer, Store, TimeoutId, Topic};

/// The topic of all timeouts.
pub(crate) const TOPIC: Topic<Vec<u8>> = Topic::new("bench");

/// A timer with its defaults.
pub(crate) struct Ours(pub(crate) DurableTimer);

impl Ours {
    pub(crate) fn open(store: Box<dyn Store>, on_run: OnRun) -> Result<Self, String> {
        let handler = move |due: &Due<Vec<u8>>| {
            let due = due.due().duration_since(UNIX_EPOCH).unwrap_or_default();
            on_run(Micros::try_from(due.as_micros()).unwrap_or(Micros::MAX));
            Ok(())
        };
        let timer = DurableTimer::builder().topic(TOPIC, handler).open(store);
        timer.map(Self).map_err(|error| error.to_string())
    }
}

impl Subject for Ours {
    const SUBMIT_WAITS: bool = false;

    type Id = TimeoutId;

    fn schedule(&self, delay: Duration) -> Result<TimeoutId, String> {
        self.0.new_timeout(TOPIC, delay, &payload()).map_err(|error| error.to_string())
    }

    fn submit(&self, delay: Duration) -> Result<(), String> {
        // The call takes effect although nobody waits for the future.
        drop(self.0.new_timeout_async(TOPIC, delay, &payload()));
        Ok(())
    }

    fn cancel(&self, id: TimeoutId) -> Result<(), String> {
        self.0.cancel_by_id(id).map(drop).map_err(|error| error.to_string())
    }
}
