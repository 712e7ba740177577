//! The series of durable timers, read back from the text, and the files that use them.

use crate::support::exposition::{Format, parse};
use crate::support::promtool::promtool;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;
use timer_durable::store::{Counts, Membership, Micros, Position};
use timer_durable::transaction::{Operation, Outcome};
use timer_durable::{DeadLetter, Due, DurableTimer, MemoryStore, Reader, Store, StoreError, TimeoutId, Topic};
use timer_metrics::DurableMetrics;
#[cfg(feature = "http")]
use {
    timer_durable::{BOUNDS, Retry},
    timer_metrics::{ServeOptions, TimerMetrics},
};

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

fn text(metrics: &DurableMetrics) -> String {
    let (mut registry, mut text) = (Registry::default(), String::new());
    metrics.register(&mut registry);
    encode(&mut text, &registry).unwrap();
    text
}

/// A store that says that it is shared.
struct Shared(MemoryStore);

impl Reader for Shared {
    fn dead_letters(
        &mut self,
        topic: Option<&str>,
        after: Option<TimeoutId>,
        max: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.0.dead_letters(topic, after, max)
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        self.0.counts()
    }
}

impl Store for Shared {
    fn membership(&self) -> Option<Membership> {
        let mut membership = Membership::default();
        (membership.shards, membership.nodes, membership.taken_over) = (32, 2, 7);
        (membership.instance, membership.foreign, membership.reconnects) = (3, 11, 1);
        membership.name = Some("billing".to_owned());
        membership.renewed = Some(std::time::Instant::now());
        Some(membership)
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    fn instance(&self) -> u32 {
        self.0.instance()
    }

    fn now(&self) -> Micros {
        self.0.now()
    }

    fn lease_end(&self) -> Option<std::time::Instant> {
        self.0.lease_end()
    }

    fn write(&mut self, batch: &[Operation]) -> Result<Vec<Outcome>, StoreError> {
        self.0.write(batch)
    }

    fn load(&mut self, range: Range<Position>, max: usize, out: &mut Vec<Position>) -> Result<Position, StoreError> {
        self.0.load(range, max, out)
    }

    fn rejoin(&mut self) -> Result<(), StoreError> {
        self.0.rejoin()
    }
}

#[test]
fn a_scrape_has_the_counts_of_each_durable_timer() {
    const CLOSE: Topic<()> = Topic::new("close");
    let (builder, store) = (DurableTimer::builder().name("orders"), MemoryStore::new());
    let builder = builder.topic(CLOSE, |_: &Due<()>| Ok(())).topic_elsewhere(Topic::<()>::new("mail"));
    let (timer, mut driver) = builder.build_manual(store.clone()).unwrap();
    let twin = DurableTimer::builder().name("orders").open(Shared(MemoryStore::new())).unwrap();
    let metrics = DurableMetrics::new();
    metrics.watch(&timer);
    metrics.watch(&twin);
    for _ in 0..3 {
        timer.new_timeout(CLOSE, Duration::from_secs(1), &()).unwrap();
    }
    timer.new_timeout(CLOSE, Duration::from_secs(9), &()).unwrap();
    store.advance_clock(Duration::from_secs(2));
    driver.run_due();
    timer.pause(CLOSE).unwrap();
    let text = text(&metrics);
    parse(&text, Format::OpenMetrics).unwrap();
    for line in [
        "durable_timeouts_scheduled_total{timer=\"orders\"} 4",
        "durable_timeouts_pending{timer=\"orders\"} 1",
        "durable_attempts_done_total{timer=\"orders\"} 3",
        "durable_lag_seconds_count{timer=\"orders\"} 3",
        "durable_attempts_running{timer=\"orders\"} 0",
        "durable_lateness_seconds_total{timer=\"orders\",cause=\"system\"} 3.0",
        "durable_lateness_seconds_total{timer=\"orders\",cause=\"paused\"} 0.0",
        "durable_topic_timeouts_scheduled_total{timer=\"orders\",topic=\"close\"} 4",
        "durable_topic_timeouts_scheduled_total{timer=\"orders\",topic=\"mail\"} 0",
        "durable_topic_lag_seconds_count{timer=\"orders\",topic=\"close\"} 3",
        "durable_topic_paused{timer=\"orders\",topic=\"close\"} 1",
        "durable_oldest_due_seconds{timer=\"orders\",topic=\"close\"} 0.0",
        "durable_due_within_seconds{timer=\"orders\",topic=\"close\",le=\"60.0\"} 1",
        "durable_due_within_seconds{timer=\"orders\",topic=\"close\",le=\"3600.0\"} 1",
        "durable_due_within_seconds{timer=\"orders\",topic=\"mail\",le=\"86400.0\"} 0",
        "durable_timeouts_scheduled_total{timer=\"orders-2\"} 0",
        "durable_shards{timer=\"orders-2\"} 32",
        "durable_shards_taken_total{timer=\"orders-2\"} 7",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line} in {text}");
    }
    assert!(!text.contains("# UNIT durable_due_within_seconds"), "its values are no times");
    assert!(!text.contains("durable_shards{timer=\"orders\"}"), "its store belongs to one process");
    assert!(!text.contains("durable_timeouts_pending{timer=\"orders-2\"}"), "its store does not know the number");
    assert!(!text.contains("durable_due_within_seconds{timer=\"orders-2\""), "its store cannot count");
    timer.stop(Duration::ZERO).unwrap();
    twin.stop(Duration::from_secs(60)).unwrap();
    let text = self::text(&metrics);
    let stopped = parse(&text, Format::OpenMetrics).unwrap();
    let gauges: Vec<_> = stopped.families.iter().filter(|family| family.kind == "gauge").collect();
    assert!(gauges.is_empty(), "{gauges:?}");
    for line in [
        "durable_timeouts_scheduled_total{timer=\"orders\"} 4",
        "durable_shards_taken_total{timer=\"orders-2\"} 7",
        "durable_topic_attempts_done_total{timer=\"orders\",topic=\"close\"} 3",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line} in {text}");
    }
    drop((timer, twin));
    drop(driver);
    assert_eq!(self::text(&metrics), "# EOF\n", "dropped timers leave the set");

    let (timer, _driver) = DurableTimer::builder().name("orders").build_manual(MemoryStore::new()).unwrap();
    metrics.watch(&timer);
    let text = self::text(&metrics);
    assert!(text.contains("{timer=\"orders\"}") && !text.contains("orders-"), "the name is free again: {text}");
}

