//! The checks that each store runs.

use std::time::{Duration, SystemTime};

use redb_store::RedbStore;
use timer_durable::conformance;
use timer_durable_tests::folder::Folder;
use timer_durable_tests::never_early::{Ledger, assert_on_time, work};
use timer_durable_tests::{explained, one_clock, queued, timetable};

const PATIENCE: Duration = Duration::from_secs(60);

fn with_store(check: fn(RedbStore)) {
    let folder = Folder::new();
    check(RedbStore::open(folder.file()).unwrap());
}

#[test]
fn the_store_conforms() {
    let folder = Folder::new();
    let mut files = 0;
    conformance::run(|| {
        files += 1;
        RedbStore::open(folder.path().join(files.to_string())).unwrap()
    });
}

#[test]
fn a_file_on_the_clock_of_a_timer_goes_on_after_a_crash() {
    let folder = Folder::new();
    one_clock::check(|file| RedbStore::open(folder.path().join(file.to_string())).unwrap());
}

#[test]
fn no_session_loses_its_last_event() {
    with_store(queued::no_session_loses_its_last_event);
}

#[test]
fn new_periods_take_effect_during_a_run() {
    with_store(queued::new_periods_take_effect_during_a_run);
}

#[test]
fn a_call_beside_a_handler_is_kept() {
    with_store(queued::a_call_beside_a_handler_is_kept);
}

#[test]
fn as_many_timeouts_run_as_the_timetable_counts() {
    with_store(|store| timetable::assert_runs_as_counted(store, 300));
}

#[test]
fn lateness_is_explained() {
    let folder = Folder::new();
    explained::check(|builder| builder.open(RedbStore::open(folder.file()).unwrap()).wait().unwrap());
}

#[test]
fn no_way_to_schedule_is_early() {
    let folder = Folder::new();
    let (ledger, builder, ways) = Ledger::new(SystemTime::now, work);
    let timer = builder.open(RedbStore::open(folder.file()).unwrap()).wait().unwrap();
    let expected = ledger.call(&timer) + ledger.call_in_transactions(&timer);
    assert_on_time(std::iter::from_fn(|| ways.recv_timeout(PATIENCE).ok()), expected);
}
