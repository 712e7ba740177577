//! The durable timers of the live page.

use super::history::{Counts, History};
use super::json::Json;
use std::fmt::Write;
use std::time::{Duration, Instant};
use timer_durable::{
    BOUNDS, DurableLateCause, DurableLateRun, DurableTimetable, Membership, Stats, TopicDue, TopicStats,
};
use timer_metrics::{DurableMetrics, DurableSnapshot};

/// The age of a lease above which a probe fails. The alert `DurableLeaseOld` has the same.
const MAX_LEASE_AGE: Duration = Duration::from_secs(60);

/// The durable timers that the page shows, with their history.
#[derive(Debug)]
pub(super) struct DurableFigures {
    metrics: DurableMetrics,
    history: History,
}

impl DurableFigures {
    pub(super) fn new(metrics: DurableMetrics) -> Self {
        Self { metrics, history: History::default() }
    }

    pub(super) fn metrics(&self) -> &DurableMetrics {
        &self.metrics
    }

    pub(super) fn age(&self, now: Instant) {
        drop(self.history.age(now));
    }

    /// Returns the ages of the leases, see [`leases`].
    pub(super) fn leases(&self, now: Instant) -> (bool, String) {
        let timers = self.metrics.snapshots();
        leases(timers.iter().map(|timer| (timer.label.as_str(), &timer.stats)), now)
    }

    /// Takes a sample and writes the members for durable timers.
    pub(super) fn write(&self, json: &mut Json, now: Instant) {
        let timers = self.metrics.snapshots();
        let recents = self.history.add(now, timers.iter().map(|timer| (timer.number, counts(&timer.stats))));
        json.key("durable_bounds_seconds").array(BOUNDS, Json::seconds);
        json.key("durable").array(timers.iter().zip(&recents), |json, (timer, recent)| {
            let DurableSnapshot { label, store, stats, timetable, worst, .. } = timer;
            json.object(|json| {
                json.key("timer").string(label);
                json.key("store").string(store);
                let if_alive = |gauge: u64| (!stats.is_stopped).then_some(gauge);
                json.key("is_stopped").boolean(stats.is_stopped);
                json.key("pending").option(stats.pending.and_then(if_alive), Json::number);
                json.key("in_memory").option(if_alive(stats.in_memory), Json::number);
                json.key("due").option(if_alive(stats.due), Json::number);
                json.key("running").option(if_alive(stats.running), Json::number);
                json.key("worst").array(worst, late_run);
                json.key("topics").array(&stats.topics, |json, (name, stats)| topic(json, name, stats, timetable));
                json.key("timetable").object(|json| {
                    for (name, due) in
                        [("minute", &timetable.minute), ("hour", &timetable.hour), ("day", &timetable.day)]
                    {
                        let due = due.as_ref().filter(|_| !stats.is_stopped);
                        json.key(name).option(due, |json, due| json.array(steps(due), Json::number));
                    }
                });
                recent.write_rates(json);
                let histograms = [("lag", &stats.lag), ("commit_time", &stats.commit_time)];
                for (index, (name, histogram)) in histograms.into_iter().enumerate() {
                    json.key(name).object(|json| {
                        json.key("count").number(histogram.count());
                        json.key("sum_seconds").seconds(histogram.sum());
                        json.key("max_seconds").seconds(histogram.max());
                        recent.write_buckets(json, index);
                    });
                }
                json.key("node").option(stats.membership.as_ref().filter(|_| !stats.is_stopped), |json, member| {
                    node(json, member, now)
                });
            });
        });
    }
}

/// Returns a line with the age of the lease for each running timer that has one, and `false` if one
/// of them is too old.
fn leases<'t>(timers: impl Iterator<Item = (&'t str, &'t Stats)>, now: Instant) -> (bool, String) {
    let mut is_healthy = true;
    let mut lines = String::new();
    for (label, stats) in timers.filter(|(_, stats)| !stats.is_stopped) {
        let Some(renewed) = stats.membership.as_ref().and_then(|member| member.renewed) else { continue };
        let age = now.saturating_duration_since(renewed);
        is_healthy &= age <= MAX_LEASE_AGE;
        // Writing to a string does not fail.
        let _ = writeln!(lines, "lease of {label:?}: {:.3} s old", age.as_secs_f64());
    }
    (is_healthy, lines)
}

