//! The text of a scrape.

use crate::support::exposition::{Format, Sample, Scrape, parse};
use crate::support::promtool::check_metrics;
use crate::support::{DUE, IN_TIME, LATE, MILLI, Waiting, counts, known};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::time::Duration;
use timer_core::Timer;
use timer_metrics::{LAG_BUCKETS, TimerMetrics, Watch};

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    text
}

fn scrape(metrics: &TimerMetrics) -> Scrape {
    parse(&metrics.to_openmetrics().unwrap(), Format::OpenMetrics).unwrap()
}

#[test]
fn counters_and_gauges_are_exact() {
    let (timer, _driver) = known(Timer::builder().name("known"));
    let scrape = scrape(&TimerMetrics::from_iter([&timer]));
    for (name, value) in counts(&timer) {
        assert_eq!(scrape.value(name, "known"), value, "{name}");
    }
    let value = |name| scrape.value(name, "known");
    let ended = value("timer_timeouts_expired_total") + value("timer_timeouts_cancelled_total");
    assert_eq!(value("timer_timeouts_scheduled_total"), value("timer_pending_timeouts") + ended);
}

#[test]
fn names_types_and_units_are_stable() {
    let (timer, _driver) = known(Timer::builder().max_pending_timeouts(100));
    let metrics = TimerMetrics::new();
    metrics.watch_with(&timer, Watch::new().longest_delay(Duration::from_millis(1_500)));
    let scrape = scrape(&metrics);
    let mut kinds: Vec<String> = Vec::new();
    for family in &scrape.families {
        assert!(family.help.ends_with('.') && !family.help.contains(['\\', '"']), "{}", family.help);
        kinds.push(format!("{} {} {}", family.kind, family.name, family.unit));
    }
    let expected = [
        "gauge timer_pending_timeouts ",
        "gauge timer_tasks_queued ",
        "gauge timer_tasks_running ",
        "counter timer_timeouts_scheduled ",
        "counter timer_timeouts_expired ",
        "counter timer_timeouts_cancelled ",
        "counter timer_timeouts_rejected ",
        "counter timer_task_panics ",
        "counter timer_executor_rejections ",
        "counter timer_turns ",
        "counter timer_runs ",
        "counter timer_entries_cascaded ",
        "counter timer_inbox_handovers ",
        "gauge timer_shards ",
        "gauge timer_longest_task_seconds seconds",
        "gauge timer_max_pending_timeouts ",
        "gauge timer_longest_delay_seconds seconds",
        "gauge timer_due_within_seconds ",
        "gauge timer_expected_lag_seconds seconds",
        "counter timer_lateness_seconds seconds",
        "histogram timer_late_runs_seconds seconds",
        "histogram timer_tick_lag_seconds seconds",
        "histogram timer_timeout_lag_seconds seconds",
        "histogram timer_start_lag_seconds seconds",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(scrape.value("timer_max_pending_timeouts", "timer"), 100.0);
    assert_eq!(scrape.value("timer_longest_delay_seconds", "timer"), 1.5);
    let histogram = |name: &str| ["_bucket", "_sum", "_count"].map(|suffix| format!("{name}{suffix}"));
    let mut names: BTreeSet<String> = counts(&timer).iter().map(|(name, _)| (*name).to_owned()).collect();
    names.extend(["timer_lateness_seconds_total".to_owned(), "timer_due_within_seconds".to_owned()]);
    names.extend(histogram("timer_late_runs_seconds"));
    names.extend(histogram("timer_tick_lag_seconds"));
    names.extend(histogram("timer_timeout_lag_seconds"));
    names.extend(histogram("timer_start_lag_seconds"));
    names.extend(["timer_max_pending_timeouts".to_owned(), "timer_longest_delay_seconds".to_owned()]);
    assert_eq!(scrape.names(), names.iter().map(String::as_str).collect());
}

#[test]
fn timeouts_to_come_are_cumulative() {
    let (timer, _driver) = known(Timer::builder());
    let scrape = scrape(&TimerMetrics::from_iter([&timer]));
    let due = scrape.samples().filter(|sample| sample.name == "timer_due_within_seconds");
    let due: Vec<(&str, f64)> = due.map(|sample| (sample.labels["le"].as_str(), sample.value)).collect();
    assert_eq!(due, DUE);
}

#[test]
fn histograms_have_the_known_lags_in_their_buckets() {
    let (timer, _driver) = known(Timer::builder());
    let scrape = scrape(&TimerMetrics::from_iter([&timer]));
    // Tasks that run on the worker start when they are handed over.
    for name in ["timer_timeout_lag_seconds", "timer_start_lag_seconds"] {
        let buckets = scrape.buckets(name, "timer");
        assert_eq!(buckets.len(), LAG_BUCKETS.len() + 1);
        for ((bound, count), bucket) in buckets.iter().zip(LAG_BUCKETS) {
            assert_eq!(*bound, bucket.as_secs_f64());
            let late = LATE.iter().filter(|late| **late <= bucket).count() as u64;
            assert_eq!(*count, (IN_TIME + late) as f64, "{name} {bound}");
        }
        let all = (IN_TIME + LATE.len() as u64) as f64;
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, all)));
        assert_eq!(scrape.value(&format!("{name}_count"), "timer"), all);
        let sum: Duration = LATE.iter().sum();
        assert_eq!(scrape.value(&format!("{name}_sum"), "timer"), sum.as_secs_f64());
    }
    assert_eq!(scrape.value("timer_tick_lag_seconds_sum", "timer"), 0.0);
}