/// On the live page a timer of a shared store also shows its node.
#[cfg(feature = "http")]
#[test]
fn figures_of_durable_timers_are_exact() {
    use serde_json::{Value, json};

    const CLOSE: Topic<String> = Topic::new("close").attempts(1);
    let handle = |due: &Due<String>| if due.payload() == "bad" { Err(Retry::new("broken")) } else { Ok(()) };
    let builder = DurableTimer::builder().name("<b>orders").topic(CLOSE, handle);
    let store = MemoryStore::new();
    let (timer, mut driver) = builder.build_manual(store.clone()).unwrap();
    let twin = DurableTimer::builder().name("twin").open(Shared(MemoryStore::new())).unwrap();
    let metrics = DurableMetrics::new();
    metrics.watch(&timer);
    metrics.watch(&twin);
    let options = ServeOptions::new().prefix("shop").durable(&metrics);
    let server = TimerMetrics::new().serve_with(0, options).unwrap();
    for payload in ["bad", "a", "b"] {
        timer.new_timeout(CLOSE, Duration::from_secs(1), payload).unwrap();
    }
    timer.timeout_builder(CLOSE, "c").after(Duration::from_millis(500)).key("<i>17").schedule().unwrap();
    timer.new_timeout(CLOSE, Duration::from_secs(60), "d").unwrap();
    store.advance_clock(Duration::from_secs(2));
    driver.run_due();
    let text = crate::http::ask(server.local_addr(), "GET", "/metrics", "").body;
    assert!(text.contains("shop_durable_timeouts_pending{timer=\"<b>orders\"} 1\n"), "{text}");

    let stats = crate::http::ask(server.local_addr(), "GET", "/stats.json", "").body;
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(stats["timers"], json!([]));
    assert_eq!(stats["durable_bounds_seconds"], json!(BOUNDS.map(|bound| bound.as_secs_f64())));
    let [orders, twin] = [0, 1].map(|index| &stats["durable"][index]);
    for (name, value) in [
        ("timer", json!("<b>orders")),
        ("store", json!("memory")),
        ("pending", json!(1)),
        ("in_memory", json!(1)),
        ("due", json!(0)),
        ("running", json!(0)),
        ("scheduled", json!(5)),
        ("begun", json!(4)),
        ("done", json!(3)),
        ("buried", json!(1)),
        ("retried", json!(0)),
        ("failed", json!(1)),
        ("postponed", json!(0)),
        ("timed_out", json!(0)),
        ("store_errors", json!(0)),
        ("node", Value::Null),
    ] {
        assert_eq!(orders[name], value, "{name}");
    }
    assert_eq!(orders["lag"]["count"], 4);
    let topic = &orders["topics"][0];
    for (name, value) in [
        ("topic", json!("close")),
        ("is_paused", json!(false)),
        ("oldest_due_seconds", json!(0.0)),
        ("due_in_hour", json!(1)),
        ("running", json!(0)),
        ("done", json!(3)),
        ("failed", json!(1)),
        ("buried", json!(1)),
        ("lag_counts", orders["lag"]["counts"].clone()),
    ] {
        assert_eq!(topic[name], value, "{name}");
    }
    let [minute, hour, day] = ["minute", "hour", "day"].map(|name| orders["timetable"][name].as_array().unwrap());
    assert_eq!([minute.len(), hour.len(), day.len()], [60, 60, 96]);
    assert_eq!((&minute[57], &hour[0], &hour[1]), (&json!(1), &json!(1), &json!(0)), "it is due in 58 s");
    assert_eq!(twin["timetable"], json!({ "minute": null, "hour": null, "day": null }));
    let worst = &orders["worst"];
    assert_eq!(
        (&worst[0]["topic"], &worst[0]["key"], &worst[1]["key"]),
        (&json!("close"), &json!("<i>17"), &json!(null))
    );
    assert_eq!((&worst[0]["lateness_seconds"]["system"], &worst[0]["attempt"]), (&json!(1.5), &json!(1)));
    let commits: u64 = orders["commit_time"]["counts"].as_array().unwrap().iter().filter_map(Value::as_u64).sum();
    assert_eq!(Some(commits), orders["commits"].as_u64());
    assert_eq!((&twin["timer"], &twin["pending"]), (&json!("twin"), &Value::Null));
    let node = &twin["node"];
    for (name, value) in [
        ("name", json!("billing")),
        ("instance", json!(3)),
        ("shards", json!(32)),
        ("nodes", json!(2)),
        ("taken_over", json!(7)),
        ("foreign", json!(11)),
        ("reconnects", json!(1)),
    ] {
        assert_eq!(node[name], value, "{name}");
    }
    assert!(node["lease_age_seconds"].as_f64().unwrap() < 60.0);

    timer.stop(Duration::ZERO).unwrap();
    let stats = crate::http::ask(server.local_addr(), "GET", "/stats.json", "").body;
    let orders = serde_json::from_str::<Value>(&stats).unwrap()["durable"][0].take();
    assert_eq!((&orders["is_stopped"], &orders["scheduled"]), (&json!(true), &json!(5)));
    for name in ["pending", "in_memory", "due", "running", "node"] {
        assert_eq!(orders[name], Value::Null, "{name}");
    }
}

