//! Durable timers on the clock of a timer in memory.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use futures::FutureExt;
use timer_durable::{Done, Due, DurableTimer, Error, MemoryStore, Schedule, StoreError, TimeoutId, Topic};
use timer_durable_tests::one_clock::{DAY, SECOND, check, manual};

use crate::scripted::ScriptedStore;
use crate::t;

#[test]
fn timers_on_one_clock_keep_the_order_of_time() {
    let stores = [(); 32].map(|()| MemoryStore::new());
    check(|file| stores[file as usize].clone());
}

#[test]
fn equal_due_times_run_in_the_order_of_their_ids() {
    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let (_memory, mut driver, clock) = manual();
    let runs = Arc::new(Mutex::new(Vec::new()));
    let mut builder = DurableTimer::builder();
    for name in NAMES {
        let runs = runs.clone();
        let note = move |due: &Due<String>| {
            runs.lock().unwrap().push(due.payload().clone());
            Ok(())
        };
        // An executor of its own makes no difference.
        builder = builder.topic(Topic::new(name), note).executor(timer_executor::ImmediateExecutor);
    }
    let timer = builder.open_on(MemoryStore::new(), &clock).unwrap();
    let explicit = Schedule::after(DAY).id(TimeoutId::new());
    timer.schedule(Topic::<String>::new("a"), explicit, "explicit").wait().unwrap();
    NAMES.iter().for_each(|name| _ = timer.new_timeout(Topic::<String>::new(name), DAY, *name).wait().unwrap());
    driver.advance(DAY);
    assert_eq!(runs.lock().unwrap().join(" "), "a b c d e f g h explicit");
}

#[test]
fn a_cancelled_timeout_does_not_move_the_time() {
    let (memory, driver, clock) = manual();
    let timer = DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())).open_on(MemoryStore::new(), &clock).unwrap();
    let [first, second] = [DAY, 2 * DAY].map(|delay| timer.new_timeout(t(), delay, &()).wait().unwrap());
    assert_eq!(driver.next_deadline(), Some(memory.now() + DAY));
    timer.cancel_by_id(first).wait().unwrap();
    assert_eq!(memory.pending_timeouts(), 1);
    assert_eq!(driver.next_deadline(), Some(memory.now() + 2 * DAY));
    timer.cancel_by_id(second).wait().unwrap();
    assert_eq!(driver.next_deadline(), None);
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

#[test]
fn an_async_handler_ends_at_its_limit_or_when_it_is_ready() {
    const NEXT: Topic<()> = Topic::new("next");
    let (memory, mut driver, clock) = manual();
    let tasks = Arc::new(Mutex::new(Vec::<Task>::new()));
    let is_ready = Arc::new(Mutex::new(false));
    let spawned = tasks.clone();
    let ready = is_ready.clone();
    let timer = DurableTimer::builder()
        .spawn(move |task| spawned.lock().unwrap().push(task))
        .topic_async(t().backoff_by(|_| SECOND), move |_: Due<()>| {
            let ready = ready.clone();
            async move {
                poll_fn(|_| if *ready.lock().unwrap() { Poll::Ready(()) } else { Poll::Pending }).await;
                Ok(Done::then(NEXT, Schedule::after(DAY), &()))
            }
        })
        .time_limit(10 * SECOND)
        .topic(NEXT, |_: &Due<()>| Ok(()))
        .open_on(MemoryStore::new(), &clock)
        .unwrap();
    timer.new_timeout(t::<()>(), SECOND, &()).wait().unwrap();
    driver.advance(SECOND);
    assert_eq!(driver.next_deadline(), Some(memory.now() + 10 * SECOND), "the limit");
    driver.advance(10 * SECOND);
    assert_eq!(timer.stats().timed_out, 1);
    driver.advance(SECOND);
    *is_ready.lock().unwrap() = true;
    for mut task in std::mem::take(&mut *tasks.lock().unwrap()) {
        (&mut task).now_or_never().expect("the handler is cut off or ready");
    }
    assert_eq!(timer.stats().done, 1, "its end is written without another call");
    assert_eq!(driver.next_deadline(), Some(memory.now() + DAY));
}

#[test]
fn the_clock_of_another_cannot_be_moved() {
    let error = DurableTimer::builder().build_manual(ScriptedStore::new()).unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Unsupported("virtual time"))), "{error}");
}