#[test]
fn the_lateness_of_all_causes_is_the_sum_of_the_lags() {
    let (timer, _driver) = known(Timer::builder());
    let scrape = scrape(&TimerMetrics::from_iter([&timer]));
    let parts = scrape.samples().filter(|sample| sample.name == "timer_lateness_seconds_total");
    let parts: Vec<(&str, f64)> = parts.map(|sample| (sample.labels["cause"].as_str(), sample.value)).collect();
    let causes: Vec<&str> = parts.iter().map(|(cause, _)| *cause).collect();
    assert_eq!(causes, ["tick", "system", "quota", "lock", "tasks", "turn", "executor"]);
    let sum: f64 = parts.iter().map(|(_, seconds)| seconds).sum();
    assert!((sum - scrape.value("timer_start_lag_seconds_sum", "timer")).abs() < 1e-9, "{parts:?}");
    // The tasks were due before they were scheduled, when the driver took no turn.
    assert!(parts[1].1 > 20.0, "{parts:?}");
    let late = |name: &str| {
        let of_system = |sample: &&Sample| sample.name == name && sample.labels["cause"] == "system";
        scrape.samples().filter(of_system).map(|sample| sample.value).collect::<Vec<_>>()
    };
    let long = LATE.iter().filter(|late| **late >= Duration::from_millis(1));
    assert_eq!(late("timer_late_runs_seconds_count"), [long.count() as f64]);
    assert!((late("timer_late_runs_seconds_sum")[0] - parts[1].1).abs() < 0.001, "{parts:?}");
    assert_eq!(late("timer_late_runs_seconds_bucket").len(), 17);
}

#[test]
fn any_name_is_escaped_and_parsed_back() {
    let names = ["", "\\", "\"", "\n", "a\\nb", "\r", "{timer=\"x\"} 1 # {", "µ-Zähler 定时器", "\\\"\n\\", ",}"];
    for name in names {
        let timer = Timer::builder().name(name).build().unwrap();
        let scrape = scrape(&TimerMetrics::from_iter([&timer]));
        assert_eq!(scrape.timers(), BTreeSet::from([name]));
    }
}

#[test]
fn timers_in_one_registry_do_not_mix() {
    let (rpc, _rpc_driver) = known(Timer::builder().name("rpc"));
    let (leases, _leases_driver) = Timer::builder().name("leases").build_manual().unwrap();
    leases.new_timeout(Duration::from_secs(1), |_| {}).unwrap();
    let scrape = scrape(&TimerMetrics::from_iter([&rpc, &leases]));
    assert_eq!(scrape.timers(), BTreeSet::from(["leases", "rpc"]));
    assert_eq!(scrape.value("timer_timeouts_scheduled_total", "rpc"), 10.0);
    assert_eq!(scrape.value("timer_timeouts_scheduled_total", "leases"), 1.0);
    assert_eq!(scrape.value("timer_timeout_lag_seconds_count", "leases"), 0.0);
}

