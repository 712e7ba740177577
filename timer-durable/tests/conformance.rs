//! The stores of this crate keep the promises of the trait.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use timer_durable::{MemoryStore, SqliteStore, conformance};

#[test]
fn the_store_in_memory_conforms() {
    conformance::run(|| {
        let store = MemoryStore::new();
        store.control().advance(std::time::Duration::from_secs(1_000_000));
        store
    });
}

#[test]
fn the_sqlite_store_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = 0;
    conformance::run(|| {
        files += 1;
        SqliteStore::open(folder.path().join(format!("{files}.db"))).unwrap()
    });
}
