//! Reading timeouts back, beside the keeper and from another process.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use futures::executor::block_on;
use timer_durable::store::Reader;
use timer_durable::transaction::Target;
use timer_durable::{Due, DurableTimer, Error, Filter, IfPending, RequeueAnswer, Retry, Schedule, TimeoutState};
use timer_durable_sqlite::{OpenError, SqliteReader, SqliteStore};

use crate::processes::{CHILD, child};
use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

const LONG: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// The keeper is in a call of the user, which ends after the reads.
#[test]
fn a_read_does_not_wait_for_the_keeper() {
    let folder = Folder::new();
    let timer = DurableTimer::builder()
        .topic_elsewhere(t::<()>())
        .open(SqliteStore::open(folder.file()).unwrap())
        .wait()
        .unwrap();
    timer.schedule(t(), Schedule::after(LONG).key("k"), &()).wait().unwrap();
    let (begun, has_begun) = channel();
    let (end, may_end) = channel::<()>();
    std::thread::scope(|scope| {
        let timer = &timer;
        let busy = scope.spawn(move || {
            timer.transaction(move |_| {
                begun.send(()).unwrap();
                Ok(may_end.recv_timeout(LONG)?)
            })
        });
        has_begun.recv_timeout(LONG).unwrap();
        assert!(timer.get(t::<()>(), "k").wait().unwrap().is_some());
        assert_eq!(block_on(timer.list(&Filter::new(), None, 9)).unwrap().len(), 1);
        assert_eq!(timer.counts().wait().unwrap().pending, 1);
        end.send(()).unwrap();
        busy.join().unwrap().wait().unwrap();
    });
    timer.stop(LONG).wait().unwrap();
    assert!(matches!(timer.get(t::<()>(), "k").wait(), Err(Error::Stopped)));
    for end in ["-wal", "-owner"] {
        assert!(!Path::new(&format!("{}{end}", folder.file().display())).exists(), "{end} is left");
    }
}

/// The child owns the file, and is killed.
#[test]
fn a_file_is_read_beside_its_owner() {
    fn schedule(file: &Path, running: Sender<()>) -> DurableTimer {
        let handle = move |_: &Due<String>| -> Result<(), Retry> {
            let _ = running.send(());
            loop {
                std::thread::park();
            }
        };
        let timer = DurableTimer::builder().topic(t(), handle).open(SqliteStore::open(file).unwrap()).wait().unwrap();
        timer.schedule(t(), Schedule::after(Duration::ZERO).key("runs"), "a").wait().unwrap();
        timer.schedule(t(), Schedule::after(DAY).key("waits"), "b").wait().unwrap();
        timer
    }
    if let Some(folder) = std::env::var_os(CHILD) {
        let (running, runs) = channel();
        let timer = schedule(&Path::new(&folder).join("timeouts.db"), running);
        runs.recv().unwrap();
        // The kernel drops the locks of SQLite.
        for end in ["", "-shm", "-wal"] {
            std::fs::read(Path::new(&folder).join(format!("timeouts.db{end}"))).unwrap();
        }
        std::fs::write(Path::new(&folder).join("open"), "").unwrap();
        // Each commit uses the index of the log.
        loop {
            timer
                .schedule(t(), Schedule::after(2 * DAY).key("later").if_pending(IfPending::Replace), "c")
                .wait()
                .unwrap();
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
    let folder = Folder::new();
    let mut owner = child("reading::a_file_is_read_beside_its_owner", &folder).spawn().unwrap();
    while !folder.path().join("open").exists() {
        assert!(owner.try_wait().unwrap().is_none(), "the child has ended");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let states = || {
        let rows = SqliteReader::open(folder.file()).unwrap().list(&Filter::new(), None, 9).unwrap();
        rows.into_iter().take(2).map(|row| (row.key.unwrap(), row.state)).collect::<Vec<_>>()
    };
    let later = || {
        let key = Target::Key { topic: "t".to_owned(), key: "later".to_owned() };
        SqliteReader::open(folder.file()).unwrap().get(&key).unwrap().map(|found| found.id)
    };
    let expected = [("runs".to_owned(), TimeoutState::Running), ("waits".to_owned(), TimeoutState::Pending)];
    assert_eq!(states(), expected);
    assert!(
        matches!(SqliteStore::open(folder.file()), Err(OpenError::InUse { owner: Some(id), .. }) if id == owner.id())
    );
    for _ in 0..3 {
        let before = later();
        while later() == before {
            assert!(owner.try_wait().unwrap().is_none(), "the owner goes on");
        }
    }
    let view = "select group_concat(topic || key || state || attempt) from (select * from timer_pending where key <> 'later' order by due)";
    let other = rusqlite::Connection::open_with_flags(folder.file(), rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY);
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!(states(), expected, "a dead owner has left its log");
    let seen: String = other.unwrap().query_row(view, [], |row| row.get(0)).unwrap();
    assert_eq!(seen, "trunsrunning1,twaitspending0");
}

#[test]
fn a_row_of_another_program_is_found_with_the_next_commit() {
    let folder = Folder::new();
    let (sender, ran) = channel();
    let handle = move |due: &Due<String>| sender.send(due.payload().clone()).map_err(Retry::new);
    let timer =
        DurableTimer::builder().topic(t(), handle).open(SqliteStore::open(folder.file()).unwrap()).wait().unwrap();
    timer.new_timeout(t(), LONG, "a").wait().unwrap();
    let other = rusqlite::Connection::open(folder.file()).unwrap();
    other
        .execute(
            "insert into timer_timeout(id, due, topic, format, payload) values (zeroblob(16), 0, 't', 2, x'62')",
            [],
        )
        .unwrap();
    timer.new_timeout(t(), LONG, "c").wait().unwrap();
    assert_eq!(ran.recv_timeout(LONG).as_deref(), Ok("b"));
    while timer.stats().pending != Some(2) {
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn operators_may_await_their_calls() {
    let folder = Folder::new();
    let handler = |_: &Due<()>| -> Result<(), Retry> { Err(Retry::dead("broken")) };
    let timer =
        DurableTimer::builder().topic(t(), handler).open(SqliteStore::open(folder.file()).unwrap()).wait().unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    let dead = |topic| loop {
        let mut dead = block_on(timer.dead_letters(topic, None, 9)).unwrap();
        if let Some(letter) = dead.pop() {
            break letter;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    };
    let id = dead(None).id;
    assert_eq!(block_on(timer.requeue(id)).unwrap(), RequeueAnswer::Requeued);
    assert_eq!(dead(Some("t")).attempt, 2);
    assert!(block_on(timer.purge(id)).unwrap() && !block_on(timer.purge(id)).unwrap());
    assert_eq!(block_on(timer.counts()).unwrap().dead, 0);
    timer.pause(t::<()>()).wait().unwrap();
    assert_eq!(block_on(timer.paused_topics()).unwrap(), ["t"]);
    block_on(timer.backup(folder.path().join("copy.db"))).unwrap();
    assert!(folder.path().join("copy.db").exists());
}
