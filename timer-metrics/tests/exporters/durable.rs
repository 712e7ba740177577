//! The series of durable timers, read back from the text, and the files that use them.

use crate::support::exposition::{Format, parse};
use crate::support::promtool::promtool;
use crate::support::shared::Shared;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::time::Duration;
use timer_durable::{Due, DurableTimer, MemoryStore, Topic};
use timer_metrics::DurableMetrics;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

fn text(metrics: &DurableMetrics) -> String {
    let mut registry = Registry::default();
    let mut text = String::new();
    metrics.register(&mut registry);
    encode(&mut text, &registry).unwrap();
    text
}

#[test]
fn a_scrape_has_the_counts_of_each_durable_timer() {
    const CLOSE: Topic<()> = Topic::new("close");
    let builder = DurableTimer::builder().name("orders");
    let store = MemoryStore::new();
    let builder = builder.topic(CLOSE, |_: &Due<()>| Ok(())).topic_elsewhere(Topic::<()>::new("mail"));
    let (timer, mut driver) = builder.build_manual(store.clone()).unwrap();
    let twin = DurableTimer::builder().name("orders").open(Shared::new("shared")).wait().unwrap();
    let metrics = DurableMetrics::new();
    metrics.watch(&timer);
    metrics.watch(&twin);
    for _ in 0..3 {
        timer.new_timeout(CLOSE, Duration::from_secs(1), &()).wait().unwrap();
    }
    timer.new_timeout(CLOSE, Duration::from_secs(9), &()).wait().unwrap();
    store.advance_clock(Duration::from_secs(2));
    driver.run_due();
    timer.pause(CLOSE).wait().unwrap();
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
    timer.stop(Duration::ZERO).wait().unwrap();
    twin.stop(Duration::from_secs(60)).wait().unwrap();
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

#[test]
fn files_and_docs_name_exactly_the_series() {
    let shared = DurableTimer::builder().open(Shared::new("shared")).wait().unwrap();
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
    let docs = file("src/durable.rs");
    let shown = words(&file("grafana/durable.json"));
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
