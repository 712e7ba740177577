//! Files on the clock of a timer in memory.

use std::time::Duration;

use futures::FutureExt;
use timer_durable::{Due, DurableTimer, Error, TimeoutId};
use timer_durable_sqlite::SqliteStore;
use timer_durable_tests::folder::Folder;
use timer_durable_tests::one_clock::{DAY, SECOND, check, manual};
use timer_durable_tests::t;

#[test]
fn a_file_on_the_clock_of_a_timer_goes_on_after_a_crash() {
    let folder = Folder::new();
    check(|file| SqliteStore::open(folder.path().join(file.to_string())).unwrap());
}

#[test]
fn a_file_that_fails_does_not_stop_virtual_time() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let sqlite = store.handle();
    let (timer, mut driver) = DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())).build_manual(store).unwrap();
    timer.new_timeout(t::<()>(), SECOND, &()).wait().unwrap();
    assert!(timer.get_by_id(t::<()>(), TimeoutId::new()).now_or_never().is_some(), "no thread reads");
    let sql = |sql: &'static str| {
        sqlite.transaction(&timer, move |tx| Ok(tx.connection().execute_batch(sql)?)).wait().unwrap()
    };
    sql("create trigger refusal before update of begun on timer_timeout begin select raise(abort, 'not now'); end");
    assert_eq!(driver.advance(60 * SECOND), 0);
    sql("drop trigger refusal");
    assert_eq!(driver.advance(60 * SECOND), 1);
    timer.new_timeout(t::<()>(), SECOND, &()).wait().unwrap();
    std::fs::remove_file(folder.file()).unwrap();
    assert_eq!(driver.advance(60 * SECOND), 0);
    assert!(matches!(timer.new_timeout(t::<()>(), SECOND, &()).wait(), Err(Error::Store(_))));
}

#[test]
fn timeouts_of_a_downtime_are_overdue() {
    let folder = Folder::new();
    let (_memory, mut driver, clock) = manual();
    let open = || {
        let store = SqliteStore::open(folder.file()).unwrap();
        DurableTimer::builder().overdue_rate(1).topic(t(), |_: &Due<()>| Ok(())).open_on(store, &clock).unwrap()
    };
    let timer = open();
    (0..3).for_each(|_| _ = timer.new_timeout(t::<()>(), DAY, &()).wait().unwrap());
    clock.crash();
    assert!(matches!(timer.new_timeout(t::<()>(), DAY, &()).wait(), Err(Error::Stopped)));
    driver.advance(2 * DAY);
    let timer = open();
    let done = [Duration::ZERO, SECOND, SECOND].map(|by| {
        driver.advance(by);
        timer.stats().done
    });
    assert_eq!(done, [1, 2, 3]);
    timer.new_timeout(t::<()>(), 60 * DAY, &()).wait().unwrap();
    let turns = timer.stats().turns;
    assert_eq!((driver.advance(30 * DAY), timer.stats().turns), (0, turns), "D14");
    timer.pause(t::<()>()).wait().unwrap();
    driver.advance(90 * DAY);
    let turns = timer.stats().turns - turns;
    assert!(turns < 10, "no look at the figures of a paused topic stops the time: {turns} turns");
    assert_eq!(clock.now(), std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000) + 122 * DAY + 2 * SECOND);
}
