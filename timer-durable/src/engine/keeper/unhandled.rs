//! Reports of timeouts whose topics have no handler here.

use super::Keeper;
use crate::store::{Micros, Store};
use std::collections::HashMap;

/// The time between two reports of a topic.
const PAUSE: Micros = 60_000_000;

/// The number of timeouts of each topic since its last report, and the time of the next one.
#[derive(Default)]
pub(super) struct Unhandled(HashMap<String, (u64, Micros)>);

impl Unhandled {
    /// Counts a timeout that was due. A topic may have thousands of them.
    pub(super) fn note(&mut self, topic: String) {
        let (timeouts, _) = self.0.entry(topic).or_insert((0, Micros::MIN));
        *timeouts += 1;
    }
}

impl<S: Store> Keeper<S> {
    /// Reports the topics whose pause is over. Forgets a topic if it has had no timeout since.
    pub(super) fn report_unhandled(&mut self) {
        let timer = &self.settings.name;
        let now = self.store.now();
        self.unhandled.0.retain(|topic, (timeouts, next)| {
            if *next > now || *timeouts == 0 {
                return *next > now;
            }
            tracing::warn!(%timer, %topic, timeouts, "the topic has no handler here");
            *timeouts = 0;
            *next = now.saturating_add(PAUSE);
            true
        });
    }
}
