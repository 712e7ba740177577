//! The table of series of durable timers. Every exporter takes names and descriptions from it.

use super::snapshot::DurableSnapshot;
use crate::series::{BOUND, CAUSE};
use std::sync::Arc;
use std::time::Duration;
use timer_durable::store::Membership;
use timer_durable::{DurableLateCause, Histogram, Stats, TopicDue, TopicStats};

/// The name of the label of series that have one number for each topic.
const TOPIC: &str = "topic";

/// The type of a series, and the function that reads it. Gauges of a timer that was stopped are
/// left out.
enum Value {
    Counter(fn(&Stats) -> u64),
    /// A gauge that is left out while its value is unknown.
    Gauge(fn(&Stats) -> Option<u64>),
    Histogram(fn(&Stats) -> &Histogram),
    /// Seconds that only rise, one number for each cause of lateness.
    Lateness,
    /// A counter that exists only for a store that several processes share.
    Total(fn(&Membership) -> u64),
    Size(fn(&Membership) -> u64),
    LeaseAge,
    TopicCounter(fn(&TopicStats) -> u64),
    TopicGauge(fn(&TopicStats) -> u64),
    TopicAge,
    TopicLag,
    /// The numbers of timeouts of a topic that are due within a minute, an hour and a day.
    TopicDue,
}

/// One series, exported for every timer.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    /// A sentence without characters that need escaping.
    pub(crate) help: &'static str,
    value: Value,
}

/// A value of a series, with the labels beside that of the timer.
pub(crate) struct Labeled<'s> {
    pub(crate) labels: Vec<(&'static str, &'s str)>,
    pub(crate) value: Sample<'s>,
}

pub(crate) enum Sample<'s> {
    Counter(u64),
    /// A time that only rises.
    Time(Duration),
    Gauge(u64),
    Age(Duration),
    Histogram(&'s Histogram),
}

/// The type of a series in an exporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Series {
    pub(crate) fn kind(&self) -> Kind {
        match self.value {
            Value::Counter(_) | Value::Total(_) | Value::TopicCounter(_) | Value::Lateness => Kind::Counter,
            Value::Histogram(_) | Value::TopicLag => Kind::Histogram,
            _ => Kind::Gauge,
        }
    }

    /// Returns `true` if the values are times.
    pub(crate) fn is_in_seconds(&self) -> bool {
        self.name.contains("_seconds") && !matches!(self.value, Value::TopicDue)
    }

    /// Returns the values of a timer.
    pub(crate) fn samples<'s>(
        &self,
        DurableSnapshot { stats, timetable, .. }: &'s DurableSnapshot,
    ) -> Vec<Labeled<'s>> {
        let one = |value| vec![Labeled { labels: Vec::new(), value }];
        let member = || stats.membership.as_ref();
        let topics = |value: &dyn Fn(&'s TopicStats) -> Sample<'s>| {
            let labeled = |(name, topic): (&'s String, _)| Labeled { labels: vec![(TOPIC, name)], value: value(topic) };
            stats.topics.iter().map(labeled).collect()
        };
        match &self.value {
            Value::Counter(get) => one(Sample::Counter(get(stats))),
            Value::Histogram(get) => one(Sample::Histogram(get(stats))),
            Value::Total(get) => member().map_or_else(Vec::new, |member| one(Sample::Counter(get(member)))),
            Value::Lateness => {
                let part = |cause: DurableLateCause| Labeled {
                    labels: vec![(CAUSE, cause.as_str())],
                    value: Sample::Time(stats.lateness.part(cause)),
                };
                DurableLateCause::ALL.map(part).into()
            }
            Value::TopicCounter(get) => topics(&|topic| Sample::Counter(get(topic))),
            Value::TopicLag => topics(&|topic| Sample::Histogram(&topic.lag)),
            // The present of a timer that was stopped is nobody's concern.
            _ if stats.is_stopped => Vec::new(),
            Value::Gauge(get) => get(stats).map_or_else(Vec::new, |value| one(Sample::Gauge(value))),
            Value::Size(get) => member().map_or_else(Vec::new, |member| one(Sample::Gauge(get(member)))),
            Value::LeaseAge => {
                let renewed = member().and_then(|member| member.renewed);
                renewed.map_or_else(Vec::new, |renewed| one(Sample::Age(renewed.elapsed())))
            }
            Value::TopicGauge(get) => topics(&|topic| Sample::Gauge(get(topic))),
            Value::TopicAge => topics(&|topic| Sample::Age(topic.oldest_due)),
            Value::TopicDue => {
                let bounds = [("60.0", &timetable.minute), ("3600.0", &timetable.hour), ("86400.0", &timetable.day)];
                let counted = bounds.into_iter().filter_map(|(bound, due)| Some((bound, due.as_ref()?)));
                let labeled = |(bound, due): (&'static str, &'s Arc<[TopicDue]>)| {
                    stats.topics.keys().map(move |name| {
                        let value = Sample::Gauge(due_of(due, name));
                        Labeled { labels: vec![(TOPIC, name), (BOUND, bound)], value }
                    })
                };
                counted.flat_map(labeled).collect()
            }
        }
    }
}

