//! Handlers that panic or block, on a real file and through the public API.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use timer_durable::{Due, DurableTimer, Retry, Topic};
use timer_durable_sqlite::SqliteStore;
use timer_durable_tests::folder::Folder;

const LONG: Duration = Duration::from_secs(60);

fn wait_for(is_true: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < LONG, "the condition did not come true");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

#[test]
fn a_panic_on_a_file_harms_its_timeout_only() {
    let folder = Folder::new();
    let (sender, ran) = channel();
    let timer = DurableTimer::builder()
        .topic(
            Topic::new("bad").attempts(2).backoff(Duration::ZERO, Duration::ZERO),
            |due: &Due<String>| -> Result<(), Retry> { panic!("{} is bad", due.payload()) },
        )
        .topic(Topic::new("good"), move |due: &Due<String>| Ok(sender.send(due.payload().clone())?))
        .open(SqliteStore::open(folder.file()).unwrap())
        .wait()
        .unwrap();
    timer.new_timeout(Topic::new("bad"), Duration::ZERO, &"a".to_owned()).wait().unwrap();
    timer.new_timeout(Topic::new("good"), Duration::ZERO, &"b".to_owned()).wait().unwrap();
    assert_eq!(ran.recv_timeout(LONG).unwrap(), "b", "D11");
    wait_for(|| timer.stats().buried == 1 && timer.stats().done == 1);
    let letters = timer.dead_letters(Some("bad"), None, 9).wait().unwrap();
    assert_eq!((letters[0].attempt, letters[0].payload.as_slice()), (2, b"a".as_slice()), "D11: its bytes are kept");
    assert!(letters[0].reason.contains("a is bad"), "{letters:?}");
    assert_eq!(timer.counts().wait().unwrap().pending, 0, "D2");
}

#[test]
fn a_blocked_handler_holds_up_no_other_one() {
    let folder = Folder::new();
    let (release, blocked): (Sender<()>, Receiver<()>) = channel();
    let blocked = Mutex::new(blocked);
    let (sender, ran) = channel();
    let blocks = sender.clone();
    let timer = DurableTimer::builder()
        .topic(Topic::new("blocks"), move |due: &Due<()>| {
            blocks.send(due.attempt())?;
            // The sender is dropped at the end of the test.
            let _ended = blocked.lock().unwrap().recv();
            Ok(())
        })
        .topic(Topic::new("runs"), move |due: &Due<()>| Ok(sender.send(due.attempt())?))
        .open(SqliteStore::open(folder.file()).unwrap())
        .wait()
        .unwrap();
    let id = timer.new_timeout(Topic::new("blocks"), Duration::ZERO, &()).wait().unwrap();
    ran.recv_timeout(LONG).unwrap();
    timer.new_timeout(Topic::new("runs"), Duration::ZERO, &()).wait().unwrap();
    ran.recv_timeout(LONG).unwrap();
    assert_eq!(timer.cancel_by_id(id).wait().unwrap(), timer_durable::CancelAnswer::Running, "D9");
    wait_for(|| timer.stats().done == 1);
    let report = timer.stop(Duration::ZERO).wait().unwrap();
    assert_eq!((report.unfinished, report.released), (1, true), "`stop` keeps its limit");
    drop(timer);

    let (sender, ran) = channel();
    let timer = DurableTimer::builder()
        .topic(Topic::new("blocks"), move |due: &Due<()>| Ok(sender.send(due.attempt())?))
        .open(SqliteStore::open(folder.file()).unwrap())
        .wait()
        .unwrap();
    assert_eq!(ran.recv_timeout(LONG).unwrap(), 2, "D3");
    drop((timer, release));
}

#[test]
fn blocking_handlers_that_hang_lose_their_places_and_threads() {
    const HANGING: usize = 12;
    let good_topic = Topic::<()>::new("good");
    let folder = Folder::new();
    let (open, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let late = Arc::new(AtomicUsize::new(0));
    let cancelled = late.clone();
    let good = channel();
    let (second, seconds) = channel();
    let hangs = move |due: &Due<()>| {
        if due.attempt() > 1 {
            return second.send(due.id()).map_err(Retry::new);
        }
        // The handlers return one after the other, when the test is over.
        let _open = gate.lock().unwrap().recv();
        cancelled.fetch_add(usize::from(due.is_cancelled()), Ordering::Relaxed);
        Ok(())
    };
    let topic = Topic::<()>::new("t").backoff(Duration::ZERO, Duration::ZERO);
    let timer = DurableTimer::builder()
        .max_running(8)
        .topic(topic, hangs)
        .time_limit(Duration::from_millis(50))
        .topic(good_topic, move |_: &Due<()>| good.0.send(()).map_err(Retry::new))
        .open(SqliteStore::open(folder.file()).unwrap())
        .wait()
        .unwrap();
    let schedule = |topic| _ = timer.new_timeout(topic, Duration::ZERO, &()).wait().unwrap();
    (0..HANGING).for_each(|_| schedule(topic));
    schedule(good_topic);
    good.1.recv_timeout(LONG).expect("another topic has a thread");
    let mut ids: Vec<_> = (0..HANGING).map(|_| seconds.recv_timeout(LONG).unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), HANGING, "each has one second attempt");
    assert_eq!(timer.stats().timed_out, HANGING as u64);
    drop(open);
    while late.load(Ordering::Relaxed) < HANGING {
        std::thread::yield_now();
    }
    timer.stop(LONG).wait().unwrap();
    assert_eq!(timer.stats().done, HANGING as u64 + 1, "no late answer ends anything");
}
