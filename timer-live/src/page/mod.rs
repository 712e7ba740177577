//! The live page and the figures behind it.
//!
//! The page is one document without parts from elsewhere. The server takes a sample of the counters
//! with each request for `stats.json`, and computes rates from earlier samples.

#[cfg(feature = "durable")]
mod actions;
#[cfg(feature = "durable")]
mod durable;
mod history;
mod json;

#[cfg(feature = "durable")]
pub(crate) use actions::Actions;

use history::{Counts, History, Recent};
use json::Json;
use std::time::{Duration, Instant};
use timer_core::{LateCause, Timetable};
#[cfg(feature = "durable")]
use timer_metrics::DurableMetrics;
use timer_metrics::{LAG_BUCKETS, TimerMetrics, TimerSnapshot};

/// The document under `/`.
pub(crate) const PAGE: &str = concat!(
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Timers</title>\n",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
    // Without it, browsers ask for /favicon.ico.
    "<link rel=\"icon\" href=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'",
    "%3E%3Ccircle cx='8' cy='8' r='6.5' fill='none' stroke='%232a67d4' stroke-width='2'/%3E%3Cpath d='M8 4v4l3 2' ",
    "fill='none' stroke='%232a67d4' stroke-width='2'/%3E%3C/svg%3E\">\n<style>\n",
    include_str!("page.css"),
    "</style>\n</head>\n<body>\n",
    include_str!("page.html"),
    "<script>\n",
    include_str!("page.js"),
    include_str!("actions.js"),
    "</script>\n</body>\n</html>\n",
);

/// The timers that the page shows, with their history.
#[derive(Debug)]
pub(crate) struct Figures {
    metrics: TimerMetrics,
    #[cfg(feature = "durable")]
    durable: durable::DurableFigures,
    labels: Vec<(String, String)>,
    start: Instant,
    history: History,
}

impl Figures {
    pub(crate) fn new(
        metrics: TimerMetrics,
        #[cfg(feature = "durable")] durable: DurableMetrics,
        labels: Vec<(String, String)>,
    ) -> Self {
        #[cfg(feature = "durable")]
        let durable = durable::DurableFigures::new(durable);
        Self {
            metrics,
            #[cfg(feature = "durable")]
            durable,
            labels,
            start: Instant::now(),
            history: History::default(),
        }
    }

    /// Drops the samples that are too old to be used.
    pub(crate) fn age(&self) {
        let now = Instant::now();
        drop(self.history.age(now));
        #[cfg(feature = "durable")]
        self.durable.age(now);
    }

    /// Returns the durable timers.
    #[cfg(feature = "durable")]
    pub(crate) fn durable(&self) -> &DurableMetrics {
        self.durable.metrics()
    }

    /// Returns the document under `/healthz`, and `false` if a lease is too old.
    #[cfg(feature = "durable")]
    pub(crate) fn health(&self) -> (bool, String) {
        let (is_healthy, leases) = self.durable.leases(Instant::now());
        (is_healthy, format!("{}\n{leases}", if is_healthy { "ok" } else { "a lease is too old" }))
    }

    /// Returns the document under `/healthz`. Without leases, each timer is healthy.
    #[cfg(not(feature = "durable"))]
    pub(crate) fn health(&self) -> (bool, String) {
        (true, "ok\n".to_owned())
    }

    /// Takes a sample and returns the document under `/stats.json`.
    pub(crate) fn stats(&self, has_actions: bool) -> String {
        let timers = self.metrics.snapshots();
        let now = Instant::now();
        let recents = self.history.add(now, timers.iter().map(|timer| (timer.number, counts(timer))));
        let mut json = Json::default();
        json.object(|json| {
            json.key("program").string(&program());
            json.key("pid").number(std::process::id());
            json.key("uptime_seconds").seconds(now - self.start);
            json.key("labels").object(|json| {
                self.labels.iter().for_each(|(name, value)| json.key(name).string(value));
            });
            json.key("lag_bounds_seconds").array(LAG_BUCKETS, Json::seconds);
            json.key("timers")
                .array(timers.iter().zip(&recents), |json, (snapshot, recent)| timer(json, snapshot, recent));
            json.key("has_actions").boolean(has_actions);
            #[cfg(feature = "durable")]
            self.durable.write(json, now);
        });
        json.into_text()
    }
}

