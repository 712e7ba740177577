//! Names of the user: tables and triggers in the store's file.

use std::time::Duration;

use timer_durable::{CancelAnswer, Due, DurableTimer, Schedule, TimeoutId};
use timer_durable_sqlite::{SqliteHandle, SqliteStore};

use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

const LONG: Duration = Duration::from_secs(60);

fn open(folder: &Folder) -> (DurableTimer, SqliteHandle) {
    let store = SqliteStore::open(folder.file()).unwrap();
    let sqlite = store.handle();
    (DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())).open(store).wait().unwrap(), sqlite)
}

/// Schedules and cancels a timeout with an id of the caller, which leaves a tombstone.
fn end(timer: &DurableTimer, id: TimeoutId) {
    timer.schedule(t(), Schedule::after(LONG).id(id), &()).wait().unwrap();
    assert_eq!(timer.cancel_by_id(id).wait().unwrap(), CancelAnswer::Cancelled);
}

#[test]
fn triggers_may_have_the_names_of_tables() {
    let folder = Folder::new();
    let (timer, sqlite) = open(&folder);
    for name in ["timer_timeout", "timer_tombstone"] {
        let sql =
            format!("create table {name}_log(n); create trigger {name} after insert on {name}_log begin select 1; end");
        sqlite.transaction(&timer, move |tx| Ok(tx.connection().execute_batch(&sql)?)).wait().unwrap();
    }
    end(&timer, TimeoutId::new());
    timer.stop(LONG).wait().unwrap();
    drop(timer);
    end(&open(&folder).0, TimeoutId::new());
}

#[test]
fn no_temporary_table_hides_one_of_the_store() {
    let folder = Folder::new();
    let (timer, sqlite) = open(&folder);
    for sql in [
        "create temp table Timer_Timeout as select * from main.timer_timeout",
        "create temp view timer_dead as select 1",
    ] {
        let error = sqlite.transaction(&timer, move |tx| Ok(tx.connection().execute_batch(sql)?)).wait().unwrap_err();
        assert!(error.to_string().contains("has the name of a table of the store"), "{error}");
    }
    timer.new_timeout(t(), LONG, &()).wait().unwrap();
    timer.stop(LONG).wait().unwrap();
    drop(timer);
    assert_eq!(open(&folder).0.counts().wait().unwrap().pending, 1, "D1");
}
