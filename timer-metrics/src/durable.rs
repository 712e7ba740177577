//! The set of durable timers to export.

pub(crate) mod series;
mod snapshot;

pub use snapshot::DurableSnapshot;

use crate::prometheus::SeriesCollector;
use crate::watched::Watchlist;
use prometheus_client::registry::Registry;
use timer_durable::{DurableTimer, WeakDurableTimer};

/// The durable timers that are exported.
///
/// A set keeps no timer alive. A timer that was dropped leaves the set by itself. Clones share the
/// set.
///
/// | series | content |
/// |---|---|
/// | `durable_timeouts_pending` | timeouts pending or running, of all processes that share the store |
/// | `durable_timeouts_in_memory` | timeouts in memory, which are the earliest ones |
/// | `durable_timeouts_due` | timeouts in memory that are due and have not begun |
/// | `durable_attempts_running` | attempts that have begun and not ended |
/// | `durable_timeouts_scheduled_total` | timeouts scheduled by this process |
/// | `durable_timeouts_cancelled_total` | timeouts cancelled by this process |
/// | `durable_timeouts_expired_total` | timeouts that were too late to begin |
/// | `durable_timeouts_dead_total` | timeouts that became dead letters |
/// | `durable_attempts_begun_total` | attempts that have begun |
/// | `durable_attempts_done_total` | attempts that succeeded |
/// | `durable_attempts_failed_total` | attempts that failed |
/// | `durable_attempts_repeated_total` | attempts that failed, did not start or had no handler, and are repeated |
/// | `durable_attempts_postponed_total` | attempts that were neither done nor failed, and run again later |
/// | `durable_attempts_timed_out_total` | attempts that were cut off at the time limit of their topic |
/// | `durable_attempts_refused_total` | results that the store refused |
/// | `durable_attempts_unhandled_total` | attempts of topics without a handler |
/// | `durable_commits_total` | commits |
/// | `durable_operations_total` | parts of all commits |
/// | `durable_store_errors_total` | failures of the store |
/// | `durable_rejoins_total` | new instances after a lost answer or a take-over |
/// | `durable_lag_seconds` | how late attempts have begun |
/// | `durable_lateness_seconds_total` | time by which attempts have begun late, by the label `cause` (see [`DurableLateCause`]) |
/// | `durable_commit_seconds` | how long commits took |
/// | `durable_shards` | shards that this process owns |
/// | `durable_nodes` | processes whose lease holds |
/// | `durable_lease_age_seconds` | the time since the lease was asked for |
/// | `durable_shards_taken_total` | shards taken over from dead processes |
/// | `durable_foreign_timeouts_total` | timeouts that others have written for this process |
/// | `durable_reconnects_total` | attempts to connect again |
/// | `durable_oldest_due_seconds` | age of the topic's oldest timeout that is due and has not begun, or 0 |
/// | `durable_due_within_seconds` | the topic's timeouts that are due within a minute, an hour and a day, by the label `le` in seconds |
/// | `durable_topic_paused` | 1 while the topic is paused, otherwise 0 |
/// | `durable_topic_attempts_running` | the topic's attempts that have begun and not ended |
/// | `durable_topic_timeouts_scheduled_total` | the topic's timeouts scheduled by this process |
/// | `durable_topic_timeouts_cancelled_total` | the topic's timeouts cancelled by this process with their keys |
/// | `durable_topic_timeouts_expired_total` | the topic's timeouts that were too late to begin |
/// | `durable_topic_timeouts_dead_total` | the topic's timeouts that became dead letters |
/// | `durable_topic_attempts_begun_total` | the topic's attempts that have begun |
/// | `durable_topic_attempts_done_total` | the topic's attempts that succeeded |
/// | `durable_topic_attempts_failed_total` | the topic's attempts that failed |
/// | `durable_topic_attempts_repeated_total` | the topic's attempts that are repeated |
/// | `durable_topic_attempts_postponed_total` | the topic's attempts that run again later without a failure |
/// | `durable_topic_attempts_timed_out_total` | the topic's attempts that were cut off at its time limit |
/// | `durable_topic_lag_seconds` | how late the topic's attempts have begun |
///
/// The series of the node, from `durable_shards` to `durable_reconnects_total`, exist only for a
/// store that processes share. A timer that was stopped keeps its counters and histograms, and its
/// gauges are absent. So a node that has handed over its shards raises no alert.
///
/// Those of a topic have the label `topic`, one value for each topic with a handler in this process
/// and for at most 100 others ([`Stats::topics`]).
///
/// `durable_timeouts_pending` is [`Stats::pending`], for which a scrape makes the store count
/// nothing. The series is absent while the store does not know the number, as for some seconds
/// after a large SQLite file was opened. In a shared store each process exports the number for the
/// whole store, so take the maximum over the processes and not the sum. The same is true of
/// `durable_oldest_due_seconds` and `durable_due_within_seconds`.
///
/// `durable_due_within_seconds` is counted in the store when an exporter asks for it, beside the
/// keeper and for at most 5 ms in a minute ([`DurableTimer::timetable`]). A scrape waits for that
/// for at most 10 ms and otherwise has the numbers of the last count. Each number is absent until
/// it was counted once. It is a gauge with the label `le`, as `timer_due_within_seconds` is.
///
/// [`DurableLateCause`]: timer_durable::DurableLateCause
/// [`Stats::pending`]: timer_durable::Stats::pending
/// [`Stats::topics`]: timer_durable::Stats::topics
///
/// # Examples
///
/// ```
/// use prometheus_client::encoding::text::encode;
/// use prometheus_client::registry::Registry;
/// use timer_durable::{DurableTimer, MemoryStore};
/// use timer_metrics::DurableMetrics;
///
/// let (timer, _driver) = DurableTimer::builder().name("orders").build_manual(MemoryStore::new())?;
/// let metrics = DurableMetrics::new();
/// metrics.watch(&timer);
/// let mut registry = Registry::default();
/// metrics.register(&mut registry);
///
/// let mut text = String::new();
/// encode(&mut text, &registry)?;
/// assert!(text.contains("durable_timeouts_scheduled_total{timer=\"orders\"} 0\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct DurableMetrics {
    list: Watchlist<WeakDurableTimer>,
}

