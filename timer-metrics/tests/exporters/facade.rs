//! The values that a recorder of the facade `metrics` receives.

use crate::recorder::Keeper;
use crate::support::{DUE, IN_TIME, LATE, MILLI, counts, known};
use metrics::Unit;
use std::time::Duration;
use timer_core::{LateCause, Timer};
use timer_metrics::{Publisher, TimerMetrics, Watch};

const LAG: &str = "timer_timeout_lag_seconds{timer=timer}";
const START_LAG: &str = "timer_start_lag_seconds{timer=timer}";

fn publish(publisher: &mut Publisher, keeper: &Keeper) {
    metrics::with_local_recorder(keeper, || publisher.publish());
}

#[test]
fn counters_and_gauges_are_exact() {
    let (timer, _driver) = known(Timer::builder().max_pending_timeouts(9));
    let metrics = TimerMetrics::new();
    metrics.watch_with(&timer, Watch::new().longest_delay(Duration::from_millis(1_500)));
    let mut publisher = metrics.publisher();
    let keeper = Keeper::default();
    // The second call must not add to the absolute values.
    publish(&mut publisher, &keeper);
    publish(&mut publisher, &keeper);
    for (name, value) in counts(&timer) {
        assert_eq!(keeper.value(&format!("{name}{{timer=timer}}")), Some(value), "{name}");
    }
    assert_eq!(keeper.value("timer_max_pending_timeouts{timer=timer}"), Some(9.0));
    assert_eq!(keeper.value("timer_longest_delay_seconds{timer=timer}"), Some(1.5));
    for (bound, count) in DUE {
        assert_eq!(
            keeper.value(&format!("timer_due_within_seconds{{timer=timer,le={bound}}}")),
            Some(count),
            "{bound}"
        );
    }
    let system = timer.stats().lateness.part(LateCause::System).as_secs_f64();
    assert!(system > 20.0);
    assert_eq!(keeper.value("timer_lateness_seconds_total{timer=timer,cause=system}"), Some(system));
}

#[test]
fn each_lag_is_recorded_once_and_rounded_up() {
    let (timer, mut driver) = known(Timer::builder());
    let mut publisher = TimerMetrics::from_iter([&timer]).publisher();
    let keeper = Keeper::default();
    publish(&mut publisher, &keeper);
    let records = keeper.take_records(LAG);
    assert_eq!(records[0], (1e-6, IN_TIME as usize));
    for ((value, count), late) in records[1..].iter().zip(LATE) {
        let late = late.as_secs_f64();
        assert!(*count == 1 && *value >= late && *value <= late * 1.28, "{value} for {late}");
    }
    assert_eq!(records.len(), 1 + LATE.len());

    publish(&mut publisher, &keeper);
    assert!(keeper.take_records(LAG).is_empty());
    timer.new_timeout_at(driver.now() - 10 * MILLI, |_| {}).unwrap();
    driver.advance(Duration::ZERO);
    publish(&mut publisher, &keeper);
    assert_eq!(keeper.take_records(LAG), [(0.01, 1)]);
}

#[test]
fn many_lags_are_thinned_and_every_size_remains() {
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    driver.advance(Duration::from_secs(60));
    for _ in 0..40_000 {
        timer.new_timeout(MILLI, |_| {}).unwrap();
    }
    driver.advance(MILLI);
    timer.new_timeout_at(driver.now() - Duration::from_secs(10), |_| {}).unwrap();
    driver.advance(Duration::ZERO);
    let mut publisher = TimerMetrics::from_iter([&timer]).publisher();
    let keeper = Keeper::default();
    publish(&mut publisher, &keeper);
    assert_eq!(keeper.take_records(LAG), [(1e-6, 9_999), (10.0, 1)]);
    assert_eq!(keeper.value("timer_runs_total{timer=timer}"), Some(40_001.0));
}

