//! The state of one durable timer at the moment when an exporter asked for it.

use timer_durable::{DurableLateRun, DurableTimetable, Stats};

/// A snapshot of one durable timer, as
/// [`DurableMetrics::snapshots`](crate::DurableMetrics::snapshots) returns it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DurableSnapshot {
    /// The number of this timer among all that were ever watched, from 1. It tells a new timer from
    /// an earlier one with the same label.
    pub number: u64,
    /// The value of the label `timer`, unique within the set.
    pub label: String,
    /// The description of the store.
    pub store: String,
    /// The timer's own figures.
    pub stats: Stats,
    /// The timeouts to come.
    pub timetable: DurableTimetable,
    /// The worst attempts of the last minute.
    pub worst: Vec<DurableLateRun>,
}
