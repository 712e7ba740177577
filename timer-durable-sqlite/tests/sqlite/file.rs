//! The promises on a real file, through the public API.

use std::fs;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use timer_durable::{CancelAnswer, Due, DurableTimer, Error, Retry, Schedule, TimeoutId, Topic};
use timer_durable_sqlite::{OpenError, SqliteHandle, SqliteStore};

use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

const LONG: Duration = Duration::from_secs(60);

fn open(folder: &Folder) -> (DurableTimer, Receiver<(String, u32)>) {
    let (timer, _, ran) = open_with_handle(folder);
    (timer, ran)
}

fn open_with_handle(folder: &Folder) -> (DurableTimer, SqliteHandle, Receiver<(String, u32)>) {
    let store = SqliteStore::open(folder.file()).unwrap();
    let sqlite = store.handle();
    let (sender, ran): (Sender<(String, u32)>, _) = channel();
    let timer = DurableTimer::builder()
        .topic(t(), move |due: &Due<String>| {
            let _ = sender.send((due.payload().clone(), due.attempt()));
            Ok(())
        })
        .open(store)
        .wait()
        .unwrap();
    (timer, sqlite, ran)
}

#[test]
fn the_store_conforms() {
    let mut folders = Vec::new();
    timer_durable::conformance::run(|| {
        folders.push(Folder::new());
        SqliteStore::open(folders.last().unwrap().file()).unwrap()
    });
}

#[test]
fn a_refused_row_fails_its_call_only() {
    for (refusal, text) in [("raise(abort, 'no bad keys')", "no bad keys"), ("json('{')", "malformed JSON")] {
        let folder = Folder::new();
        let (timer, sqlite, ran) = open_with_handle(&folder);
        let refuse = format!(
            "create trigger refuse before insert on timer_timeout when new.key like 'bad%' begin select {refusal}; end"
        );
        sqlite.transaction(&timer, move |tx| Ok(tx.connection().execute_batch(&refuse)?)).wait().unwrap();
        let keys: Vec<String> =
            (0..200).map(|n| if n % 20 == 7 { format!("bad{n}") } else { format!("good{n}") }).collect();
        let schedule = |key: &String| timer.schedule(t(), Schedule::after(Duration::from_millis(1)).key(key), key);
        // The first one waits for its commit alone, and the others for the next one together.
        let calls: Vec<_> = keys.iter().map(schedule).collect();
        for (key, call) in keys.iter().zip(calls) {
            match call.wait() {
                Ok(_) => assert!(key.starts_with("good"), "{key}"),
                Err(error) => assert!(key.starts_with("bad") && error.to_string().contains(text), "{key}: {error}"),
            }
        }
        for _ in 0..190 {
            assert!(ran.recv_timeout(LONG).unwrap().0.starts_with("good"));
        }
        assert!(timer.stop(LONG).wait().unwrap().unfinished == 0 && ran.try_recv().is_err());
    }
}

#[test]
fn timeouts_run_after_a_restart() {
    let folder = Folder::new();
    let (timer, _) = open(&folder);
    let id = timer.new_timeout(t(), LONG, &"a".to_owned()).wait().unwrap();
    timer.schedule(t(), Schedule::after(LONG).key("k"), &"b".to_owned()).wait().unwrap();
    drop(timer);
    let (timer, ran) = open(&folder);
    timer.reset_by_id(id, Duration::ZERO).wait().unwrap();
    assert_eq!(ran.recv_timeout(LONG).unwrap(), ("a".to_owned(), 1), "D1");
    assert_eq!(timer.cancel(t::<()>(), "k").wait().unwrap(), CancelAnswer::Cancelled);
    assert_eq!(timer.stop(LONG).wait().unwrap().unfinished, 0);
    drop(timer);
    let (timer, _) = open(&folder);
    assert_eq!(timer.counts().wait().unwrap().pending, 0, "D2");
}