#[test]
fn scrapes_follow_drops_and_late_registrations() {
    let metrics = TimerMetrics::new();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let timers = || {
        let scrape = parse(&text(&registry), Format::OpenMetrics).unwrap();
        scrape.timers().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(text(&registry), "# EOF\n");
    let (first, _driver) = known(Timer::builder().name("first"));
    metrics.watch(&first);
    assert_eq!(timers(), ["first"]);
    let second = Timer::builder().name("second").build().unwrap();
    metrics.watch(&second);
    assert_eq!(timers(), ["first", "second"]);
    drop(first);
    assert_eq!(timers(), ["second"]);
    drop(second);
    assert_eq!(text(&registry), "# EOF\n");
}

#[test]
fn the_users_registry_keeps_its_own_metrics() {
    let labels = [("cluster".into(), "a\"b".into())];
    let mut registry = Registry::with_prefix_and_labels("app", labels.into_iter());
    let requests: Counter = Counter::default();
    requests.inc_by(3);
    registry.register("requests", "Requests", requests);
    let (timer, _driver) = known(Timer::builder());
    TimerMetrics::from_iter([&timer]).register(&mut registry);
    let scrape = parse(&text(&registry), Format::OpenMetrics).unwrap();
    assert!(scrape.names().contains("app_requests_total"));
    let pending = scrape.samples().find(|sample| sample.name == "app_timer_pending_timeouts").unwrap();
    assert_eq!(
        (pending.value, pending.labels["cluster"].as_str(), pending.labels["timer"].as_str()),
        (2.0, "a\"b", "timer")
    );
    assert_eq!(pending.labels.len(), 2);
}

#[test]
fn promtool_accepts_the_text() {
    let (timer, _driver) = known(Timer::builder().name("a \"quoted\" name").max_pending_timeouts(10));
    let metrics = TimerMetrics::new();
    metrics.watch_with(&timer, Watch::new().longest_delay(Duration::from_secs(1)));
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    // The tool reads the older format, in which the metadata of a counter use its full name.
    let mut plain = text(&registry);
    for family in parse(&text(&registry), Format::OpenMetrics).unwrap().families {
        if family.kind == "counter" {
            plain = plain.replace(&format!(" {} ", family.name), &format!(" {}_total ", family.name));
        }
    }
    check_metrics(&plain);
}

#[test]
fn tasks_at_an_executor_are_in_a_scrape() {
    let executor = Waiting::default();
    let (timer, mut driver) = Timer::builder().executor(executor.clone()).build_manual().unwrap();
    let metrics = TimerMetrics::from_iter([&timer]);
    let figures = |scrape: &Scrape| {
        let names = ["timer_pending_timeouts", "timer_tasks_queued", "timer_tasks_running"];
        names.map(|name| scrape.value(name, "timer"))
    };
    let (sender, seen_by_the_task) = channel();
    let inner = metrics.clone();
    timer.new_timeout(MILLI, move |_| sender.send(scrape(&inner)).unwrap()).unwrap();
    let cancelled = timer.new_timeout(MILLI, |_| {}).unwrap();
    timer.new_timeout(MILLI, |_| {}).unwrap();
    assert_eq!(figures(&scrape(&metrics)), [3.0, 0.0, 0.0]);
    driver.advance(MILLI);
    assert_eq!(figures(&scrape(&metrics)), [3.0, 3.0, 0.0]);
    driver.advance(7 * MILLI);
    executor.run_one();
    assert_eq!(figures(&seen_by_the_task.recv().unwrap()), [2.0, 2.0, 1.0]);
    assert_eq!(figures(&scrape(&metrics)), [2.0, 2.0, 0.0]);
    assert!(cancelled.cancel());
    let scrape = scrape(&metrics);
    assert_eq!(figures(&scrape), [1.0, 1.0, 0.0]);
    // All three were handed over in time. The task that started had waited for 7 ms.
    assert_eq!(scrape.value("timer_timeout_lag_seconds_count", "timer"), 3.0);
    assert_eq!(scrape.value("timer_timeout_lag_seconds_sum", "timer"), 0.0);
    assert_eq!(scrape.value("timer_start_lag_seconds_sum", "timer"), 0.007);
    let buckets = scrape.buckets("timer_start_lag_seconds", "timer");
    assert!(buckets.iter().all(|(bound, count)| *count == f64::from(*bound >= 0.007)), "{buckets:?}");
}
