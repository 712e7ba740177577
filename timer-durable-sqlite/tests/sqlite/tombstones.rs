//! Tombstones of a file, on the store itself. The clock of a file starts at the latest time that
//! the file has, so a test moves it forward between two opens.

use std::time::{Duration, Instant};

use timer_durable::TimeoutId;
use timer_durable::store::{Micros, Store};
use timer_durable::transaction::{Insert, Operation, Outcome, Target};
use timer_durable_sqlite::SqliteStore;
use timer_durable_sqlite::rusqlite::Connection;

use timer_durable_tests::folder::Folder;

const MINUTE: Micros = 60_000_000;

fn join(folder: &Folder) -> SqliteStore {
    let mut store = SqliteStore::open(folder.file()).unwrap();
    store.rejoin().unwrap();
    store
}

fn execute(store: &mut SqliteStore, operation: Operation) -> Outcome {
    store.write(&[operation], Instant::now() + Duration::from_secs(60)).unwrap().remove(0)
}

fn insert(store: &mut SqliteStore, id: TimeoutId) -> Outcome {
    let due = store.now();
    execute(store, Operation::Insert(Insert::new(id, due, "t")))
}

/// Inserts and cancels a timeout with this id.
fn end(store: &mut SqliteStore, id: TimeoutId) {
    assert_eq!(insert(store, id), Outcome::Created { replaced: None });
    assert_eq!(execute(store, Operation::Cancel(Target::Id(id))), Outcome::Changed(id));
}

/// Returns an id that a caller has made at `time`.
fn made_at(time: Micros, number: u32) -> TimeoutId {
    TimeoutId::from_u128(u128::from(time.unsigned_abs() / 1_000) << 80 | u128::from(number))
}

/// Closes the store and reads the file, which belongs to one process at a time.
fn number(store: SqliteStore, folder: &Folder, sql: &str) -> i64 {
    drop(store);
    Connection::open(folder.file()).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn ids_of_the_instance_itself_leave_nothing() {
    let folder = Folder::new();
    let mut store = join(&folder);
    let id = TimeoutId::made_by(store.instance());
    end(&mut store, id);
    let id = TimeoutId::made_by(store.instance());
    insert(&mut store, id);
    execute(&mut store, Operation::Begin(id));
    let done = Operation::Done { id, attempt: 1, next: None, then: Vec::new() };
    assert_eq!(execute(&mut store, done), Outcome::Changed(id));
    assert_eq!(number(store, &folder, "select count(*) from timer_tombstone"), 0);
}

#[test]
fn only_expired_tombstones_are_removed() {
    let folder = Folder::new();
    let mut store = join(&folder);
    let start = store.now();
    let [old, young] = [0, 5].map(|minutes| made_at(start + minutes * MINUTE, 0));
    end(&mut store, old);
    (1..40).for_each(|n| end(&mut store, made_at(start, n)));
    end(&mut store, young);
    drop(store);
    let forward = format!("update timer_meta set floor = {}", start + 11 * MINUTE);
    Connection::open(folder.file()).unwrap().execute_batch(&forward).unwrap();

    let mut store = join(&folder);
    assert_eq!(insert(&mut store, TimeoutId::new()), Outcome::TooOld, "the wall clock is behind the file");
    let own = TimeoutId::made_by(store.instance());
    assert_eq!(insert(&mut store, own), Outcome::Created { replaced: None });
    assert_eq!(insert(&mut store, old), Outcome::Exists, "nothing has removed its tombstone so far");
    end(&mut store, made_at(start + 11 * MINUTE, 0));
    assert_eq!(insert(&mut store, old), Outcome::TooOld, "the new tombstone has removed it");
    let count = "select count(*) from timer_tombstone";
    let left = number(store, &folder, count);
    assert!((3..42).contains(&left), "{left}: a new tombstone removes a bounded number");

    let mut store = join(&folder);
    (1..10).for_each(|n| end(&mut store, made_at(start + 11 * MINUTE, n)));
    assert_eq!(insert(&mut store, young), Outcome::Exists, "D10");
    assert_eq!(number(store, &folder, count), 11, "the young one and the ten new ones");
}
