//! Another program that holds the write lock of the file.

use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Waker};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use timer_durable::{CancelAnswer, Due, DurableTimer, Error, Retry, Schedule, StoreError};
use timer_durable_sqlite::SqliteStore;

use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

const LONG: Duration = Duration::from_secs(60);
const MAX_WAIT: Duration = Duration::from_secs(5);

type Call = fn(&DurableTimer) -> Result<(), Error>;

/// Opens a timer whose handler ends its timeout in a transaction.
fn open(folder: &Folder) -> (DurableTimer, Receiver<String>) {
    let store = SqliteStore::open(folder.file()).unwrap();
    let sqlite = store.handle();
    let (sender, ran) = channel();
    let handler = move |due: &Due<String>| {
        sqlite.complete(due, |tx| Ok(tx.connection().execute("create table if not exists mine(x)", ())?)).wait()?;
        sender.send(due.payload().clone()).map_err(Retry::new)
    };
    (DurableTimer::builder().topic(t(), handler).open(store).wait().unwrap(), ran)
}

/// Takes the lock in another thread `times`, each time for `hold`, or until the sender is dropped.
/// Returns when the lock is taken.
fn lock(folder: &Folder, times: usize, hold: Duration) -> (Sender<()>, JoinHandle<()>) {
    let (sender, until) = channel::<()>();
    let (locked, is_locked) = channel();
    let other = rusqlite::Connection::open(folder.file()).unwrap();
    other.busy_timeout(LONG).unwrap();
    let thread = spawn(move || {
        for _ in 0..times {
            other.execute_batch("begin immediate").unwrap();
            _ = locked.send(());
            _ = until.recv_timeout(hold);
            other.execute_batch("rollback").unwrap();
        }
    });
    is_locked.recv().unwrap();
    (sender, thread)
}

#[test]
fn each_call_and_each_due_timeout_waits_for_the_lock() {
    let folder = Folder::new();
    let (timer, ran) = open(&folder);
    timer.new_timeout(t(), Duration::from_millis(100), "due").wait().unwrap();
    timer.schedule(t::<String>(), Schedule::after(LONG).key("moved"), "moved").wait().unwrap();
    let (_sender, thread) = lock(&folder, 3, Duration::from_millis(300));
    let mut dropped = timer.new_timeout(t(), Duration::ZERO, "dropped");
    assert!(Pin::new(&mut dropped).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(dropped);
    std::thread::scope(|scope| {
        let calls: [Call; 6] = [
            |timer| timer.new_timeout(t(), Duration::ZERO, "new").wait().map(drop),
            |timer| timer.reset(t::<String>(), "moved", Duration::ZERO).wait().map(drop),
            |timer| timer.schedule_many([t().with(Schedule::after(Duration::ZERO), "many")]).wait().map(drop),
            |timer| timer.transaction(|tx| Ok(tx.new_timeout(t(), Duration::ZERO, "work").map(drop)?)).wait(),
            |timer| timer.pause(timer_durable::Topic::<()>::new("other")).wait(),
            |timer| timer.cancel(t::<String>(), "none").wait().map(drop),
        ];
        let timer = &timer;
        let calls = calls.map(|call| scope.spawn(move || call(timer)));
        for call in calls {
            call.join().unwrap().unwrap();
        }
    });
    let mut payloads = [(); 6].map(|()| ran.recv_timeout(LONG).unwrap());
    payloads.sort_unstable();
    assert_eq!(payloads, ["dropped", "due", "many", "moved", "new", "work"]);
    thread.join().unwrap();
    assert_eq!(timer.stop(LONG).wait().unwrap().unfinished, 0);
    assert_eq!((timer.stats().done, timer.stats().store_errors), (6, 0));
}

#[test]
fn a_call_fails_when_the_lock_is_held_for_five_seconds_and_no_sooner() {
    let folder = Folder::new();
    let (timer, ran) = open(&folder);
    timer.new_timeout(t(), Duration::from_millis(100), "due").wait().unwrap();
    let (sender, thread) = lock(&folder, 1, LONG);
    std::thread::scope(|scope| {
        let calls: [Call; 4] = [
            |timer| timer.new_timeout(t(), Duration::ZERO, "new").wait().map(drop),
            |timer| timer.schedule_many([t().with(Schedule::after(Duration::ZERO), "many")]).wait().map(drop),
            |timer| timer.transaction(|tx| Ok(tx.new_timeout(t(), Duration::ZERO, "work").map(drop)?)).wait(),
            |timer| timer.pause(t::<String>()).wait(),
        ];
        let begun = Instant::now();
        let timer = &timer;
        let calls = calls.map(|call| scope.spawn(move || (call(timer), begun.elapsed())));
        for call in calls {
            let (result, took) = call.join().unwrap();
            assert!(matches!(result, Err(Error::Store(StoreError::Busy))), "{result:?}");
            assert!(took >= MAX_WAIT, "it took {took:?}");
        }
    });
    assert!(ran.try_recv().is_err(), "nothing begins");
    drop(sender);
    assert_eq!(ran.recv_timeout(LONG), Ok("due".to_owned()));
    thread.join().unwrap();
    assert_eq!(timer.counts().wait().unwrap().pending, 0);
}

#[test]
fn a_stop_keeps_its_limit_beside_a_lock() {
    let folder = Folder::new();
    let (timer, _ran) = open(&folder);
    let (sender, thread) = lock(&folder, 1, LONG);
    let waiting = timer.clone();
    let call = spawn(move || waiting.new_timeout(t(), Duration::ZERO, "new"));
    std::thread::park_timeout(Duration::from_millis(50));
    let limit = Duration::from_millis(200);
    let begun = Instant::now();
    let report = timer.stop(limit).wait().unwrap();
    assert!(report.released && begun.elapsed() < MAX_WAIT, "{report:?} after {:?}", begun.elapsed());
    assert!(matches!(call.join().unwrap().wait(), Err(Error::Stopped)));
    drop(sender);
    thread.join().unwrap();
}

#[test]
fn calls_about_one_key_fail_together_while_the_store_is_locked() {
    let folder = Folder::new();
    let (timer, _ran) = open(&folder);
    let (sender, thread) = lock(&folder, 1, LONG);
    let begun = Instant::now();
    let calls: Vec<_> = (0..100).map(|_| timer.reset(t::<String>(), "hot", LONG)).collect();
    for call in calls {
        let result = call.wait();
        assert!(matches!(result, Err(Error::Store(StoreError::Busy))), "{result:?}");
        assert!(begun.elapsed() < MAX_WAIT + MAX_WAIT / 2, "it took {:?}", begun.elapsed());
    }
    drop(sender);
    thread.join().unwrap();
}

#[test]
fn a_call_about_one_of_many_keys_comes_after_them() {
    let folder = Folder::new();
    let (timer, _ran) = open(&folder);
    let (sender, thread) = lock(&folder, 1, LONG);
    let many = timer.schedule_many([t().with(Schedule::after(LONG).key("key"), "many")]);
    let cancel = timer.cancel(t::<String>(), "key");
    std::thread::park_timeout(Duration::from_millis(100));
    drop(sender);
    many.wait().unwrap();
    assert_eq!(cancel.wait().unwrap(), CancelAnswer::Cancelled);
    thread.join().unwrap();
}