/// Returns the number of all timeouts of a topic that were counted.
fn due_of(due: &[TopicDue], topic: &str) -> u64 {
    let counts = due.iter().find(|due| due.topic == topic).map(|due| &due.counts);
    counts.and_then(|counts| counts.last()).copied().unwrap_or(0)
}

const fn series(name: &'static str, help: &'static str, value: Value) -> Series {
    Series { name, help, value }
}

/// All series, in the order in which they are exported.
pub(crate) const SERIES: &[Series] = &[
    series(
        "durable_timeouts_pending",
        "Timeouts that are pending or running, of all processes that share the store.",
        Value::Gauge(|stats| stats.pending),
    ),
    series(
        "durable_timeouts_in_memory",
        "Timeouts in memory, which are the earliest ones.",
        Value::Gauge(|stats| Some(stats.in_memory)),
    ),
    series(
        "durable_timeouts_due",
        "Timeouts in memory that are due and have not begun.",
        Value::Gauge(|stats| Some(stats.due)),
    ),
    series(
        "durable_attempts_running",
        "Attempts that have begun and not ended.",
        Value::Gauge(|stats| Some(stats.running)),
    ),
    series(
        "durable_timeouts_scheduled_total",
        "Timeouts scheduled by this process.",
        Value::Counter(|stats| stats.scheduled),
    ),
    series(
        "durable_timeouts_cancelled_total",
        "Timeouts cancelled by this process.",
        Value::Counter(|stats| stats.cancelled),
    ),
    series(
        "durable_timeouts_expired_total",
        "Timeouts that were too late to begin.",
        Value::Counter(|stats| stats.expired),
    ),
    series("durable_timeouts_dead_total", "Timeouts that became dead letters.", Value::Counter(|stats| stats.buried)),
    series("durable_attempts_begun_total", "Attempts that have begun.", Value::Counter(|stats| stats.begun)),
    series("durable_attempts_done_total", "Attempts that succeeded.", Value::Counter(|stats| stats.done)),
    series("durable_attempts_failed_total", "Attempts that failed.", Value::Counter(|stats| stats.failed)),
    series(
        "durable_attempts_repeated_total",
        "Attempts that failed, did not start or had no handler, and are repeated.",
        Value::Counter(|stats| stats.retried),
    ),
    series(
        "durable_attempts_postponed_total",
        "Attempts that were neither done nor failed, and run again later.",
        Value::Counter(|stats| stats.postponed),
    ),
    series(
        "durable_attempts_timed_out_total",
        "Attempts that were cut off at the time limit of their topic.",
        Value::Counter(|stats| stats.timed_out),
    ),
    series("durable_attempts_refused_total", "Results that the store refused.", Value::Counter(|stats| stats.refused)),
    series(
        "durable_attempts_unhandled_total",
        "Attempts of topics without a handler.",
        Value::Counter(|stats| stats.without_handler),
    ),
    series("durable_commits_total", "Commits.", Value::Counter(|stats| stats.commits)),
    series("durable_operations_total", "Parts of all commits.", Value::Counter(|stats| stats.operations)),
    series("durable_store_errors_total", "Failures of the store.", Value::Counter(|stats| stats.store_errors)),
    series(
        "durable_rejoins_total",
        "New instances after a lost answer or a take-over.",
        Value::Counter(|stats| stats.rejoins),
    ),
    series(
        "durable_lag_seconds",
        "How late attempts have begun on the clock of the store.",
        Value::Histogram(|stats| &stats.lag),
    ),
    series(
        "durable_lateness_seconds_total",
        "Time by which attempts have begun late, from their due times to the starts of their handlers, by cause.",
        Value::Lateness,
    ),
    series("durable_commit_seconds", "How long commits took.", Value::Histogram(|stats| &stats.commit_time)),
    series("durable_shards", "Shards that this process owns.", Value::Size(|member| member.shards.into())),
    series("durable_nodes", "Processes whose lease holds.", Value::Size(|member| member.nodes.into())),
    series("durable_lease_age_seconds", "The time since the lease was asked for.", Value::LeaseAge),
    series(
        "durable_shards_taken_total",
        "Shards taken over from dead processes.",
        Value::Total(|member| member.taken_over),
    ),
    series(
        "durable_foreign_timeouts_total",
        "Timeouts that others have written for this process.",
        Value::Total(|member| member.foreign),
    ),
    series("durable_reconnects_total", "Attempts to connect again.", Value::Total(|member| member.reconnects)),
    series(
        "durable_oldest_due_seconds",
        "Age of the oldest timeout of the topic that is due and has not begun, or 0.",
        Value::TopicAge,
    ),
    series("durable_due_within_seconds", "Timeouts of the topic that are due within so many seconds.", Value::TopicDue),
    series(
        "durable_topic_paused",
        "1 while the topic is paused, otherwise 0.",
        Value::TopicGauge(|topic| topic.is_paused.into()),
    ),
    series(
        "durable_topic_attempts_running",
        "Attempts of the topic that have begun and not ended.",
        Value::TopicGauge(|topic| topic.running),
    ),
    series(
        "durable_topic_timeouts_scheduled_total",
        "Timeouts of the topic scheduled by this process.",
        Value::TopicCounter(|topic| topic.scheduled),
    ),
    series(
        "durable_topic_timeouts_cancelled_total",
        "Timeouts of the topic cancelled by this process with their keys.",
        Value::TopicCounter(|topic| topic.cancelled),
    ),
    series(
        "durable_topic_timeouts_expired_total",
        "Timeouts of the topic that were too late to begin.",
        Value::TopicCounter(|topic| topic.expired),
    ),
    series(
        "durable_topic_timeouts_dead_total",
        "Timeouts of the topic that became dead letters.",
        Value::TopicCounter(|topic| topic.buried),
    ),
    series(
        "durable_topic_attempts_begun_total",
        "Attempts of the topic that have begun.",
        Value::TopicCounter(|topic| topic.begun),
    ),
    series(
        "durable_topic_attempts_done_total",
        "Attempts of the topic that succeeded.",
        Value::TopicCounter(|topic| topic.done),
    ),
    series(
        "durable_topic_attempts_failed_total",
        "Attempts of the topic that failed.",
        Value::TopicCounter(|topic| topic.failed),
    ),
    series(
        "durable_topic_attempts_repeated_total",
        "Attempts of the topic that are repeated.",
        Value::TopicCounter(|topic| topic.retried),
    ),
    series(
        "durable_topic_attempts_postponed_total",
        "Attempts of the topic that run again later without a failure.",
        Value::TopicCounter(|topic| topic.postponed),
    ),
    series(
        "durable_topic_attempts_timed_out_total",
        "Attempts of the topic that were cut off at its time limit.",
        Value::TopicCounter(|topic| topic.timed_out),
    ),
    series("durable_topic_lag_seconds", "How late attempts of the topic have begun.", Value::TopicLag),
];
