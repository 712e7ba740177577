//! The durable timers of the live page.

use super::history::{Counts, History};
use super::json::Json;
use super::{totals_and_rates, write_buckets};
use crate::durable::{DurableMetrics, DurableSnapshot};
use std::time::Instant;
use timer_durable::store::Membership;
use timer_durable::{BOUNDS, Stats};

/// The durable timers that the page shows, with their history.
#[derive(Debug)]
pub(super) struct Live {
    metrics: DurableMetrics,
    history: History,
}

impl Live {
    pub(super) fn new(metrics: DurableMetrics) -> Self {
        Self { metrics, history: History::default() }
    }

    pub(super) fn age(&self, now: Instant) {
        drop(self.history.age(now));
    }

    /// Takes a sample and writes the members for durable timers.
    pub(super) fn write(&self, json: &mut Json, now: Instant) {
        let timers = self.metrics.snapshots();
        let recents = self.history.add(now, timers.iter().map(|timer| (timer.number, counts(&timer.stats))));
        json.key("durable_bounds_seconds").array(BOUNDS, Json::seconds);
        json.key("durable").array(timers.iter().zip(&recents), |json, (timer, recent)| {
            let DurableSnapshot { label, store, stats, .. } = timer;
            json.object(|json| {
                json.key("timer").string(label);
                json.key("store").string(store);
                let if_alive = |gauge: u64| (!stats.is_stopped).then_some(gauge);
                json.key("is_stopped").boolean(stats.is_stopped);
                json.key("pending").option(stats.pending.and_then(if_alive), Json::number);
                json.key("in_memory").option(if_alive(stats.in_memory), Json::number);
                json.key("due").option(if_alive(stats.due), Json::number);
                json.key("running").option(if_alive(stats.running), Json::number);
                totals_and_rates(json, recent);
                let histograms = [("lag", &stats.lag), ("commit_time", &stats.commit_time)];
                for (index, (name, histogram)) in histograms.into_iter().enumerate() {
                    json.key(name).object(|json| {
                        json.key("count").number(histogram.count());
                        json.key("sum_seconds").seconds(histogram.sum);
                        json.key("max_seconds").seconds(histogram.max);
                        write_buckets(json, recent, index);
                    });
                }
                json.key("node").option(stats.membership.as_ref().filter(|_| !stats.is_stopped), |json, member| {
                    node(json, member, now)
                });
            });
        });
    }
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
            ("retried", stats.retried),
            ("buried", stats.buried),
            ("expired", stats.expired),
            ("without_handler", stats.without_handler),
            ("refused", stats.refused),
            ("commits", stats.commits),
            ("operations", stats.operations),
            ("store_errors", stats.store_errors),
            ("rejoins", stats.rejoins),
        ],
        histograms: [&stats.lag, &stats.commit_time].map(|histogram| histogram.counts.to_vec()).into(),
    }
}
