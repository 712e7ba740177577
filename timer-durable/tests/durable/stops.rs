//! Stopping a timer: by several callers, by its handlers, and on virtual time.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use timer_durable::{Due, DurableStopReport, DurableTimer, Error, MemoryStore, Retry, Topic};

use crate::scripted::ScriptedStore;
use crate::t;

const LONG: Duration = Duration::from_secs(60);

fn ok(_: &Due<()>) -> Result<(), Retry> {
    Ok(())
}

/// Stops a timer at once. A machine that is busy for longer than the patience of `stop` may need a
/// second call.
pub(crate) fn stop_now(timer: &DurableTimer) -> DurableStopReport {
    let report = timer.stop(Duration::ZERO).wait().unwrap();
    if report.released { report } else { timer.stop(LONG).wait().unwrap() }
}

/// Returns a timer whose handler is running, and a sender that lets it go when it is dropped.
fn running(store: ScriptedStore) -> (DurableTimer, Sender<()>) {
    let (started, starts) = channel();
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let blocks = move |_: &Due<()>| {
        started.send(())?;
        let _ended = released.lock().unwrap().recv();
        Ok(())
    };
    let timer = DurableTimer::builder().topic(t(), blocks).open(store).wait().unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    starts.recv_timeout(LONG).unwrap();
    (timer, release)
}

#[test]
fn every_stop_waits_until_the_store_is_closed() {
    let (closing, closes) = channel();
    let (release, released) = channel::<()>();
    let store = ScriptedStore::new().closing_with(move || {
        closing.send(()).unwrap();
        let _ended = released.recv();
    });
    let (timer, handler) = running(store);
    let (sender, reports) = channel();
    let stopping: Vec<_> = (0..2)
        .map(|_| {
            let timer = timer.clone();
            let sender = sender.clone();
            thread::spawn(move || sender.send(timer.stop(LONG).wait().unwrap()).unwrap())
        })
        .collect();
    // Both stops arrive while the handler runs.
    thread::park_timeout(Duration::from_millis(500));
    drop(handler);
    closes.recv_timeout(LONG).unwrap();
    assert!(reports.recv_timeout(Duration::from_millis(200)).is_err(), "the store is still open");
    drop(release);
    for _ in 0..2 {
        let report = reports.recv_timeout(LONG).unwrap();
        assert_eq!((report.unfinished, report.released), (0, true));
    }
    stopping.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_stop_after_the_end_returns_the_same_report() {
    let (timer, handler) = running(ScriptedStore::new());
    let reports = [stop_now(&timer), timer.stop(LONG).wait().unwrap()];
    assert_eq!(reports.map(|report| (report.unfinished, report.released)), [(1, true); 2]);
    drop(handler);
}

#[test]
fn nothing_keeps_a_stopped_timer_after_its_last_handle() {
    for round in 0..300 {
        let timer = DurableTimer::builder().open(MemoryStore::new()).wait().unwrap();
        let weak = timer.downgrade();
        timer.stop(LONG).wait().unwrap();
        drop(timer);
        assert!(weak.upgrade().is_none(), "round {round}");
    }
}

/// A place for the handle that a handler uses.
type Slot = Arc<Mutex<Option<DurableTimer>>>;

fn stop_in(slot: &Slot) -> Result<(), Retry> {
    let timer = slot.lock().unwrap().clone().ok_or_else(|| Retry::new("no timer"))?;
    match timer.stop(Duration::MAX).wait() {
        Err(Error::InHandler) => Ok(()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_handler_cannot_wait_for_its_own_end() {
    let slot = Slot::default();
    let [first, second] = [slot.clone(), slot.clone()];
    let (timer, mut driver) = DurableTimer::builder()
        .spawn(futures::executor::block_on)
        .topic(Topic::new("function"), move |_: &Due<()>| stop_in(&first))
        .topic_async(Topic::new("future"), move |_: Due<()>| {
            let slot = second.clone();
            async move { stop_in(&slot) }
        })
        .build_manual(MemoryStore::new())
        .unwrap();
    *slot.lock().unwrap() = Some(timer.clone());
    timer.new_timeout(Topic::new("function"), Duration::ZERO, &()).wait().unwrap();
    timer.new_timeout(Topic::new("future"), Duration::ZERO, &()).wait().unwrap();
    assert_eq!(driver.run_due(), 2);
    assert_eq!((timer.counts().wait().unwrap().pending, timer.stats().done), (0, 2));
    slot.lock().unwrap().take();
    assert_eq!(timer.stop(Duration::MAX).wait().unwrap().unfinished, 0, "the thread has left the handlers");
}

#[test]
fn a_handler_may_stop_another_timer() {
    let (other, _driver) = DurableTimer::builder().topic(t(), ok).build_manual(MemoryStore::new()).unwrap();
    let stops = move |_: &Due<()>| Ok(other.stop(Duration::MAX).wait().map(drop)?);
    let (timer, mut driver) = DurableTimer::builder().topic(t(), stops).build_manual(MemoryStore::new()).unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    assert_eq!((driver.run_due(), timer.stats().done), (1, 1));
}

#[test]
fn a_stop_on_virtual_time_does_not_wait_for_real_time() {
    let store = MemoryStore::new();
    let (timer, driver) = DurableTimer::builder().topic(t(), ok).build_manual(store.clone()).unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    assert_eq!(timer.stats().running, 1, "its handler waits for the driver");
    // A wait for the handler would last as long as the limit.
    let begun = Instant::now();
    let limit = LONG / 6;
    let report = timer.stop(limit).wait().unwrap();
    assert!(begun.elapsed() < limit, "`stop` waits for no real time");
    assert_eq!((report.unfinished, report.released), (1, true));
    drop((timer, driver));
    let (timer, mut driver) = DurableTimer::builder().topic(t(), ok).build_manual(store).unwrap();
    assert_eq!((driver.run_due(), timer.counts().wait().unwrap().pending), (1, 0), "D3");
}

#[test]
fn a_handler_may_own_the_last_handle() {
    for crashes in [true, false] {
        let slot = Slot::default();
        let owned = slot.clone();
        let handler = move |_: &Due<()>| {
            let _owned = &owned;
            Ok(())
        };
        let (timer, driver) = DurableTimer::builder().topic(t(), handler).build_manual(MemoryStore::new()).unwrap();
        *slot.lock().unwrap() = Some(timer.clone());
        drop(slot);
        if crashes {
            drop(timer);
            driver.crash();
        } else {
            assert!(timer.stop(LONG).wait().unwrap().released);
        }
    }
}
