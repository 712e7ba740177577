#![allow(clippy::unwrap_used, reason = "tests")]

use super::{Schema, VERSION_1, parts};
use crate::{OpenError, SqliteReader, SqliteStore};
use rusqlite::Connection;
use std::path::Path;
use std::time::Instant;
use timer_durable::TimeoutId;
use timer_durable::store::{Position, Store};
use timer_durable::transaction::{Insert, Operation, Outcome};

/// A made-up version 2, of a later program.
const NEXT: Schema =
    Schema { steps: &[VERSION_1, "alter table timer_timeout add column note text; drop index timer_dead_by_id;"] };

/// Returns the names of the parts of a file with their columns.
fn names(path: &Path) -> Vec<String> {
    let parts = parts(&Connection::open(path).unwrap()).unwrap();
    parts.iter().map(|(name, part)| format!("{name} {:?}", part.columns)).collect()
}

/// Becomes the next instance, writes a timeout and begins it.
fn use_as(path: &Path, schema: Schema) -> SqliteStore {
    let mut store = SqliteStore::open_as(path, schema).unwrap();
    store.rejoin().unwrap();
    let insert = Insert::new(TimeoutId::new(), 1_000_000, "t");
    let id = insert.id;
    assert_eq!(
        store.write(&[Operation::Insert(insert)], Instant::now()),
        Ok(vec![Outcome::Created { replaced: None }])
    );
    assert!(matches!(&store.write(&[Operation::Begin(id)], Instant::now()).unwrap()[..], [Outcome::Begun(_)]));
    store
}

#[test]
fn a_later_program_changes_a_file_only_when_it_is_told_to() {
    let folder = std::env::temp_dir().join(format!("timer-durable-schema-{}", TimeoutId::new()));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("timeouts.db");
    let new = folder.join("new.db");
    drop(SqliteStore::open(&path).unwrap());
    drop(SqliteStore::open_as(&new, NEXT).unwrap());
    let before = names(&path);
    assert_ne!(before, names(&new));
    drop(use_as(&path, NEXT));
    assert_eq!(names(&path), before);
    drop(use_as(&path, super::SCHEMA));

    let mut store = use_as(&path, NEXT);
    store.upgrade().unwrap();
    store.upgrade().unwrap();
    assert_eq!(names(&path), names(&new));
    let mut page = Vec::new();
    store.rejoin().unwrap();
    store.load("t", Position::START..Position::END, 9, &mut page).unwrap();
    assert_eq!(page.len(), 3);
    drop(store);
    let refused = [SqliteStore::open(&path).map(drop), SqliteReader::open(&path).map(drop)];
    for refused in refused {
        assert!(matches!(refused, Err(OpenError::Version { found: 2, expected: 1, .. })), "{refused:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