/// Returns the numbers of timeouts of all topics in each step.
fn steps(due: &[TopicDue]) -> Vec<u64> {
    let steps = due.first().map_or(0, |due| due.counts.len());
    let up_to = |step: usize| due.iter().map(|due| due.counts[step]).sum::<u64>();
    (0..steps).map(|step| up_to(step) - step.checked_sub(1).map_or(0, up_to)).collect()
}

fn topic(json: &mut Json, name: &str, stats: &TopicStats, timetable: &DurableTimetable) {
    let due_in_hour = timetable.hour.as_ref().map(|due| {
        let counts = due.iter().find(|due| due.topic == name).map(|due| &due.counts);
        counts.and_then(|counts| counts.last()).copied().unwrap_or(0)
    });
    json.object(|json| {
        json.key("topic").string(name);
        json.key("is_paused").boolean(stats.is_paused);
        json.key("oldest_due_seconds").seconds(stats.oldest_due);
        json.key("due_in_hour").option(due_in_hour, Json::number);
        json.key("running").number(stats.running);
        json.key("done").number(stats.done);
        json.key("failed").number(stats.failed);
        json.key("buried").number(stats.buried);
        json.key("lag_counts").array(stats.lag.counts(BOUNDS), Json::number);
    });
}

fn late_run(json: &mut Json, run: &DurableLateRun) {
    json.object(|json| {
        json.key("topic").string(&run.topic);
        json.key("key").option(run.key.as_deref(), Json::string);
        json.key("attempt").number(run.attempt);
        json.key("age_seconds").seconds(run.at.elapsed());
        json.key("lateness_seconds").object(|json| {
            let causes = DurableLateCause::ALL.iter();
            causes.for_each(|cause| json.key(cause.as_str()).seconds(run.lateness.part(*cause)));
        });
    });
}

/// Writes the place of this process among those that share the store.
fn node(json: &mut Json, member: &Membership, now: Instant) {
    json.object(|json| {
        json.key("name").option(member.name.as_deref(), Json::string);
        json.key("instance").number(member.instance);
        json.key("shards").number(member.shards);
        json.key("nodes").number(member.nodes);
        json.key("taken_over").number(member.taken_over);
        let age = member.renewed.map(|renewed| now.saturating_duration_since(renewed));
        json.key("lease_age_seconds").option(age, Json::seconds);
        json.key("foreign").number(member.foreign);
        json.key("reconnects").number(member.reconnects);
    });
}

/// Returns the counters that the page shows as rates, and both histograms.
fn counts(stats: &Stats) -> Counts {
    Counts {
        named: vec![
            ("scheduled", stats.scheduled),
            ("cancelled", stats.cancelled),
            ("begun", stats.begun),
            ("done", stats.done),
            ("failed", stats.failed),
            ("retried", stats.retried),
            ("postponed", stats.postponed),
            ("timed_out", stats.timed_out),
            ("buried", stats.buried),
            ("expired", stats.expired),
            ("without_handler", stats.without_handler),
            ("refused", stats.refused),
            ("commits", stats.commits),
            ("operations", stats.operations),
            ("store_errors", stats.store_errors),
            ("rejoins", stats.rejoins),
        ],
        histograms: [&stats.lag, &stats.commit_time].map(|histogram| histogram.counts(BOUNDS)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_fails_if_a_lease_is_older_than_a_minute() {
        let now = Instant::now() + Duration::from_secs(3600);
        let timer = |age: Option<u64>, is_stopped| {
            let mut member = Membership::default();
            member.renewed = age.map(|seconds| now - Duration::from_secs(seconds));
            let mut stats = Stats::default();
            stats.membership = Some(member);
            stats.is_stopped = is_stopped;
            stats
        };
        let mut timers = vec![timer(Some(60), false), timer(None, false), timer(Some(90), true)];
        let leases = |timers: &[Stats]| leases(["orders", "files", "old", "mail"].into_iter().zip(timers), now);
        assert_eq!(leases(&timers), (true, "lease of \"orders\": 60.000 s old\n".to_owned()));
        timers.push(timer(Some(61), false));
        let (is_healthy, lines) = leases(&timers);
        assert!(!is_healthy && lines.ends_with("lease of \"mail\": 61.000 s old\n"), "{lines}");
    }
}
