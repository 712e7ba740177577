//! Timeouts that were overdue when the timer was opened, beside new ones.

use std::time::Duration;

use timer_durable::{Due, DurableTimer, MemoryStore, Retry, Topic};

use crate::engine::{Log, SECOND, logging, open, take, text};
use crate::t;

#[test]
fn overdue_timeouts_do_not_hold_up_new_ones() {
    let store = MemoryStore::new();
    let (timer, driver, _) = open(&store);
    (0..100).for_each(|n| _ = timer.new_timeout(t(), SECOND, &format!("old{n}")).wait().unwrap());
    driver.crash();
    drop(timer);
    store.advance_clock(3600 * SECOND);
    let log = Log::default();
    let builder = DurableTimer::builder().max_running(4).topic(t(), logging(&log));
    let (timer, mut driver) = builder.capacity(8).build_manual(store).unwrap();
    timer.new_timeout(t(), Duration::ZERO, &text("new")).wait().unwrap();
    driver.run_due();
    let ran = take(&log);
    assert_eq!(ran.len(), 101);
    assert!(ran.iter().position(|it| it == "new 1").unwrap() <= 4, "D13: {:?}", &ran[..8]);
}

#[test]
fn overdue_timeouts_without_a_place_do_not_hold_up_virtual_time() {
    let store = MemoryStore::new();
    let (timer, driver, _) = open(&store);
    (0..2).for_each(|n| _ = timer.new_timeout(t(), SECOND, &format!("old{n}")).wait().unwrap());
    driver.crash();
    drop(timer);
    store.advance_clock(3600 * SECOND);
    let (sender, ran) = std::sync::mpsc::channel();
    let (timer, mut driver) = DurableTimer::builder()
        .max_running(2)
        // The handler does not end, because nothing polls its future.
        .spawn(std::mem::forget)
        .topic_async(t(), |_: Due<String>| async { Ok(()) })
        .topic(Topic::new("new"), move |due: &Due<()>| sender.send(due.lag()).map_err(Retry::new))
        .build_manual(store)
        .unwrap();
    (1..3).for_each(|n| _ = timer.new_timeout(Topic::new("new"), n * 10 * SECOND, &()).wait().unwrap());
    driver.advance(15 * SECOND);
    assert!(driver.advance_to_next().is_some());
    assert!(driver.advance_to_next().is_none(), "the other overdue one waits");
    assert_eq!(ran.try_iter().collect::<Vec<_>>(), [Duration::ZERO; 2]);
    timer.new_timeout(t(), SECOND, &text("all places are taken")).wait().unwrap();
    timer.new_timeout(t(), 2 * SECOND, &text("it waits")).wait().unwrap();
    assert!(driver.advance_to_next().is_some());
    assert!(driver.advance_to_next().is_none());
}

#[test]
fn new_timeouts_do_not_starve_overdue_ones() {
    for places in [1, 2, 8] {
        let store = MemoryStore::new();
        let (timer, driver, _) = open(&store);
        (0..10).for_each(|n| _ = timer.new_timeout(t(), SECOND, &format!("old{n}")).wait().unwrap());
        driver.crash();
        drop(timer);
        store.advance_clock(3600 * SECOND);
        let log = Log::default();
        let builder = DurableTimer::builder().max_running(places).topic(t(), logging(&log));
        let (timer, mut driver) = builder.build_manual(store).unwrap();
        (0..100).for_each(|n| _ = timer.new_timeout(t(), Duration::ZERO, &format!("new{n}")).wait().unwrap());
        driver.run_due();
        let ran = take(&log);
        let last = ran.iter().rposition(|it| it.starts_with("old")).unwrap();
        assert!(ran.len() == 110 && last < 30, "D13, {places} places: {:?}", &ran[..last]);
        let first = ran.iter().position(|it| it.starts_with("new")).unwrap();
        assert!(first <= places, "D13, {places} places: {:?}", &ran[..first]);
    }
}
