//! Schemas that never change, with files that a program of that version has left.

use std::sync::mpsc;
use std::time::Duration;

use timer_durable::{Due, DurableTimer, IfPending, Retry};
use timer_durable_sqlite::SqliteStore;
use timer_durable_sqlite::rusqlite::Connection;

use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

const FILE_1: &str = include_str!("../fixtures/sqlite_1.sql");

/// Returns the version of a file and the SQL of its tables without white space.
fn schema(folder: &Folder) -> (i64, Vec<String>) {
    let connection = Connection::open(folder.file()).unwrap();
    let tables = "select sql from sqlite_schema where sql is not null order by name";
    let mut query = connection.prepare(tables).unwrap();
    let words = |sql: String| sql.to_lowercase().split_whitespace().collect::<String>();
    let tables = query.query_map([], |row| row.get(0).map(words)).unwrap().collect::<Result<_, _>>().unwrap();
    (connection.query_row("pragma user_version", [], |row| row.get(0)).unwrap(), tables)
}

/// Schedules a timeout twice. Returns the trace that its handler sees.
fn trace_of(folder: &Folder) -> Option<String> {
    let (sender, ran) = mpsc::channel();
    let record = move |due: &Due<String>| {
        if due.payload() == "old" {
            return Ok(());
        }
        sender.send(due.traceparent().map(str::to_owned)).map_err(Retry::new)
    };
    let store = SqliteStore::open(folder.file()).unwrap();
    let timer = DurableTimer::builder().topic(t(), record).open(store).unwrap();
    for (delay, trace) in [(3600, "first"), (0, "second")] {
        let call = timer.timeout_builder(t(), trace).key("traced").if_pending(IfPending::Update);
        call.after(Duration::from_secs(delay)).traceparent(trace).schedule().unwrap();
        // The indexes of an old file have no topic.
        let due = timer.due_within(&[Duration::from_secs(delay)]).unwrap();
        assert!(delay == 0 || due[0].counts[0] > 0, "{due:?}");
    }
    let trace = ran.recv_timeout(Duration::from_secs(60)).unwrap();
    timer.stop(Duration::from_secs(60)).unwrap();
    trace
}

/// A file keeps its tables until an upgrade, which adds a column and builds indexes anew. Another
/// change of the tables needs a new version with a fixture.
#[test]
fn a_file_of_version_1_goes_on() {
    let (new, folder) = (Folder::new(), Folder::new());
    drop(SqliteStore::open(new.file()).unwrap());
    Connection::open(folder.file()).unwrap().execute_batch(FILE_1).unwrap();
    let tables = schema(&folder);
    assert_ne!(tables, schema(&new));
    let copy = Folder::new();
    std::fs::copy(folder.file(), copy.file()).unwrap();
    assert_eq!((trace_of(&copy), trace_of(&new).as_deref()), (None, Some("second")));
    assert_eq!(schema(&copy), tables, "a program changes no tables unless it is told to");
    let (sender, ran) = mpsc::channel();
    let record = move |due: &Due<String>| {
        let seen = (due.payload().clone(), due.key().map(str::to_owned), due.attempt());
        sender.send(seen).map_err(Retry::new)
    };
    let mut store = SqliteStore::open(folder.file()).unwrap();
    store.upgrade().unwrap();
    let timer = DurableTimer::builder().topic(t(), record).open(store).unwrap();
    let old = ("old".to_owned(), Some("key".to_owned()), 2);
    assert_eq!(ran.recv_timeout(Duration::from_secs(60)), Ok(old), "its first attempt died with its process");
    let letters = timer.dead_letters(None, None, 9).unwrap();
    assert_eq!((letters.len(), &*letters[0].payload, &*letters[0].reason), (1, &b"dead"[..], "broken"));
    timer.stop(Duration::from_secs(60)).unwrap();
    drop(timer);
    assert_eq!(schema(&folder), schema(&new));
}