impl DurableMetrics {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a timer under its name. If a living timer of the set has that name, a number is
    /// appended to it, because two series with the same labels are not allowed.
    pub fn watch(&self, timer: &DurableTimer) {
        self.list.add(timer.name().to_owned(), timer.downgrade(), WeakDurableTimer::upgrade);
    }

    /// Adds this set to a registry. Timers that are watched later are exported as well. A scrape
    /// makes the stores count what is due, and reads nothing else from them.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(SeriesCollector(self.clone())));
    }

    /// Returns the living timer with this label.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_durable::{DurableTimer, MemoryStore};
    ///
    /// let (timer, _driver) = DurableTimer::builder().name("orders").build_manual(MemoryStore::new())?;
    /// let metrics = timer_metrics::DurableMetrics::new();
    /// metrics.watch(&timer);
    /// let found = metrics.timer("orders").ok_or("the timer lives")?;
    /// assert!(found.paused_topics().wait()?.is_empty() && metrics.timer("mail").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn timer(&self, label: &str) -> Option<DurableTimer> {
        self.list.get(label)?.upgrade()
    }

    /// Returns a snapshot of every living timer of the set, in the order in which they were added.
    /// Exporters of your own can use it. It makes the stores count what is due, as a scrape does,
    /// and waits for that for at most 10 ms per timer.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_durable::{DurableTimer, MemoryStore};
    ///
    /// let (timer, _driver) = DurableTimer::builder().name("orders").build_manual(MemoryStore::new())?;
    /// let metrics = timer_metrics::DurableMetrics::new();
    /// metrics.watch(&timer);
    /// for timer in metrics.snapshots() {
    ///     println!("{}: {:?} pending in {}", timer.label, timer.stats.pending, timer.store);
    /// }
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    #[must_use]
    pub fn snapshots(&self) -> Vec<DurableSnapshot> {
        self.list.read(|watched| {
            let timer = watched.timer.upgrade()?;
            Some(DurableSnapshot {
                number: watched.number,
                label: watched.label,
                store: timer.store().to_owned(),
                stats: timer.stats(),
                timetable: timer.timetable(),
                worst: timer.worst(),
            })
        })
    }
}

#[cfg(test)]
mod tests;
