//! Durable timers in a registry of `prometheus-client`.

use crate::watched::{List, Watched};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use timer_durable::store::Membership;
use timer_durable::{BOUNDS, DurableTimer, Histogram, Stats, WeakDurableTimer};

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
/// | `durable_attempts_repeated_total` | attempts that failed, did not start or had no handler, and are repeated |
/// | `durable_attempts_refused_total` | results that the store refused |
/// | `durable_attempts_unhandled_total` | attempts of topics without a handler |
/// | `durable_commits_total` | commits |
/// | `durable_operations_total` | parts of all commits |
/// | `durable_store_errors_total` | failures of the store |
/// | `durable_rejoins_total` | new instances after a lost answer or a take-over |
/// | `durable_lag_seconds` | how late attempts have begun |
/// | `durable_commit_seconds` | how long commits took |
/// | `durable_shards` | shards that this process owns |
/// | `durable_nodes` | processes whose lease holds |
/// | `durable_lease_age_seconds` | the time since the lease was asked for |
/// | `durable_shards_taken_total` | shards taken over from dead processes |
/// | `durable_foreign_timeouts_total` | timeouts that others have written for this process |
/// | `durable_reconnects_total` | attempts to connect again |
///
/// The last six exist only for a store that processes share. A timer that was stopped keeps its
/// counters and histograms, and its gauges are absent.
///
/// `durable_timeouts_pending` is [`Stats::pending`]. A scrape makes the store count nothing. The
/// series is absent while the store does not know the number, as for some seconds after a large
/// SQLite file was opened. In a shared store each process exports the number for the whole store,
/// so take the maximum over the processes and not the sum.
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
    list: Arc<Mutex<List<WeakDurableTimer>>>,
}

/// The state of one durable timer at the moment when an exporter asked for it.
pub(crate) struct DurableSnapshot {
    /// The number of this timer among all that were ever watched.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "for exporters with a memory"))]
    pub(crate) number: u64,
    /// The value of the label `timer`, unique within the set.
    pub(crate) label: String,
    /// The description of the store.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "for the live page"))]
    pub(crate) store: String,
    pub(crate) stats: Stats,
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
        // The guard of the lock is dropped before the handles.
        let mut handles = Vec::new();
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.add(timer.name().to_owned(), timer.downgrade(), WeakDurableTimer::upgrade, &mut handles);
    }

    /// Adds this set to a registry. Timers that are watched later are exported as well. A scrape
    /// does not touch the stores.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(DurableCollector { metrics: self.clone() }));
    }

    /// Returns the timer with this label.
    #[cfg(feature = "http")]
    pub(crate) fn timer(&self, label: &str) -> Option<DurableTimer> {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.watched.iter().find(|watched| watched.label == label)?.timer.upgrade()
    }

    /// Returns a snapshot of every living timer of the set. Does not touch the stores.
    pub(crate) fn snapshots(&self) -> Vec<DurableSnapshot> {
        let list = || self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = list().watched.clone();
        // The lock is free again, because the last handle of a timer may be dropped here.
        let (mut snapshots, mut gone) = (Vec::with_capacity(watched.len()), Vec::new());
        for Watched { number, label, timer } in watched {
            match timer.upgrade() {
                Some(timer) => snapshots.push(DurableSnapshot {
                    number,
                    label,
                    store: timer.store().to_owned(),
                    stats: timer.stats(),
                }),
                None => gone.push(number),
            }
        }
        list().remove(&gone);
        snapshots
    }
}

/// The type of a series, and the function that reads it.
enum Value {
    Counter(fn(&Stats) -> u64),
    Gauge(fn(&Stats) -> u64),
    /// A gauge that is left out while its value is unknown.
    Estimate(fn(&Stats) -> Option<u64>),
    Histogram(fn(&Stats) -> &Histogram),
    /// A counter that exists only for a store that several processes share.
    Total(fn(&Membership) -> u64),
    Size(fn(&Membership) -> u64),
    Age(fn(&Membership) -> Option<Duration>),
}

