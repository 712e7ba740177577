//! A full disk, a failed commit and a folder that cannot be written, through the public API.

use std::process::{Command, Stdio};
use std::time::Duration;

use timer_durable::{Due, DurableTimer, Error, StoreError};
use timer_durable_sqlite::{OpenError, SqliteStore};

use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

const LONG: Duration = Duration::from_secs(60);

/// The variable that makes a test a child, with the folder of its parent.
const CHILD: &str = "TIMER_DURABLE_CHILD";

/// Schedules timeouts until three calls have failed. Returns the counts of accepted calls and of
/// those whose outcome is unknown.
fn fill(folder: &str) -> (u64, u64) {
    let store = SqliteStore::open(format!("{folder}/timeouts.db")).unwrap();
    let timer = DurableTimer::builder().topic(t(), |_: &Due<String>| Ok(())).open(store).wait().unwrap();
    let payload = "x".repeat(1_000);
    let mut accepted = 0;
    let mut failed = 0;
    let mut unknown = 0;
    while failed + unknown < 3 {
        assert!(accepted < 10_000, "D16: the disk is full, and calls still succeed");
        match timer.new_timeout(t(), 60 * LONG, &payload).wait() {
            Ok(_) => accepted += 1,
            Err(Error::Store(StoreError::Failed(_))) => failed += 1,
            Err(Error::OutcomeUnknown { id: Some(_), .. }) => unknown += 1,
            Err(other) => panic!("{other}"),
        }
    }
    (accepted, unknown)
}

#[test]
fn a_full_disk_is_an_error_to_the_caller() {
    if let Ok(folder) = std::env::var(CHILD) {
        let (accepted, unknown) = fill(&folder);
        std::fs::write(format!("{folder}/counts"), format!("{accepted} {unknown}")).unwrap();
        return;
    }
    let folder = Folder::new();
    // No file of the child can grow beyond 1,000 units of 512 bytes, and a write beyond that fails
    // instead of killing the child.
    let mut child = Command::new("sh");
    child.args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    child.args(["--exact", "full_disk::a_full_disk_is_an_error_to_the_caller"]).env(CHILD, folder.path());
    assert!(child.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success(), "D16");
    let counts = std::fs::read_to_string(folder.path().join("counts")).unwrap();
    let (accepted, unknown) = counts.split_once(' ').unwrap();
    let accepted: u64 = accepted.parse().unwrap();
    let unknown: u64 = unknown.parse().unwrap();
    let timer = DurableTimer::builder().open(SqliteStore::open(folder.file()).unwrap()).wait().unwrap();
    let pending = timer.counts().wait().unwrap().pending;
    assert!(accepted > 0 && (accepted..=accepted + unknown).contains(&pending), "D1: {pending}, {counts}");
}

#[test]
fn a_full_disk_is_named() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let sqlite = store.handle();
    let timer = DurableTimer::builder().topic_elsewhere(t::<()>()).open(store).wait().unwrap();
    let limit = |pages: u32| {
        // SQLite reports this limit as a full disk.
        let set = format!("pragma max_page_count = {pages}");
        sqlite
            .transaction(&timer, move |tx| Ok(tx.connection().query_row(&set, [], |row| row.get::<_, u32>(0))?))
            .wait()
            .unwrap()
    };
    limit(1);
    let error = timer.new_timeout(t(), LONG, &"x".repeat(100_000)).wait().unwrap_err();
    assert!(error.to_string().contains("the disk is full"), "{error}");
    limit(1_000_000);
    timer.new_timeout(t(), LONG, &"x".repeat(100_000)).wait().unwrap();
}

/// A foreign key that is checked at the commit lets the update succeed and its commit fail.
#[test]
fn a_start_whose_commit_fails_is_an_error() {
    let folder = Folder::new();
    let open = || DurableTimer::builder().open(SqliteStore::open(folder.file()).unwrap());
    drop(open().wait().unwrap());
    let file = || rusqlite::Connection::open(folder.file()).unwrap();
    let refuse = "create table parent(id integer primary key);
        create table child(parent references parent deferrable initially deferred);
        create trigger refuse after update of epoch on timer_meta begin insert into child values (1); end";
    file().execute_batch(refuse).unwrap();
    let epoch = || file().query_row("select epoch from timer_meta", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = epoch();
    let error = open().wait().unwrap_err();
    assert!(error.to_string().contains("FOREIGN KEY constraint failed"), "{error}");
    assert_eq!(epoch(), before);
    file().execute_batch("drop trigger refuse").unwrap();
    drop(open().wait().unwrap());
    assert_eq!(epoch(), before + 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    // Nobody can create a file there, not even root.
    let error = SqliteStore::open("/sys/kernel/timeouts.db").unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("/sys/kernel/timeouts.db cannot be opened: "), "{text}");
    assert!(text.ends_with("; the file and its folder must be readable and writable"), "{text}");
}