#[test]
fn a_timeout_begins_soon_after_it_is_due_and_never_before() {
    let folder = Folder::new();
    let (timer, ran) = open(&folder);
    // A sync takes much less, so a delay that is too short shows.
    let delay = Duration::from_millis(300);
    let mut taken = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        timer.new_timeout(t(), delay, &"a".to_owned()).wait().unwrap();
        ran.recv_timeout(LONG).unwrap();
        taken.push(begun.elapsed());
    }
    assert_eq!(timer.stats().lag.count(), 5);
    taken.sort_unstable();
    assert!(taken[0] >= delay, "D5: {taken:?}");
    // A busy machine delays some of them, but not most.
    assert!(taken[2] < delay + Duration::from_millis(500), "D6: {taken:?}");
}

#[test]
fn a_repeated_call_finds_a_timeout_that_has_ended() {
    let folder = Folder::new();
    let (timer, ran) = open(&folder);
    let id = TimeoutId::new();
    let text = "a".to_owned();
    let made_here = timer.new_timeout(t(), LONG, &text).wait().unwrap();
    timer.schedule(t(), Schedule::after(Duration::ZERO).id(id), &text).wait().unwrap();
    ran.recv_timeout(LONG).unwrap();
    timer.stop(LONG).wait().unwrap();
    // An id that an instance has made leaves a tombstone only if a later instance ends it.
    let (timer, ran) = open(&folder);
    timer.cancel_by_id(made_here).wait().unwrap();
    for id in [id, made_here] {
        assert_eq!(timer.schedule(t(), Schedule::after(Duration::ZERO).id(id), &text).wait().unwrap().id(), id, "D10");
    }
    assert_eq!(timer.counts().wait().unwrap().pending, 0, "D10");
    let old = TimeoutId::from_u128((u128::from(id.millis()) - 600_001) << 80);
    let too_old = timer.schedule(t(), Schedule::after(Duration::ZERO).id(old), &text).wait();
    assert!(matches!(too_old, Err(Error::IdTooOld)), "{too_old:?}");
    assert!(ran.try_recv().is_err());
}

#[test]
fn memory_holds_the_capacity_and_the_file_the_rest() {
    let folder = Folder::new();
    let (sender, ran) = channel();
    let timer = DurableTimer::builder()
        .capacity(16)
        .topic(t(), move |due: &Due<String>| Ok(sender.send(due.payload().clone())?))
        .open(SqliteStore::open(folder.file()).unwrap())
        .wait()
        .unwrap();
    for n in (0..100_u64).rev() {
        timer.new_timeout(t(), Duration::from_millis(500 + n), &n.to_string()).wait().unwrap();
        assert!(timer.stats().in_memory <= 16, "D12");
    }
    let mut all: Vec<u64> = (0..100).map(|_| ran.recv_timeout(LONG).unwrap().parse().unwrap()).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..100), "D2");
}

/// The test moves the file back in time instead of waiting for hours.
#[test]
fn timeouts_of_later_hours_run() {
    let folder = Folder::new();
    let (timer, _) = open(&folder);
    let hours = |n: u64| Duration::from_secs(3600 * n);
    for n in 0..600_u64 {
        timer.new_timeout(t(), hours(3) + Duration::from_millis(n * 7919 % 600), &n.to_string()).wait().unwrap();
    }
    timer.new_timeout(t(), hours(1_000), &"later".to_owned()).wait().unwrap();
    assert_eq!(timer.stop(LONG).wait().unwrap().unfinished, 0);
    let file = rusqlite::Connection::open(folder.file()).unwrap();
    // A slot is 2^32 microseconds wide.
    let back = "update timer_timeout set due = due - ?1, slot = (due - ?1) & -(1 << 32)";
    let until = (hours(3) - Duration::from_secs(2)).as_micros() as i64;
    assert_eq!(file.execute(back, [until]).unwrap(), 601);
    drop(file);
    let (timer, ran) = open(&folder);
    let mut runs: Vec<u64> = (0..600).map(|_| ran.recv_timeout(LONG).unwrap().0.parse().unwrap()).collect();
    runs.sort_unstable();
    assert!(runs.into_iter().eq(0..600), "D2");
    assert_eq!(timer.stop(LONG).wait().unwrap().unfinished, 0);
    let file = rusqlite::Connection::open(folder.file()).unwrap();
    let later = "select slot is not null from timer_timeout";
    assert_eq!(file.query_row(later, [], |row| row.get(0)), Ok(true), "its slot has not come");
}

