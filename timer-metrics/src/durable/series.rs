//! The table of series of durable timers.

use super::DurableMetrics;
use super::snapshot::DurableSnapshot;
use crate::series::{BOUND, Exported, Kind, Labeled, Sample, Series, TimerSet, by_cause, single};
use timer_durable::{BOUNDS, Histogram, Membership, Stats, TopicDue, TopicStats};

/// The name of the label of series that have one number for each topic.
const TOPIC: &str = "topic";

/// The function that reads the values of a series. Gauges of a timer that was stopped are left out.
pub(crate) enum Value {
    Counter(fn(&Stats) -> u64),
    /// A gauge that is left out while its value is unknown.
    Gauge(fn(&Stats) -> Option<u64>),
    Histogram(fn(&Stats) -> &Histogram),
    /// The lateness, one number for each cause.
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

impl TimerSet for DurableMetrics {
    type Timer = DurableSnapshot;

    fn timers(&self) -> Vec<DurableSnapshot> {
        self.snapshots()
    }
}

impl Exported for DurableSnapshot {
    type Value = Value;

    const SERIES: &'static [Series<Self>] = SERIES;

    fn label(&self) -> &str {
        &self.label
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn kind(value: &Value) -> Kind {
        match value {
            Value::Counter(_) | Value::Total(_) | Value::TopicCounter(_) => Kind::Counter,
            Value::Lateness => Kind::TimeCounter,
            Value::Histogram(_) | Value::TopicLag => Kind::Histogram,
            Value::LeaseAge | Value::TopicAge => Kind::TimeGauge,
            Value::Gauge(_) | Value::Size(_) | Value::TopicGauge(_) | Value::TopicDue => Kind::Gauge,
        }
    }

    fn samples(&self, value: &Value) -> Vec<Labeled<'_>> {
        let stats = &self.stats;
        let member = stats.membership.as_ref();
        match value {
            Value::Counter(get) => single(Sample::Counter(get(stats))),
            Value::Histogram(get) => single(Sample::Histogram(get(stats), &BOUNDS)),
            Value::Total(get) => single(member.map(|member| Sample::Counter(get(member)))),
            Value::Lateness => by_cause(|cause| Sample::TimeCounter(stats.lateness.part(cause))),
            Value::TopicCounter(get) => self.by_topic(|topic| Sample::Counter(get(topic))),
            Value::TopicLag => self.by_topic(|topic| Sample::Histogram(&topic.lag, &BOUNDS)),
            // The present of a timer that was stopped is nobody's concern.
            _ if stats.is_stopped => Vec::new(),
            Value::Gauge(get) => single(get(stats).map(Sample::Gauge)),
            Value::Size(get) => single(member.map(|member| Sample::Gauge(get(member)))),
            Value::LeaseAge => {
                let renewed = member.and_then(|member| member.renewed);
                single(renewed.map(|renewed| Sample::TimeGauge(renewed.elapsed())))
            }
            Value::TopicGauge(get) => self.by_topic(|topic| Sample::Gauge(get(topic))),
            Value::TopicAge => self.by_topic(|topic| Sample::TimeGauge(topic.oldest_due)),
            Value::TopicDue => self.due_by_topic(),
        }
    }
}

impl DurableSnapshot {
    /// Returns one value for each topic.
    fn by_topic<'t>(&'t self, value: impl Fn(&'t TopicStats) -> Sample<'t>) -> Vec<Labeled<'t>> {
        let topics = self.stats.topics.iter();
        topics.map(|(name, topic)| Labeled { labels: vec![(TOPIC, name.into())], value: value(topic) }).collect()
    }

    /// Returns one number for each topic and each bound that was counted.
    fn due_by_topic(&self) -> Vec<Labeled<'_>> {
        let timetable = &self.timetable;
        let bounds = [("60.0", &timetable.minute), ("3600.0", &timetable.hour), ("86400.0", &timetable.day)];
        let counted = bounds.into_iter().filter_map(|(bound, due)| Some((bound, due.as_ref()?)));
        let samples = counted.flat_map(|(bound, due)| {
            self.stats.topics.keys().map(move |name| {
                let labels = vec![(TOPIC, name.into()), (BOUND, bound.into())];
                Labeled { labels, value: Sample::Gauge(due_of(due, name)) }
            })
        });
        samples.collect()
    }
}

/// Returns the number of all timeouts of a topic that were counted.
fn due_of(due: &[TopicDue], topic: &str) -> u64 {
    let counts = due.iter().find(|due| due.topic == topic).map(|due| &due.counts);
    counts.and_then(|counts| counts.last()).copied().unwrap_or(0)
}

const fn series(name: &'static str, help: &'static str, value: Value) -> Series<DurableSnapshot> {
    Series { name, help, value }
}

const SERIES: &[Series<DurableSnapshot>] = &[
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