#[test]
fn files_and_docs_name_exactly_the_series() {
    let shared = DurableTimer::builder().open(Shared(MemoryStore::new())).unwrap();
    let elsewhere = Topic::<()>::new("mail");
    let (alone, _driver) = DurableTimer::builder().topic_elsewhere(elsewhere).build_manual(MemoryStore::new()).unwrap();
    let metrics = DurableMetrics::new();
    metrics.watch(&shared);
    metrics.watch(&alone);
    let text = text(&metrics);
    let exposition = parse(&text, Format::OpenMetrics).unwrap();
    let scraped: BTreeSet<&str> = exposition.names().into_iter().collect();
    let file = |path: &str| std::fs::read_to_string(format!("{FOLDER}/{path}")).unwrap();
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
        words
            .filter(|word| word.starts_with("durable_") && !word.starts_with("durable_alerts"))
            .map(str::to_owned)
            .collect()
    };
    let is_scraped = |name: &String| scraped.contains(name.as_str()) || scraped.contains(&*format!("{name}_bucket"));
    for path in ["grafana/durable.json", "prometheus/durable_alerts.yml", "prometheus/durable_alerts_test.yml"] {
        let unknown: Vec<_> = words(&file(path)).into_iter().filter(|name| !is_scraped(name)).collect();
        assert!(unknown.is_empty(), "{path}: {unknown:?}");
    }
    let stem =
        |name: &str| ["_bucket", "_sum", "_count"].iter().fold(name.to_owned(), |name, end| name.replace(end, ""));
    let (docs, shown) = (file("src/durable.rs"), words(&file("grafana/durable.json")));
    let listed = docs.lines().filter_map(|line| Some(line.strip_prefix("/// | `")?.split_once("` | ")?.0.to_owned()));
    assert_eq!(listed.collect::<BTreeSet<_>>(), scraped.iter().map(|name| stem(name)).collect());
    for name in &scraped {
        let is_shown = shown.contains(*name) || shown.contains(&format!("{}_bucket", stem(name)));
        assert!(is_shown, "{name} is not in the dashboard");
    }
}

#[test]
fn promtool_accepts_the_alerts() {
    promtool(&["test", "rules", &format!("{FOLDER}/prometheus/durable_alerts_test.yml")], "");
}
