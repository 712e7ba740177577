//! Another program that holds the write lock of the file.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Waker};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use timer_durable::{CancelAnswer, Due, DurableTimer, Error, IfPending, Retry, StoreError};
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
        sqlite.complete(due, |tx| Ok(tx.connection().execute("create table if not exists mine(x)", ())?))?;
        sender.send(due.payload().clone()).map_err(Retry::new)
    };
    (DurableTimer::builder().topic(t(), handler).open(store).unwrap(), ran)
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
    timer.new_timeout(t(), Duration::from_millis(100), "due").unwrap();
    timer.new_timeout_keyed(t::<String>(), "moved", LONG, "moved", IfPending::Keep).unwrap();
    let (_sender, thread) = lock(&folder, 3, Duration::from_millis(300));
    // A caller that gives up has scheduled nothing.
    let mut given_up = Box::pin(timer.timeout_builder(t(), "given up").schedule_async());
    assert!(given_up.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    std::thread::park_timeout(Duration::from_millis(50));
    drop(given_up);
    std::thread::scope(|scope| {
        let calls: [Call; 6] = [
            |timer| timer.new_timeout(t(), Duration::ZERO, "new").map(drop),
            |timer| timer.reset(t::<String>(), "moved", Duration::ZERO).map(drop),
            |timer| timer.schedule_many([timer.timeout_builder(t(), "many")]).map(drop),
            |timer| timer.transaction(|tx| Ok(tx.new_timeout(t(), Duration::ZERO, "work").map(drop)?)),
            |timer| timer.pause(timer_durable::Topic::<()>::new("other")),
            |timer| timer.cancel(t::<String>(), "none").map(drop),
        ];
        let timer = &timer;
        let calls = calls.map(|call| scope.spawn(move || call(timer)));
        for call in calls {
            call.join().unwrap().unwrap();
        }
    });
    let mut payloads = [(); 5].map(|()| ran.recv_timeout(LONG).unwrap());
    payloads.sort_unstable();
    assert_eq!(payloads, ["due", "many", "moved", "new", "work"]);
    thread.join().unwrap();
    assert_eq!(timer.stop(LONG).unwrap().unfinished, 0);
    assert_eq!((timer.stats().done, timer.stats().store_errors), (5, 0));
}

#[test]
fn a_call_fails_when_the_lock_is_held_for_five_seconds_and_no_sooner() {
    let folder = Folder::new();
    let (timer, ran) = open(&folder);
    timer.new_timeout(t(), Duration::from_millis(100), "due").unwrap();
    let (sender, thread) = lock(&folder, 1, LONG);
    std::thread::scope(|scope| {
        let calls: [Call; 4] = [
            |timer| timer.new_timeout(t(), Duration::ZERO, "new").map(drop),
            |timer| timer.schedule_many([timer.timeout_builder(t(), "many")]).map(drop),
            |timer| timer.transaction(|tx| Ok(tx.new_timeout(t(), Duration::ZERO, "work").map(drop)?)),
            |timer| timer.pause(t::<String>()),
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
    assert_eq!(timer.counts().unwrap().pending, 0);
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
    let report = timer.stop(limit).unwrap();
    assert!(report.released && begun.elapsed() < MAX_WAIT, "{report:?} after {:?}", begun.elapsed());
    assert!(matches!(call.join().unwrap(), Err(Error::Stopped)));
    drop(sender);
    thread.join().unwrap();
}

#[test]
fn calls_about_one_key_fail_together_while_the_store_is_locked() {
    let folder = Folder::new();
    let (timer, _ran) = open(&folder);
    let (sender, thread) = lock(&folder, 1, LONG);
    let begun = Instant::now();
    let calls: Vec<_> = (0..100).map(|_| timer.reset_async(t::<String>(), "hot", LONG)).collect();
    for call in calls {
        let result = futures::executor::block_on(call);
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
    let many = timer.schedule_many_async([timer.timeout_builder(t(), "many").key("key").after(LONG)]);
    let cancel = timer.cancel_async(t::<String>(), "key");
    std::thread::park_timeout(Duration::from_millis(100));
    drop(sender);
    futures::executor::block_on(many).unwrap();
    assert_eq!(futures::executor::block_on(cancel).unwrap(), CancelAnswer::Cancelled);
    thread.join().unwrap();
}
