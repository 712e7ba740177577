//! The file of the store: its owner, its version, and tables of the user in it.

use redb::{Database, ReadableDatabase, ReadableTableMetadata, TableDefinition, WriteTransaction};
use redb_store::{OpenError, RedbStore};
use std::time::{Duration, Instant};
use timer_durable::store::{Store, VIRTUAL_START, micros};
use timer_durable::{Due, DurableTimer, Error, TimeoutId};
use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

const ORDERS: TableDefinition<&str, ()> = TableDefinition::new("orders");
const PATIENCE: Duration = Duration::from_secs(60);
/// From the beginning of virtual time, it leads far ahead of the wall clock.
const HALF_A_CENTURY: Duration = Duration::from_secs(50 * 365 * 86_400);

fn open(folder: &Folder) -> DurableTimer {
    let store = RedbStore::open(folder.file()).unwrap();
    DurableTimer::builder().topic(t(), |_: &Due<String>| Ok(())).open(store).wait().unwrap()
}

#[test]
fn a_file_has_one_owner_at_a_time() {
    let folder = Folder::new();
    let timer = open(&folder);
    let refused = RedbStore::open(folder.file()).unwrap_err();
    assert!(matches!(&refused, OpenError::InUse(path) if *path == folder.file()), "{refused:?}");
    assert!(refused.to_string().contains("is in use"), "{refused}");
    // A reader exists once a call has read.
    assert_eq!(timer.get_by_id(t::<String>(), TimeoutId::new()).wait().unwrap(), None);
    timer.stop(PATIENCE).wait().unwrap();
    drop(timer);
    RedbStore::open(folder.file()).unwrap();
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let folder = Folder::new();
    let database = Database::create(folder.file()).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(ORDERS).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let refused = RedbStore::open(folder.file()).unwrap_err();
    assert!(matches!(refused, OpenError::Version(_, None)), "{refused:?}");
    let database = Database::create(folder.file()).unwrap();
    assert_eq!(database.begin_read().unwrap().list_tables().unwrap().count(), 1);
    let text = folder.path().join("text");
    std::fs::write(&text, "no database").unwrap();
    let refused = RedbStore::open(&text).unwrap_err();
    assert!(matches!(refused, OpenError::Failed(..)), "{refused:?}");
    assert_eq!(std::fs::read(&text).unwrap(), b"no database");
}

/// An order and the timeout that closes it are written together or not at all.
#[test]
fn tables_of_the_user_share_the_transaction() {
    let folder = Folder::new();
    let timer = open(&folder);
    let place = |number: &'static str, may_commit: bool| {
        let work = timer.transaction(move |tx| {
            let transaction = tx.connection().and_then(|open| open.downcast_ref::<WriteTransaction>()).unwrap();
            transaction.open_table(ORDERS)?.insert(number, ())?;
            tx.new_timeout(t(), Duration::from_secs(1_800), number)?;
            if may_commit { Ok(()) } else { Err("rolled back".into()) }
        });
        work.wait()
    };
    place("17", true).unwrap();
    assert!(matches!(place("18", false), Err(Error::Work(_))));
    assert_eq!(timer.counts().wait().unwrap().pending, 1);
    timer.stop(PATIENCE).wait().unwrap();
    drop(timer);
    let database = Database::open(folder.file()).unwrap();
    let orders = database.begin_read().unwrap().open_table(ORDERS).unwrap();
    assert_eq!(orders.len().unwrap(), 1);
}

#[test]
fn a_clock_behind_the_file_stands_still() {
    let folder = Folder::new();
    let (timer, mut driver) = {
        let store = RedbStore::open(folder.file()).unwrap();
        DurableTimer::builder().topic(t(), |_: &Due<String>| Ok(())).build_manual(store).unwrap()
    };
    timer.new_timeout(t(), Duration::from_secs(1), "a").wait().unwrap();
    driver.advance(HALF_A_CENTURY);
    assert_eq!(timer.stats().done, 1);
    timer.new_timeout(t(), Duration::from_millis(1), "b").wait().unwrap();
    timer.stop(PATIENCE).wait().unwrap();
    drop((timer, driver));
    let now = RedbStore::open(folder.file()).unwrap().now();
    assert!(now >= VIRTUAL_START + micros(HALF_A_CENTURY), "{now}");
    let timer = open(&folder);
    let ready = Instant::now() + Duration::from_millis(100);
    while Instant::now() < ready {
        std::thread::park_timeout(ready.saturating_duration_since(Instant::now()));
    }
    assert_eq!(timer.stats().done, 0, "the wall clock has to catch up");
    assert_eq!(timer.counts().wait().unwrap().pending, 1);
}

/// An open that fails leaves the file to another process, whose clock may be ahead.
#[cfg(unix)]
#[test]
fn a_store_that_joins_again_takes_the_time_of_the_file() {
    let folder = Folder::new();
    let mut store = RedbStore::open(folder.file()).unwrap();
    store.rejoin().unwrap();
    let aside = folder.path().join("aside");
    std::fs::rename(folder.file(), &aside).unwrap();
    std::fs::write(folder.file(), "no database").unwrap();
    store.rejoin().unwrap_err();
    std::fs::rename(&aside, folder.file()).unwrap();

    let mut other = RedbStore::open(folder.file()).unwrap();
    other.advance_time(HALF_A_CENTURY).unwrap();
    other.rejoin().unwrap();
    other.write(&[], Instant::now()).unwrap();
    let floor = other.now();
    drop(other);
    store.rejoin().unwrap();
    assert!(store.now() >= floor, "{} is before {floor}", store.now());
}
