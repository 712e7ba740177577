//! Code of the user that panics on the keeper's thread, and a keeper that panics itself.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use timer_durable::{
    Call, CancelAnswer, Due, DurableTimer, Error, Fault, FaultPoint, MemoryStore, Retry, Schedule, StoreError,
};

use crate::scripted::ScriptedStore;
use crate::t;

const LONG: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

fn ok(_: &Due<()>) -> Result<(), Retry> {
    Ok(())
}

/// An error that cannot be printed.
#[derive(Debug)]
struct UnprintableError;

impl fmt::Display for UnprintableError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("unprintable")
    }
}

impl std::error::Error for UnprintableError {}

/// A value that panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn an_error_whose_text_panics_fails_its_work_only() {
    let (sender, answers) = channel();
    let handler = move |due: &Due<()>| {
        let answer = due.complete_with(|_| -> Result<(), _> { Err(Box::new(UnprintableError)) });
        sender.send(answer.wait()).map_err(Retry::new)
    };
    let (timer, mut driver) = DurableTimer::builder().topic(t(), handler).build_manual(MemoryStore::new()).unwrap();
    let failed = timer.transaction(|_| -> Result<(), _> { Err(Box::new(UnprintableError)) });
    assert!(matches!(failed.wait(), Err(Error::Work(_))));
    timer.new_timeout(t(), SECOND, &()).wait().unwrap();
    assert_eq!(driver.advance(SECOND), 1);
    assert!(matches!(answers.try_recv().unwrap(), Err(Error::Work(_))));
    assert_eq!(timer.counts().wait().unwrap().pending, 1, "an `Ok` does not end it");
}

#[test]
fn work_that_is_not_run_may_panic_in_its_drop() {
    let store = MemoryStore::new();
    let (sender, answers) = channel();
    let handler = move |due: &Due<()>| {
        due.complete_with(|_| Ok(())).wait()?;
        let bomb = Bomb;
        let answer = due.complete_with(move |_| {
            let _bomb = &bomb;
            Ok(())
        });
        sender.send(answer.wait()).map_err(Retry::new)
    };
    let (timer, mut driver) = DurableTimer::builder().topic(t(), handler).build_manual(store.clone()).unwrap();
    timer.new_timeout(t(), SECOND, &()).wait().unwrap();
    assert_eq!(driver.advance(SECOND), 1);
    assert!(matches!(answers.try_recv().unwrap(), Err(Error::Store(StoreError::Fenced))));
    let bomb = Bomb;
    store.inject_at(FaultPoint::Transact, Fault::FailBefore);
    let failed = timer.transaction(move |_| {
        let _bomb = &bomb;
        Ok(())
    });
    let failed = failed.wait();
    assert!(matches!(failed, Err(Error::Store(StoreError::Failed(_)))), "{failed:?}");
    timer.new_timeout(t(), SECOND, &()).wait().unwrap();
}

/// A waker that panics.
struct BadWaker(AtomicUsize);

impl Wake for BadWaker {
    fn wake(self: Arc<Self>) {
        // ORDERING: Relaxed, a count that the test reads after an answer of the keeper.
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("a waker");
    }
}

#[test]
fn a_waker_that_panics_harms_no_other_call() {
    let (entered, entries) = channel();
    let (release, released) = channel::<()>();
    let store = ScriptedStore::new();
    store.on_write(move |_| {
        entered.send(()).unwrap();
        let _ended = released.recv();
        None
    });
    let timer = DurableTimer::builder().topic(t(), ok).open(store).wait().unwrap();
    let waker = Arc::new(BadWaker(AtomicUsize::new(0)));
    let mut call = Box::pin(timer.new_timeout(t(), LONG, &()));
    entries.recv_timeout(LONG).unwrap();
    let polled = call.as_mut().poll(&mut Context::from_waker(&Waker::from(waker.clone())));
    assert!(polled.is_pending());
    drop(release);
    timer.new_timeout(t(), LONG, &()).wait().unwrap();
    // ORDERING: Relaxed, as above.
    assert_eq!(waker.0.load(Ordering::Relaxed), 1);
    assert!(matches!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(_))));
}