#[test]
fn old_timeouts_do_not_hold_up_a_new_one() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let sqlite = store.handle();
    let timer = DurableTimer::builder().topic_elsewhere(t::<()>()).open(store).wait().unwrap();
    (0..100).for_each(|_| _ = timer.new_timeout(t(), LONG, &"old".to_owned()).wait().unwrap());
    let all_due =
        sqlite.transaction(&timer, |tx| Ok(tx.connection().execute("update timer_timeout set due = 1", [])?));
    assert_eq!(all_due.wait().unwrap(), 100);
    drop(timer);
    let (sender, ran) = channel();
    let timer = DurableTimer::builder()
        .overdue_rate(1)
        .topic(t(), move |due: &Due<String>| Ok(sender.send(due.payload().clone())?))
        .open(SqliteStore::open(folder.file()).unwrap())
        .wait()
        .unwrap();
    timer.new_timeout(t(), Duration::ZERO, &"new".to_owned()).wait().unwrap();
    while ran.recv_timeout(LONG).unwrap() != "new" {}
    assert!(timer.stats().begun < 50, "D13: one of the old ones begins each second");
    assert!(timer.counts().wait().unwrap().pending > 0, "D13: the old ones keep their rate");
}

#[test]
fn an_idle_file_wakes_nobody() {
    let folder = Folder::new();
    let (timer, ran) = open(&folder);
    timer.new_timeout(t(), LONG, &"a".to_owned()).wait().unwrap();
    // The answer to a later call comes after the turn of the first one.
    timer.counts().wait().unwrap();
    let _nothing = ran.recv_timeout(Duration::from_millis(50));
    let turns = timer.stats().turns;
    let _nothing = ran.recv_timeout(Duration::from_millis(300));
    assert_eq!(timer.stats().turns, turns, "D14");
}

#[test]
fn a_clock_behind_the_file_takes_no_turns() {
    let folder = Folder::new();
    drop(open(&folder));
    let hour = "update timer_meta set floor = (unixepoch() + 3600) * 1000000";
    rusqlite::Connection::open(folder.file()).unwrap().execute_batch(hour).unwrap();
    let (timer, ran) = open(&folder);
    timer.new_timeout(t(), Duration::from_micros(1), &"a".to_owned()).wait().unwrap();
    timer.counts().wait().unwrap();
    let turns = timer.stats().turns;
    ran.recv_timeout(Duration::from_millis(300)).expect_err("it is due after the clock has caught up");
    let taken = timer.stats().turns - turns;
    assert!(taken < 10, "D14: {taken} turns while the clock stands still");
}

#[test]
fn many_callers_share_commits() {
    let folder = Folder::new();
    let (timer, _ran) = open(&folder);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                (0..20).for_each(|_| _ = timer.new_timeout(t(), 60 * LONG, &"a".to_owned()).wait().unwrap());
            });
        }
    });
    assert_eq!(timer.counts().wait().unwrap().pending, 320);
    timer.stop(LONG).wait().unwrap();
    // No timeout was due, so the callers alone have caused the commits.
    let stats = timer.stats();
    assert!(stats.operations == 320 && stats.commits < 320, "{stats:?}");
}