#[test]
fn a_dropped_timer_leaves_no_stale_gauge() {
    let (timer, _driver) = known(Timer::builder().max_pending_timeouts(9));
    let metrics = TimerMetrics::from_iter([&timer]);
    let mut publisher = metrics.publisher();
    let keeper = Keeper::default();
    publish(&mut publisher, &keeper);
    drop(timer);
    publish(&mut publisher, &keeper);
    assert_eq!(keeper.value("timer_pending_timeouts{timer=timer}"), Some(0.0));
    assert_eq!(keeper.value("timer_max_pending_timeouts{timer=timer}"), Some(0.0));
    assert_eq!(keeper.value("timer_due_within_seconds{timer=timer,le=+Inf}"), Some(0.0));
    assert_eq!(keeper.value("timer_longest_delay_seconds{timer=timer}"), None);
    assert_eq!(keeper.value("timer_timeouts_scheduled_total{timer=timer}"), Some(10.0));
    // The gauges are cleared once, so that another timer under that label is not disturbed.
    keeper.0.lock().unwrap().values.clear();
    publish(&mut publisher, &keeper);
    assert!(keeper.0.lock().unwrap().values.is_empty());
}

#[test]
fn an_unbounded_timer_does_not_inherit_a_bound() {
    let metrics = TimerMetrics::new();
    let mut publisher = metrics.publisher();
    let keeper = Keeper::default();
    let bounded = Timer::builder().max_pending_timeouts(9).build().unwrap();
    metrics.watch_with(&bounded, Watch::new().longest_delay(MILLI));
    publish(&mut publisher, &keeper);
    drop(bounded);
    // The new timer takes the label before the next call of the publisher.
    let (unbounded, _driver) = known(Timer::builder());
    assert_eq!(metrics.watch(&unbounded), "timer");
    publish(&mut publisher, &keeper);
    assert_eq!(keeper.value("timer_pending_timeouts{timer=timer}"), Some(2.0));
    assert_eq!(keeper.value("timer_max_pending_timeouts{timer=timer}"), Some(0.0));
    assert_eq!(keeper.value("timer_longest_delay_seconds{timer=timer}"), Some(0.0));
}

/// Counts of all timers that had the label add up. Each timer's lags are recorded from the first
/// one on.
#[test]
fn the_counts_of_three_timers_under_a_label_add_up() {
    let metrics = TimerMetrics::new();
    let mut publisher = metrics.publisher();
    let keeper = Keeper::default();
    let mut scheduled = 0;
    for runs in [3, 5, 4] {
        let (timer, mut driver) = Timer::builder().build_manual().unwrap();
        assert_eq!(metrics.watch(&timer), "timer");
        for _ in 0..runs {
            timer.new_timeout(MILLI, |_| {}).unwrap();
        }
        driver.advance(MILLI);
        // The second call records nothing again.
        publish(&mut publisher, &keeper);
        publish(&mut publisher, &keeper);
        scheduled += runs;
        let total = Some(scheduled as f64);
        assert_eq!(keeper.value("timer_timeouts_scheduled_total{timer=timer}"), total);
        assert_eq!(keeper.value("timer_runs_total{timer=timer}"), total);
        assert_eq!(keeper.take_records(LAG), [(1e-6, runs)]);
        assert_eq!(keeper.take_records(START_LAG), [(1e-6, runs)]);
    }
}

#[test]
fn a_publisher_in_a_timeout_keeps_no_timer_alive() {
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    let mut publisher = TimerMetrics::from_iter([&timer]).publisher();
    let keeper = Keeper::default();
    let recorder = keeper.clone();
    timer.schedule_at_fixed_rate(Duration::ZERO, 10 * MILLI, move |_| publish(&mut publisher, &recorder)).unwrap();
    driver.advance(50 * MILLI);
    assert_eq!(keeper.value("timer_timeouts_scheduled_total{timer=timer}"), Some(1.0));
    assert_eq!(keeper.value("timer_runs_total{timer=timer}"), Some(6.0));
    let weak = timer.downgrade();
    drop(timer);
    assert!(weak.upgrade().is_none());
}

