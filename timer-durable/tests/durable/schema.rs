//! Files of earlier releases, which the present code has to open, and schemas that never change.

use std::sync::mpsc;
use std::time::Duration;

use rusqlite::Connection;
use timer_durable::store::{Position, Store};
use timer_durable::transaction::{Attempt, Batch, Begun, Insert, Retry as Again};
use timer_durable::{Due, DurableTimer, Retry, SqliteStore, TimeoutId};

use crate::folder::Folder;

const FILE_1: &str = include_str!("../fixtures/sqlite_1.sql");

const FILE_2: &str = include_str!("../fixtures/sqlite_2.sql");

/// Opens a file of an earlier version, and lets its timeout run.
fn go_on(file: &str) -> Folder {
    let folder = Folder::new();
    Connection::open(folder.file()).unwrap().execute_batch(file).unwrap();
    let (sender, ran) = mpsc::channel();
    let record = move |due: &Due<String>| {
        let seen = (due.payload().clone(), due.key().map(str::to_owned), due.attempt());
        sender.send(seen).map_err(Retry::new)
    };
    let store = SqliteStore::open(folder.file()).unwrap();
    let timer = DurableTimer::builder().topic("t", record).open(store).unwrap();
    let old = ("old".to_owned(), Some("key".to_owned()), 2);
    assert_eq!(ran.recv_timeout(Duration::from_secs(60)), Ok(old), "its first attempt died with its process");
    let letters = timer.dead_letters(None, None, 9).unwrap();
    assert_eq!((letters.len(), &*letters[0].payload, &*letters[0].reason), (1, &b"dead"[..], "broken"));
    timer.stop(Duration::from_secs(60)).unwrap();
    folder
}

/// Returns the SQL of the schema without white space, because a column that was added later stands
/// in another line.
fn schema(folder: &Folder) -> Vec<String> {
    let connection = Connection::open(folder.file()).unwrap();
    let tables = "select sql from sqlite_schema where sql is not null order by name";
    let mut query = connection.prepare(tables).unwrap();
    let words = |sql: String| sql.split_whitespace().collect::<String>();
    query.query_map([], |row| row.get(0).map(words)).unwrap().collect::<Result<_, _>>().unwrap()
}

fn version(folder: &Folder) -> i64 {
    Connection::open(folder.file()).unwrap().query_row("pragma user_version", [], |row| row.get(0)).unwrap()
}

/// A change of the schema needs a new version, a fixture of it, and an upgrade to it.
#[test]
fn files_of_all_versions_go_on() {
    let new = Folder::new();
    drop(SqliteStore::open(new.file()).unwrap());
    for (number, file) in [(1, FILE_1), (2, FILE_2)] {
        let folder = go_on(file);
        assert_eq!(version(&folder), number, "nothing is upgraded unasked");
        let mut store = SqliteStore::open(folder.file()).unwrap();
        store.rejoin().unwrap();
        let far = Insert::new(TimeoutId::new(), store.now() + 86_400_000_000, "t");
        let position = Position { due: far.due, id: far.id };
        let mut batch = Batch::default();
        batch.inserts.push(far);
        store.write(&batch).unwrap();
        store.upgrade().unwrap();
        store.upgrade().unwrap();
        let mut found = Vec::new();
        let mut from = Position::START;
        while from < Position::END {
            from = store.load(from..Position::END, 9, &mut found).unwrap();
        }
        assert_eq!((found, store.counts().unwrap().dead), (vec![position], 1));
        drop(store);
        assert_eq!((schema(&folder), version(&folder)), (schema(&new), 2));
        drop(SqliteStore::open(folder.file()).unwrap());
    }
}

/// An open adds columns that a program of version 2 does not notice.
#[test]
fn the_schema_of_version_2_never_changes() {
    let (old, new) = (Folder::new(), Folder::new());
    let added = "alter table timeout add column planned integer; alter table timeout add column retry_due integer";
    Connection::open(old.file()).unwrap().execute_batch(&format!("{FILE_2} {added}")).unwrap();
    drop(SqliteStore::open(new.file()).unwrap());
    assert_eq!(schema(&old), schema(&new));
}

fn begin(store: &mut SqliteStore, id: TimeoutId) -> Attempt {
    let mut batch = Batch::default();
    batch.begins.push(id);
    match store.write(&batch).unwrap().begins.remove(0) {
        Begun::Attempt(attempt) => *attempt,
        other => panic!("it is due: {other:?}"),
    }
}

/// A program of an earlier release changes the due time alone.
#[test]
fn a_run_that_an_earlier_program_has_moved_is_planned_anew() {
    let folder = Folder::new();
    let open = || {
        let mut store = SqliteStore::open(folder.file()).unwrap();
        store.rejoin().unwrap();
        store
    };
    let mut store = open();
    let due = store.now() - 1_000;
    let insert = Insert::new(TimeoutId::new(), due, "t");
    let id = insert.id;
    let mut batch = Batch::default();
    batch.inserts.push(insert);
    store.write(&batch).unwrap();
    for attempt in 1..3 {
        assert_eq!(begin(&mut store, id).planned, due);
        let mut batch = Batch::default();
        batch.retries.push(Again { id, attempt, due: due + 5, forgive: false });
        assert_eq!(store.write(&batch).unwrap().retries, [true]);
    }
    drop(store);
    let change = "update timeout set due = due + 2, slot = null";
    Connection::open(folder.file()).unwrap().execute_batch(change).unwrap();
    let attempt = begin(&mut open(), id);
    assert_eq!((attempt.due, attempt.planned), (due + 7, due + 7));
}

/// Only the comments of the script may change.
#[cfg(feature = "postgres")]
#[test]
fn the_script_of_version_3_never_changes() {
    let statements = |script: &'static str| -> Vec<&str> {
        let code = script.lines().map(|line| line.split("--").next().unwrap_or_default().trim_end());
        code.filter(|line| !line.is_empty()).collect()
    };
    let old = statements(include_str!("../fixtures/postgres_3.sql"));
    assert_eq!(statements(timer_durable::PostgresStore::schema()), old);
}