#[cfg(test)]
impl Figures {
    /// Replaces the history by a sample as if it was that time.
    pub(crate) fn only_sample_at(&self, at: Instant) {
        self.history.age(at + Duration::from_secs(3_600)).clear();
        let timers = self.metrics.snapshots();
        self.history.add(at, timers.iter().map(|timer| (timer.number, counts(timer))));
    }

    /// Returns the number of counts in the history.
    pub(crate) fn kept(&self) -> usize {
        self.history.len()
    }
}

/// Returns the name of the running program, or an empty text if the system does not tell it.
fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn timer(json: &mut Json, timer: &TimerSnapshot, recent: &Recent) {
    let stats = &timer.stats;
    json.object(|json| {
        json.key("timer").string(&timer.label);
        json.key("pending").number(stats.pending);
        json.key("max_pending").option(timer.max_pending, Json::number);
        json.key("longest_delay_seconds").option(timer.longest_delay, Json::seconds);
        json.key("tasks_queued").number(stats.queued);
        json.key("tasks_running").number(stats.running);
        json.key("turns").number(stats.turns);
        json.key("shards").number(stats.shards);
        json.key("worst").array(&timer.worst, |json, run| {
            json.object(|json| {
                json.key("task").string(run.task);
                json.key("behind").option(run.behind, Json::string);
                json.key("age_seconds").seconds(run.at.elapsed());
                json.key("lateness_seconds").object(|json| {
                    LateCause::ALL.iter().for_each(|cause| json.key(cause.as_str()).seconds(run.lateness.part(*cause)));
                });
            });
        });
        timetable(json, &timer.timetable);
        recent.write_rates(json);
        let lags = [("timeout_lag", &stats.timeout_lag), ("start_lag", &stats.start_lag)];
        for (index, (name, lag)) in lags.into_iter().enumerate() {
            json.key(name).object(|json| {
                json.key("count").number(lag.count());
                json.key("sum_seconds").seconds(lag.sum());
                json.key("max_seconds").seconds(lag.max());
                json.key("p50_seconds").seconds(lag.quantile(0.5));
                json.key("p99_seconds").seconds(lag.quantile(0.99));
                recent.write_buckets(json, index);
            });
        }
    });
}

/// Writes the numbers of timeouts that are due in each second of the next minute, each minute of
/// the next hour and each quarter of an hour of the next day.
fn timetable(json: &mut Json, timetable: &Timetable) {
    json.key("timetable").object(|json| {
        json.key("expected_lag_seconds").seconds(timetable.expected_lag());
        json.key("due").number(timetable.due_within(Duration::ZERO));
        for (name, seconds, steps) in [("minute", 1, 60), ("hour", 60, 60), ("day", 900, 96)] {
            let due = |step: u64| timetable.due_within(Duration::from_secs(step * seconds));
            json.key(name).array((0..steps).map(|step| due(step + 1) - due(step)), Json::number);
        }
    });
}

/// Returns the counters that the page shows as rates, and the histograms of both lags.
fn counts(timer: &TimerSnapshot) -> Counts {
    let stats = &timer.stats;
    Counts {
        named: vec![
            ("scheduled", stats.scheduled),
            ("expired", stats.expired),
            ("cancelled", stats.cancelled),
            ("rejected", stats.rejected),
            ("runs", stats.runs),
            ("task_panics", stats.task_panics),
            ("executor_rejections", stats.executor_rejections),
        ],
        histograms: [&stats.timeout_lag, &stats.start_lag].map(|lag| lag.counts(LAG_BUCKETS)).into(),
    }
}
