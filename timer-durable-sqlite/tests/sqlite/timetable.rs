//! Checks of all stores, on a file.

use timer_durable_sqlite::SqliteStore;
use timer_durable_tests::folder::Folder;
use timer_durable_tests::{explained, timetable};

#[test]
fn timeouts_run_as_the_timetable_says() {
    let folder = Folder::new();
    timetable::assert_runs_as_counted(SqliteStore::open(folder.file()).unwrap(), 5_000);
}

#[test]
fn lateness_in_a_file_is_explained() {
    let folder = Folder::new();
    explained::check(|builder| builder.open(SqliteStore::open(folder.file()).unwrap()).wait().unwrap());
}