/// Name without the end that the client appends, help, and value.
const SERIES: &[(&str, &str, Value)] = &[
    (
        "durable_timeouts_pending",
        "Timeouts that are pending or running, of all processes that share the store.",
        Value::Estimate(|stats| stats.pending),
    ),
    (
        "durable_timeouts_in_memory",
        "Timeouts in memory, which are the earliest ones.",
        Value::Gauge(|stats| stats.in_memory),
    ),
    ("durable_timeouts_due", "Timeouts in memory that are due and have not begun.", Value::Gauge(|stats| stats.due)),
    ("durable_attempts_running", "Attempts that have begun and not ended.", Value::Gauge(|stats| stats.running)),
    ("durable_timeouts_scheduled", "Timeouts scheduled by this process.", Value::Counter(|stats| stats.scheduled)),
    ("durable_timeouts_cancelled", "Timeouts cancelled by this process.", Value::Counter(|stats| stats.cancelled)),
    ("durable_timeouts_expired", "Timeouts that were too late to begin.", Value::Counter(|stats| stats.expired)),
    ("durable_timeouts_dead", "Timeouts that became dead letters.", Value::Counter(|stats| stats.buried)),
    ("durable_attempts_begun", "Attempts that have begun.", Value::Counter(|stats| stats.begun)),
    ("durable_attempts_done", "Attempts that succeeded.", Value::Counter(|stats| stats.done)),
    (
        "durable_attempts_repeated",
        "Attempts that failed, did not start or had no handler, and are repeated.",
        Value::Counter(|stats| stats.retried),
    ),
    ("durable_attempts_refused", "Results that the store refused.", Value::Counter(|stats| stats.refused)),
    (
        "durable_attempts_unhandled",
        "Attempts of topics without a handler.",
        Value::Counter(|stats| stats.without_handler),
    ),
    ("durable_commits", "Commits.", Value::Counter(|stats| stats.commits)),
    ("durable_operations", "Parts of all commits.", Value::Counter(|stats| stats.operations)),
    ("durable_store_errors", "Failures of the store.", Value::Counter(|stats| stats.store_errors)),
    ("durable_rejoins", "New instances after a lost answer or a take-over.", Value::Counter(|stats| stats.rejoins)),
    ("durable_lag", "How late attempts have begun on the clock of the store.", Value::Histogram(|stats| &stats.lag)),
    ("durable_commit", "How long commits took.", Value::Histogram(|stats| &stats.commit_time)),
    ("durable_shards", "Shards that this process owns.", Value::Size(|member| member.shards.into())),
    ("durable_nodes", "Processes whose lease holds.", Value::Size(|member| member.nodes.into())),
    (
        "durable_lease_age",
        "The time since the lease was asked for.",
        Value::Age(|member| member.renewed.map(|renewed| renewed.elapsed())),
    ),
    ("durable_shards_taken", "Shards taken over from dead processes.", Value::Total(|member| member.taken_over)),
    (
        "durable_foreign_timeouts",
        "Timeouts that others have written for this process.",
        Value::Total(|member| member.foreign),
    ),
    ("durable_reconnects", "Attempts to connect again.", Value::Total(|member| member.reconnects)),
];

#[derive(Debug)]
struct DurableCollector {
    metrics: DurableMetrics,
}

impl Collector for DurableCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let timers = self.metrics.snapshots();
        for (name, help, value) in SERIES {
            write(&mut encoder, name, help, value, &timers)?;
        }
        Ok(())
    }
}

/// Writes a family with one metric for each timer that has it, or nothing if none has it.
fn write(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: &Value,
    timers: &[DurableSnapshot],
) -> fmt::Result {
    let member = |stats: &Stats| stats.membership.clone();
    let has = |stats: &Stats| match value {
        Value::Counter(_) | Value::Histogram(_) => true,
        Value::Total(_) => stats.membership.is_some(),
        // The present of a timer that was stopped is nobody's concern.
        _ if stats.is_stopped => false,
        Value::Gauge(_) => true,
        Value::Estimate(get) => get(stats).is_some(),
        Value::Size(_) => stats.membership.is_some(),
        Value::Age(get) => member(stats).is_some_and(|member| get(&member).is_some()),
    };
    let timers: Vec<_> = timers.iter().filter(|timer| has(&timer.stats)).collect();
    if timers.is_empty() {
        return Ok(());
    }
    let (kind, unit) = match value {
        Value::Counter(_) | Value::Total(_) => (MetricType::Counter, None),
        Value::Gauge(_) | Value::Estimate(_) | Value::Size(_) => (MetricType::Gauge, None),
        Value::Age(_) => (MetricType::Gauge, Some(Unit::Seconds)),
        Value::Histogram(_) => (MetricType::Histogram, Some(Unit::Seconds)),
    };
    let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
    for DurableSnapshot { label, stats, .. } in timers {
        let labels = [(crate::series::LABEL, label.as_str())];
        let mut metric = family.encode_family(&labels)?;
        let membership = member(stats).unwrap_or_default();
        match value {
            Value::Counter(get) => metric.encode_counter::<NoLabelSet, u64, u64>(&get(stats), None)?,
            Value::Total(get) => metric.encode_counter::<NoLabelSet, u64, u64>(&get(&membership), None)?,
            Value::Gauge(get) => metric.encode_gauge(&get(stats))?,
            Value::Estimate(get) => metric.encode_gauge(&get(stats).unwrap_or_default())?,
            Value::Size(get) => metric.encode_gauge(&get(&membership))?,
            Value::Age(get) => metric.encode_gauge(&get(&membership).unwrap_or_default().as_secs_f64())?,
            Value::Histogram(get) => {
                let histogram = get(stats);
                let bounds = BOUNDS.iter().map(Duration::as_secs_f64).chain([f64::INFINITY]);
                let buckets: Vec<(f64, u64)> = bounds.zip(histogram.counts).collect();
                let sum = histogram.sum.as_secs_f64();
                metric.encode_histogram::<NoLabelSet>(sum, histogram.count(), &buckets, None)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
