//! The schema of a file: versions, and a file that a program of version 1 has left.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use timer_durable::{Due, DurableTimer, Retry, Schedule, TimeoutId};
use timer_durable_sqlite::rusqlite::Connection;
use timer_durable_sqlite::{OpenError, SqliteReader, SqliteStore};

use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

const FILE_1: &str = include_str!("../fixtures/sqlite_1.sql");

fn change(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

/// Returns the SQL of the tables of a file, without white space.
fn tables(path: &Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut query = connection.prepare("select sql from sqlite_schema where sql is not null order by name").unwrap();
    let words = |sql: String| sql.to_lowercase().split_whitespace().collect::<String>();
    query.query_map([], |row| row.get(0).map(words)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// A change of the tables needs a new version.
#[test]
fn a_file_of_version_1_goes_on() {
    let new = Folder::new();
    let folder = Folder::new();
    drop(SqliteStore::open(new.file()).unwrap());
    change(&folder.file(), FILE_1);
    assert_eq!(tables(&folder.file()), tables(&new.file()));
    let (sender, ran) = mpsc::channel();
    let record = move |due: &Due<String>| {
        let seen = (due.payload().clone(), due.key().map(str::to_owned), due.attempt());
        sender.send(seen).map_err(Retry::new)
    };
    let store = SqliteStore::open(folder.file()).unwrap();
    let timer = DurableTimer::builder().topic(t(), record).open(store).wait().unwrap();
    let old = ("old".to_owned(), Some("key".to_owned()), 2);
    assert_eq!(ran.recv_timeout(Duration::from_secs(60)), Ok(old), "its first attempt died with its process");
    let letters = timer.dead_letters(None, None, 9).wait().unwrap();
    assert_eq!((letters.len(), &*letters[0].payload, &*letters[0].reason), (1, &b"dead"[..], "broken"));
    timer.stop(Duration::from_secs(60)).wait().unwrap();
}

/// The tools that migrate the tables of the user write both pragmas.
#[test]
fn tables_of_the_user_may_be_there_first() {
    let folder = Folder::new();
    change(
        &folder.file(),
        "create table orders(n); create table timer_of_mine(n); pragma user_version = 7;
        pragma application_id = 8",
    );
    let reader = SqliteReader::open(folder.file()).unwrap_err();
    assert!(reader.to_string().ends_with("is not a file of timeouts: it has no tables of the store"), "{reader}");
    let id = TimeoutId::new();
    for number in 1..3 {
        let store = SqliteStore::open(folder.file()).unwrap();
        let timer = DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())).open(store).wait().unwrap();
        timer.schedule(t(), Schedule::after(Duration::from_secs(3600)).id(id), &()).wait().unwrap();
        assert_eq!(timer.counts().wait().unwrap().pending, 1);
        timer.stop(Duration::from_secs(60)).wait().unwrap();
        drop(timer);
        let pragmas = "select user_version || ' ' || application_id from pragma_user_version, pragma_application_id";
        let connection = Connection::open(folder.file()).unwrap();
        let pragmas: String = connection.query_row(pragmas, [], |row| row.get(0)).unwrap();
        assert_eq!(pragmas, format!("{} 8", if number == 1 { 7 } else { 99 }));
        change(&folder.file(), "insert into orders values (1); pragma user_version = 99");
    }
}

#[test]
fn a_table_of_another_program_with_a_name_of_the_store_is_refused() {
    for (other, name) in [
        ("create table timer_timeout(x)", "table timer_timeout"),
        ("create table Timer_Meta(key text, value text)", "table timer_meta"),
        ("create view timer_dead as select 1", "view timer_dead"),
        ("create table t(x); create index timer_timeout_by_key on t(x)", "index timer_timeout_by_key"),
        // As in files from before the first release.
        (
            "create table meta(epoch, floor); create table timeout(id); create table timer_tombstone(id);
             pragma application_id = 1953329764; pragma user_version = 1",
            "table timer_tombstone",
        ),
    ] {
        let folder = Folder::new();
        change(&folder.file(), other);
        let before = tables(&folder.file());
        let error = SqliteStore::open(folder.file()).unwrap_err();
        let why = format!("its {name} is not the store's, to which names with timer_ belong");
        assert!(matches!(&error, OpenError::NotTimeouts { why: found, .. } if *found == why), "{error}");
        assert!(matches!(SqliteReader::open(folder.file()), Err(OpenError::NotTimeouts { .. })), "{other}");
        assert_eq!(tables(&folder.file()), before);
    }
}

#[test]
fn another_version_of_a_file_is_refused() {
    let folder = Folder::new();
    drop(SqliteStore::open(folder.file()).unwrap());
    // A later version may have other tables.
    change(&folder.file(), "update timer_meta set version = 99; drop table timer_paused");
    for error in [SqliteStore::open(folder.file()).map(drop), SqliteReader::open(folder.file()).map(drop)] {
        let error = error.unwrap_err();
        assert!(matches!(error, OpenError::Version { found: 99, expected: 1, .. }), "{error}");
    }
}