#[test]
fn work_of_the_user_is_committed_with_the_end() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let sqlite = store.handle();
    let (sender, ran) = channel();
    let timer = DurableTimer::builder()
        .topic(Topic::new("t").backoff(Duration::ZERO, Duration::ZERO), move |due: &Due<()>| {
            let attempt = due.attempt();
            let result = sqlite.complete(due, move |tx| {
                let connection = tx.connection();
                connection.execute_batch("create table if not exists orders(closed)")?;
                connection.execute("insert into orders values (?1)", [attempt])?;
                match attempt {
                    1 => Err("the first attempt fails".into()),
                    2 => panic!("the second attempt"),
                    _ => Ok(()),
                }
            });
            let result = result.wait();
            let failure = result.as_ref().map(drop).map_err(Retry::new);
            let _ = sender.send(result);
            failure
        })
        .open(store)
        .wait()
        .unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    assert!(matches!(ran.recv_timeout(LONG).unwrap(), Err(Error::Work(_))));
    let panicked = ran.recv_timeout(LONG).unwrap().unwrap_err().to_string();
    assert!(panicked.contains("the work panicked: the second attempt"), "{panicked}");
    assert!(ran.recv_timeout(LONG).unwrap().is_ok());
    let error = timer.transaction(|_| -> Result<(), _> { panic!("here") });
    assert!(error.wait().unwrap_err().to_string().contains("the work panicked: here"));
    timer.stop(LONG).wait().unwrap();
    assert_eq!(timer.stats().refused, 0);
    drop(timer);
    let file = rusqlite::Connection::open(folder.file()).unwrap();
    let closed = "select group_concat(closed) from orders";
    assert_eq!(file.query_row(closed, [], |row| row.get(0)), Ok("3".to_owned()), "D4");
    assert_eq!(file.query_row("select count(*) from timer_timeout", [], |row| row.get::<_, u32>(0)).unwrap(), 0);
}

#[test]
fn a_backup_to_a_file_in_use_fails() {
    let folder = Folder::new();
    let (timer, _ran) = open(&folder);
    let copy = folder.path().join("copy.db");
    let other = rusqlite::Connection::open(&copy).unwrap();
    other.execute_batch("pragma locking_mode = exclusive; begin exclusive").unwrap();
    for target in [copy, folder.file()] {
        let error = timer.backup(&target).wait().unwrap_err();
        assert!(error.to_string().contains("in use"), "{}: {error}", target.display());
    }
}

#[test]
fn bad_files_are_refused_with_a_reason() {
    let folder = Folder::new();
    fs::write(folder.file(), "this is a text and no database, however long it may be. ".repeat(40)).unwrap();
    assert!(matches!(SqliteStore::open(folder.file()), Err(OpenError::NotADatabase { .. })));

    let error = SqliteStore::open(folder.path().join("none/timeouts.db")).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
    assert!(error.to_string().contains("none/timeouts.db"));
}

#[test]
fn a_damaged_file_is_refused_with_the_findings() {
    for (damage, finding) in [
        ("drop index timer_timeout_by_key", "the index timer_timeout_by_key is missing"),
        ("alter table timer_timeout drop column max_lateness", "the column max_lateness of timer_timeout is missing"),
        ("delete from timer_meta", "timer_meta does not have one row with a version"),
        ("update timer_meta set version = 'one'", "timer_meta does not have one row with a version"),
    ] {
        let folder = Folder::new();
        drop(SqliteStore::open(folder.file()).unwrap());
        rusqlite::Connection::open(folder.file()).unwrap().execute_batch(damage).unwrap();
        let error = SqliteStore::open(folder.file()).unwrap_err();
        assert!(matches!(&error, OpenError::Damaged { findings, .. } if findings == finding), "{error}");
    }
}

#[test]
fn a_database_without_a_file_is_refused() {
    let folder = Folder::new();
    let (timer, _ran) = open(&folder);
    for path in ["", ":memory:"] {
        let error = SqliteStore::open(path).unwrap_err();
        assert!(matches!(&error, OpenError::NotDurable { setting, .. } if setting.contains("not the path of a file")));
        assert!(timer.backup(path).wait().unwrap_err().to_string().contains(&error.to_string()), "{error}");
    }
}

#[test]
fn one_function_can_open_a_store_and_a_timer() {
    fn open(path: &std::path::Path) -> Result<DurableTimer, Error> {
        DurableTimer::builder().open(SqliteStore::open(path)?).wait()
    }
    let folder = Folder::new();
    let error = open(&folder.file().join("no folder")).unwrap_err();
    assert!(matches!(error, Error::Open(_)), "{error}");
}
