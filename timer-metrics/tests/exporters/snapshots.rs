//! The set of timers without any exporter.

use crate::support::{KNOWN, known};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;
use timer_core::Timer;
use timer_metrics::{TimerMetrics, Watch};

fn labels(metrics: &TimerMetrics) -> Vec<String> {
    metrics.snapshots().into_iter().map(|timer| timer.label).collect()
}

#[test]
fn a_snapshot_has_the_counts_of_its_timer() {
    let (timer, _driver) = known(Timer::builder());
    let metrics = TimerMetrics::from_iter([&timer]);
    let stats = &metrics.snapshots()[0].stats;
    let counts = [stats.pending, stats.scheduled, stats.expired, stats.cancelled, stats.rejected];
    assert_eq!(counts, [2, 10, 5, 3, 1]);
    assert_eq!(stats.scheduled, stats.pending + stats.expired + stats.cancelled);
    assert!(KNOWN.contains(&("timer_runs_total", stats.runs as f64)));
}

#[test]
fn a_watched_timer_drops_its_tasks_with_its_last_handle() {
    struct Ends(std::sync::mpsc::Sender<()>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }
    let (ends, ended) = std::sync::mpsc::channel();
    let ends = Ends(ends);
    let timer = Timer::new();
    timer.new_timeout(Duration::from_secs(3_600), move |_| drop(ends)).unwrap();
    let metrics = TimerMetrics::from_iter([&timer]);
    drop(timer);
    ended.recv().unwrap();
    assert!(labels(&metrics).is_empty());
}

#[test]
fn labels_of_living_timers_are_unique() {
    let timers: Vec<Timer> = (0..3).map(|_| Timer::new()).collect();
    let mut metrics = TimerMetrics::new();
    metrics.watch_with(&timers[0], Watch::new().label("timer-2"));
    metrics.extend(&timers[1..]);
    assert_eq!(labels(&metrics), ["timer-2", "timer", "timer-3"]);
}

#[test]
fn the_label_of_a_dropped_timer_is_free() {
    let metrics = TimerMetrics::new();
    let first = Timer::new();
    assert_eq!(metrics.watch(&first), "timer");
    drop(first);
    let second = Timer::new();
    assert_eq!(metrics.watch(&second), "timer");
}

#[test]
fn a_snapshot_has_the_settings_of_its_watch() {
    let told = Timer::new();
    let untold = Timer::new();
    let metrics = TimerMetrics::new();
    metrics.watch_with(&told, Watch::new().max_pending_timeouts(7).longest_delay(Duration::from_secs(3)));
    metrics.watch(&untold);
    let snapshots = metrics.snapshots();
    assert_eq!((snapshots[0].max_pending, snapshots[0].longest_delay), (Some(7), Some(Duration::from_secs(3))));
    assert_eq!((snapshots[1].max_pending, snapshots[1].longest_delay), (None, None));
}

#[test]
fn the_bound_is_the_timers_unless_watch_sets_it() {
    let bounded = || Timer::builder().max_pending_timeouts(500);
    let own = bounded().build().unwrap();
    let told = bounded().build().unwrap();
    let unbounded = Timer::new();
    let metrics = TimerMetrics::from_iter([&own]);
    metrics.watch_with(&told, Watch::new().max_pending_timeouts(7));
    metrics.watch(&unbounded);
    let bounds: Vec<Option<u64>> = metrics.snapshots().iter().map(|timer| timer.max_pending).collect();
    assert_eq!(bounds, [Some(500), Some(7), None]);
}

/// Timers are dropped until a scrape has dropped the last handle of one.
#[test]
fn a_task_dropped_by_a_scrape_may_use_the_set() {
    const SCRAPER: &str = "scraper";
    struct Asks(TimerMetrics, Sender<()>);
    impl Drop for Asks {
        fn drop(&mut self) {
            drop(self.0.snapshots());
            if thread::current().name() == Some(SCRAPER) {
                // The test may have ended.
                let _ = self.1.send(());
            }
        }
    }
    let metrics = TimerMetrics::new();
    let is_over = Arc::<AtomicBool>::default();
    let scrapes = Arc::<AtomicUsize>::default();
    let scraping = thread::Builder::new().name(SCRAPER.to_owned()).spawn({
        let metrics = metrics.clone();
        let is_over = is_over.clone();
        let scrapes = scrapes.clone();
        move || {
            // ORDERING: Relaxed, because the flag and the count guard no other data.
            while !is_over.load(Ordering::Relaxed) {
                drop(metrics.snapshots());
                scrapes.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let (sender, is_met) = channel();
    let dropping = thread::spawn({
        let metrics = metrics.clone();
        let is_over = is_over.clone();
        move || {
            // ORDERING: Relaxed, as above.
            while !is_over.load(Ordering::Relaxed) {
                let timer = Timer::new();
                let asks = Asks(metrics.clone(), sender.clone());
                timer.new_timeout(Duration::from_secs(3_600), move |_| drop(asks)).unwrap();
                metrics.watch(&timer);
                let before = scrapes.load(Ordering::Relaxed);
                while scrapes.load(Ordering::Relaxed) == before && !is_over.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
            }
        }
    });
    // Both threads hang if the task is dropped under the lock of the set.
    is_met.recv_timeout(Duration::from_secs(60)).unwrap();
    // ORDERING: Relaxed, as above.
    is_over.store(true, Ordering::Relaxed);
    scraping.unwrap().join().unwrap();
    dropping.join().unwrap();
    assert!(labels(&metrics).is_empty());
}
