use super::DurableMetrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;
use timer_durable::{Due, DurableTimer, ManualDurableDriver, MemoryStore, Topic};

const SCRAPER: &str = "scraper";
const PATIENCE: Duration = Duration::from_secs(60);

fn open() -> (DurableTimer, ManualDurableDriver) {
    DurableTimer::builder().name("orders").build_manual(MemoryStore::new()).unwrap()
}

#[test]
fn a_scrape_removes_dropped_timers() {
    let metrics = DurableMetrics::new();
    let (dropped, _driver) = open();
    let (kept, _other_driver) = open();
    metrics.watch(&dropped);
    metrics.watch(&kept);
    drop(dropped);
    assert_eq!(metrics.list.labels().len(), 2);
    let labels: Vec<String> = metrics.snapshots().into_iter().map(|snapshot| snapshot.label).collect();
    assert_eq!(labels, ["orders-2"]);
    assert_eq!(metrics.list.labels().len(), 1);
}

/// No scrape runs between the timers.
#[test]
fn a_timer_gets_the_name_of_a_dropped_one() {
    let metrics = DurableMetrics::new();
    for _ in 0..3 {
        let (timer, _driver) = open();
        metrics.watch(&timer);
        assert_eq!(metrics.list.labels(), ["orders"]);
    }
}

/// A part of a handler, which uses the set when it is dropped, and tells if the scraper drops it.
struct Asks {
    metrics: DurableMetrics,
    is_met: Sender<()>,
}

impl Drop for Asks {
    fn drop(&mut self) {
        drop(self.metrics.snapshots());
        if thread::current().name() == Some(SCRAPER) {
            // The test may have ended.
            let _ = self.is_met.send(());
        }
    }
}

/// Drops timers while another thread calls `scrape`, until that thread has dropped the last handle
/// of one.
fn drop_in(scrape: fn(&DurableMetrics)) {
    let metrics = DurableMetrics::new();
    let is_over = Arc::<AtomicBool>::default();
    let scrapes = Arc::<AtomicUsize>::default();
    let scraping = thread::Builder::new().name(SCRAPER.to_owned()).spawn({
        let metrics = metrics.clone();
        let is_over = is_over.clone();
        let scrapes = scrapes.clone();
        move || {
            // ORDERING: Relaxed, because the flag and the count guard no other data.
            while !is_over.load(Ordering::Relaxed) {
                scrape(&metrics);
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
                let asks = Asks { metrics: metrics.clone(), is_met: sender.clone() };
                let handler = move |_: &Due<()>| Ok(_ = &asks);
                let builder = DurableTimer::builder().topic(Topic::new("t"), handler);
                let (timer, _driver) = builder.build_manual(MemoryStore::new()).unwrap();
                metrics.watch(&timer);
                let before = scrapes.load(Ordering::Relaxed);
                while scrapes.load(Ordering::Relaxed) == before && !is_over.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
            }
        }
    });
    // Both threads hang if the handler is dropped under the lock of the set.
    is_met.recv_timeout(PATIENCE).unwrap();
    // ORDERING: Relaxed, as above.
    is_over.store(true, Ordering::Relaxed);
    scraping.unwrap().join().unwrap();
    dropping.join().unwrap();
    assert!(metrics.snapshots().is_empty());
}

#[test]
fn a_handler_dropped_by_a_scrape_may_use_the_set() {
    drop_in(|metrics| drop(metrics.snapshots()));
}

#[test]
fn a_handler_dropped_by_a_watch_may_use_the_set() {
    drop_in(|metrics| metrics.watch(&open().0));
}
