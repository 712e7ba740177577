//! The figures of durable timers on the page.

use crate::http::ask;
use crate::support::shared::Shared;
use serde_json::{Value, json};
use std::time::Duration;
use timer_durable::{BOUNDS, Due, DurableTimer, MemoryStore, Retry, Schedule, Topic};
use timer_live::LivePage;
use timer_metrics::{DurableMetrics, TimerMetrics};

/// Asserts the values of some members of an object.
fn check(object: &Value, members: impl IntoIterator<Item = (&'static str, Value)>) {
    for (name, value) in members {
        assert_eq!(object[name], value, "{name}");
    }
}

/// Asserts the figures of the timer in memory.
fn check_orders(orders: &Value) {
    let members = [
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
    ];
    check(orders, members);
    assert_eq!(orders["lag"]["count"], 4);
    let topic = &orders["topics"][0];
    let members = [
        ("topic", json!("close")),
        ("is_paused", json!(false)),
        ("oldest_due_seconds", json!(0.0)),
        ("due_in_hour", json!(1)),
        ("running", json!(0)),
        ("done", json!(3)),
        ("failed", json!(1)),
        ("buried", json!(1)),
        ("lag_counts", orders["lag"]["counts"].clone()),
    ];
    check(topic, members);
    let [minute, hour, day] = ["minute", "hour", "day"].map(|name| orders["timetable"][name].as_array().unwrap());
    assert_eq!([minute.len(), hour.len(), day.len()], [60, 60, 96]);
    assert_eq!((&minute[57], &hour[0], &hour[1]), (&json!(1), &json!(1), &json!(0)), "it is due in 58 s");
    let worst = &orders["worst"];
    assert_eq!(
        (&worst[0]["topic"], &worst[0]["key"], &worst[1]["key"]),
        (&json!("close"), &json!("<i>17"), &json!(null))
    );
    assert_eq!((&worst[0]["lateness_seconds"]["system"], &worst[0]["attempt"]), (&json!(1.5), &json!(1)));
    let commits: u64 = orders["commit_time"]["counts"].as_array().unwrap().iter().filter_map(Value::as_u64).sum();
    assert_eq!(Some(commits), orders["commits"].as_u64());
}

/// Asserts the figures of the timer of a shared store.
fn check_twin(twin: &Value) {
    assert_eq!(twin["timetable"], json!({ "minute": null, "hour": null, "day": null }));
    assert_eq!((&twin["timer"], &twin["pending"]), (&json!("twin"), &Value::Null));
    let node = &twin["node"];
    let members = [
        ("name", json!("<i>billing</i>")),
        ("instance", json!(4_711)),
        ("shards", json!(32)),
        ("nodes", json!(2)),
        ("taken_over", json!(7)),
        ("foreign", json!(1_234)),
        ("reconnects", json!(1)),
    ];
    check(node, members);
    assert!(node["lease_age_seconds"].as_f64().unwrap() < 60.0);
}

/// On the live page a timer of a shared store also shows its node.
#[test]
fn figures_of_durable_timers_are_exact() {
    const CLOSE: Topic<String> = Topic::new("close").attempts(1);
    let handle = |due: &Due<String>| if due.payload() == "bad" { Err(Retry::new("broken")) } else { Ok(()) };
    let builder = DurableTimer::builder().name("<b>orders").topic(CLOSE, handle);
    let store = MemoryStore::new();
    let (timer, mut driver) = builder.build_manual(store.clone()).unwrap();
    let twin = DurableTimer::builder().name("twin").open(Shared::new("shared")).wait().unwrap();
    let metrics = DurableMetrics::new();
    metrics.watch(&timer);
    metrics.watch(&twin);
    let server = LivePage::new(&TimerMetrics::new()).prefix("shop").durable(&metrics).serve(0).unwrap();
    for payload in ["bad", "a", "b"] {
        timer.new_timeout(CLOSE, Duration::from_secs(1), payload).wait().unwrap();
    }
    timer.schedule(CLOSE, Schedule::after(Duration::from_millis(500)).key("<i>17"), "c").wait().unwrap();
    timer.new_timeout(CLOSE, Duration::from_secs(60), "d").wait().unwrap();
    store.advance_clock(Duration::from_secs(2));
    driver.run_due();
    let text = ask(server.local_addr(), "GET", "/metrics", "").body;
    assert!(text.contains("shop_durable_timeouts_pending{timer=\"<b>orders\"} 1\n"), "{text}");

    let stats = ask(server.local_addr(), "GET", "/stats.json", "").body;
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(stats["timers"], json!([]));
    assert_eq!(stats["durable_bounds_seconds"], json!(BOUNDS.map(|bound| bound.as_secs_f64())));
    let [orders, twin] = [0, 1].map(|index| &stats["durable"][index]);
    check_orders(orders);
    check_twin(twin);
    let health = ask(server.local_addr(), "GET", "/healthz", "");
    assert!(health.status == 200 && health.body.starts_with("ok\nlease of \"twin\": "), "{}", health.body);

    timer.stop(Duration::ZERO).wait().unwrap();
    let stats = ask(server.local_addr(), "GET", "/stats.json", "").body;
    let orders = serde_json::from_str::<Value>(&stats).unwrap()["durable"][0].take();
    assert_eq!((&orders["is_stopped"], &orders["scheduled"]), (&json!(true), &json!(5)));
    for name in ["pending", "in_memory", "due", "running", "node"] {
        assert_eq!(orders[name], Value::Null, "{name}");
    }
}