#[test]
fn a_keeper_that_panics_claims_nothing() {
    let (entered, entries) = channel();
    let (release, released) = channel::<()>();
    let (closed, closes) = channel();
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder()
        .topic(t(), ok)
        .open(store.closing_with(move || closed.send(()).unwrap()))
        .wait()
        .unwrap();
    timer.schedule(t(), Schedule::after(LONG).key("k"), &()).wait().unwrap();
    let mut writes = 0;
    store.on_write(move |_| {
        entered.send(()).unwrap();
        let _ended = released.recv();
        writes += 1;
        assert!(writes < 2, "a fault in the store");
        None
    });
    let first = timer.new_timeout(t(), LONG, &());
    entries.recv_timeout(LONG).unwrap();
    // The next batch has these calls, and the second reset waits for another one.
    let insert = timer.new_timeout(t(), LONG, &());
    let resets = [1, 2].map(|n| timer.reset(t::<()>(), "k", n * LONG));
    drop(release);
    first.wait().unwrap();
    let error = insert.wait().unwrap_err();
    assert!(matches!(&error, Error::OutcomeUnknown { id: Some(_), why } if why.contains("panicked")), "{error}");
    let [executing, held] = resets.map(|reset| reset.wait().unwrap_err());
    assert!(matches!(&executing, Error::OutcomeUnknown { id: None, .. }), "{executing}");
    assert!(matches!(&held, Error::Stopped), "it was not executed: {held}");
    closes.recv_timeout(LONG).unwrap();
    let report = timer.stop(LONG).wait().unwrap();
    assert_eq!((report.unfinished, report.released), (0, false));
    assert!(matches!(timer.cancel(t::<()>(), "k").wait(), Err(Error::Stopped)));

    // Another timer goes on with the store.
    store.on_write(|_| None);
    let timer = DurableTimer::builder().topic(t(), ok).open(store).wait().unwrap();
    assert_eq!(timer.cancel(t::<()>(), "k").wait().unwrap(), CancelAnswer::Cancelled);
}

#[test]
fn a_read_that_panics_claims_nothing() {
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder().topic(t(), ok).open(store.clone()).wait().unwrap();
    store.on_count(|| panic!("a fault in the store"));
    let error = timer.counts().wait().unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown { id: None, .. }), "{error}");
    assert!(matches!(timer.new_timeout(t(), LONG, &()).wait(), Err(Error::Stopped)));
}

#[test]
fn a_handler_whose_values_panic_in_their_drop_is_dropped() {
    let bomb = Bomb;
    let handler = move |_: &Due<()>| {
        let _bomb = &bomb;
        Ok(())
    };
    let timer = DurableTimer::builder().topic(t(), handler).open(ScriptedStore::new()).wait().unwrap();
    let report = timer.stop(LONG).wait().unwrap();
    assert_eq!((report.unfinished, report.released), (0, true));
}

#[test]
fn the_work_of_a_call_that_a_handler_drops_ends_its_attempt() {
    let (started, starts) = channel();
    let (dropped, drops) = channel();
    let (go, goes) = channel::<()>();
    let goes = Mutex::new(goes);
    let handler = move |due: &Due<String>| {
        started.send(due.attempt()).map_err(Retry::new)?;
        if due.attempt() == 1 {
            goes.lock().unwrap().recv().map_err(Retry::new)?;
            drop(due.complete_with(|tx| Ok(tx.new_timeout(t(), 60 * SECOND, "next")?)));
            dropped.send(()).map_err(Retry::new)?;
        }
        Ok(())
    };
    let builder = DurableTimer::builder().topic(t().backoff(Duration::ZERO, Duration::ZERO), handler);
    let timer = builder.open(MemoryStore::new()).wait().unwrap();
    timer.new_timeout(t(), Duration::ZERO, &"a".to_owned()).wait().unwrap();
    assert_eq!(starts.recv(), Ok(1));
    let (entered, enters) = channel();
    let (release, released) = channel::<()>();
    // The keeper runs no other work meanwhile.
    let busy = timer.transaction(move |_| {
        entered.send(())?;
        Ok(released.recv()?)
    });
    enters.recv().unwrap();
    go.send(()).unwrap();
    drops.recv().unwrap();
    release.send(()).unwrap();
    busy.wait().unwrap();
    assert_eq!(timer.counts().wait().unwrap().pending, 1, "the timeout of the work");
    assert_eq!((timer.stats().done, starts.try_recv().ok()), (1, None));
}

#[test]
fn a_function_that_panics_on_its_own_thread_is_an_answer() {
    let call: Call<()> = Call::on_thread(|| panic!("broken"));
    assert!(matches!(call.wait(), Err(Error::OutcomeUnknown { id: None, .. })));
}
