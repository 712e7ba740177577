//! Timeouts that were overdue when the timer was opened, beside new ones.

use std::time::Duration;

use timer_durable::MemoryStore;

use crate::engine::{Log, SECOND, builder, open, take, text};

#[test]
fn overdue_timeouts_do_not_hold_up_new_ones() {
    let store = MemoryStore::new();
    let (timer, driver, _) = open(&store);
    (0..100).for_each(|n| _ = timer.new_timeout("t", SECOND, &format!("old{n}")).unwrap());
    driver.crash();
    drop(timer);
    store.advance_clock(3600 * SECOND);
    let log = Log::default();
    let (timer, mut driver) = builder(&log).capacity(8).max_running(4).build_manual(store).unwrap();
    timer.new_timeout("t", Duration::ZERO, &text("new")).unwrap();
    driver.run_due();
    let ran = take(&log);
    assert_eq!(ran.len(), 101);
    assert!(ran.iter().position(|it| it == "new 1").unwrap() <= 4, "D13: {:?}", &ran[..8]);
}

#[test]
fn new_timeouts_do_not_starve_overdue_ones() {
    for places in [1, 2, 8] {
        let store = MemoryStore::new();
        let (timer, driver, _) = open(&store);
        (0..10).for_each(|n| _ = timer.new_timeout("t", SECOND, &format!("old{n}")).unwrap());
        driver.crash();
        drop(timer);
        store.advance_clock(3600 * SECOND);
        let log = Log::default();
        let (timer, mut driver) = builder(&log).max_running(places).build_manual(store).unwrap();
        (0..100).for_each(|n| _ = timer.new_timeout("t", Duration::ZERO, &format!("new{n}")).unwrap());
        driver.run_due();
        let ran = take(&log);
        let last = ran.iter().rposition(|it| it.starts_with("old")).unwrap();
        assert!(ran.len() == 110 && last < 30, "D13, {places} places: {:?}", &ran[..last]);
        let first = ran.iter().position(|it| it.starts_with("new")).unwrap();
        assert!(first <= places, "D13, {places} places: {:?}", &ran[..first]);
    }
}