#[test]
fn each_series_is_described_once_with_its_unit() {
    let (timer, _driver) = known(Timer::builder());
    let mut publisher = TimerMetrics::from_iter([&timer]).publisher();
    let keeper = Keeper::default();
    publish(&mut publisher, &keeper);
    publish(&mut publisher, &keeper);
    let described = std::mem::take(&mut keeper.0.lock().unwrap().described);
    assert_eq!(described.len(), 23);
    for (name, kind, unit) in &described {
        // The bounds of this one are seconds, and its values are counts.
        let seconds = name.contains("_seconds") && name != "timer_due_within_seconds";
        assert_eq!(*unit, Some(if seconds { Unit::Seconds } else { Unit::Count }), "{name}");
        assert_eq!(*kind == "counter", name.ends_with("_total") && !seconds, "{name}");
        assert_eq!(*kind == "histogram", name.contains("_lag_") && !name.contains("expected"), "{name}");
    }
}

/// The counters of two durable timers under a label add up, and a gauge of the first one is
/// cleared.
#[cfg(feature = "durable")]
#[test]
fn durable_timers_are_published_by_timer_and_topic() {
    use timer_durable::{BOUNDS, Due, DurableTimer, MemoryStore, Topic};

    const CLOSE: Topic<()> = Topic::new("close");
    let durable = timer_metrics::DurableMetrics::new();
    let mut publisher = TimerMetrics::new().publisher().durable(&durable);
    let keeper = Keeper::default();
    publish(&mut publisher, &keeper);
    assert_eq!(keeper.0.lock().unwrap().described.len(), 23, "there is no durable timer yet");
    let mut topics = vec![CLOSE, Topic::new("mail")];
    for (runs, total) in [(3, 3.0), (2, 5.0)] {
        let store = MemoryStore::new();
        let builder = DurableTimer::builder().name("orders");
        let add = |builder: timer_durable::DurableTimerBuilder, topic| builder.topic(topic, |_: &Due<()>| Ok(()));
        let builder = topics.iter().fold(builder, |builder, topic| add(builder, *topic));
        let (timer, mut driver) = builder.build_manual(store.clone()).unwrap();
        durable.watch(&timer);
        topics.iter().skip(1).for_each(|mail| timer.pause(*mail).wait().unwrap());
        (0..runs).for_each(|_| _ = timer.new_timeout(CLOSE, Duration::from_secs(1), &()).wait().unwrap());
        store.advance_clock(Duration::from_secs(3));
        driver.run_due();
        for _ in 0..2 {
            publish(&mut publisher, &keeper);
        }
        for name in
            ["durable_attempts_done_total{timer=orders}", "durable_topic_attempts_done_total{timer=orders,topic=close}"]
        {
            assert_eq!(keeper.value(name), Some(total), "{name}");
        }
        let lateness = "durable_lateness_seconds_total{timer=orders,cause=system}";
        assert_eq!(keeper.value(lateness), Some(2.0 * total));
        assert_eq!(keeper.value("durable_topic_paused{timer=orders,topic=close}"), Some(0.0));
        let is_paused = f64::from(u8::from(topics.len() > 1));
        assert_eq!(keeper.value("durable_topic_paused{timer=orders,topic=mail}"), Some(is_paused));
        assert_eq!(keeper.value("durable_due_within_seconds{timer=orders,topic=close,le=60.0}"), Some(0.0));
        let lag = keeper.take_records("durable_topic_lag_seconds{timer=orders,topic=close}");
        assert_eq!(lag, [(BOUNDS[13].as_secs_f64(), runs)]);
        topics.truncate(1);
    }
    let described = keeper.0.lock().unwrap().described.split_off(23);
    assert!(described.len() > 40 && described.iter().all(|(name, ..)| name.starts_with("durable_")), "{described:?}");
    for (name, kind, unit) in &described {
        let seconds = name.contains("_seconds") && name != "durable_due_within_seconds";
        assert_eq!(*unit, Some(if seconds { Unit::Seconds } else { Unit::Count }), "{name}");
        assert_eq!(*kind == "counter", name.ends_with("_total") && !seconds, "{name}");
        assert_eq!(
            *kind == "histogram",
            ["_lag_seconds", "_commit_seconds"].iter().any(|end| name.ends_with(end)),
            "{name}"
        );
    }
}

#[test]
fn publishing_without_a_recorder_does_nothing() {
    let timer = Timer::new();
    TimerMetrics::from_iter([&timer]).publisher().publish();
}
