//! The driver's time, and calls by the user's work inside a turn of the keeper.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use futures::FutureExt;
use futures::executor::block_on;
use timer_durable::store::Store;
use timer_durable::{
    CancelAnswer, Due, DurableTimer, Error, IfPending, ManualDurableDriver, MemoryStore, RequeueAnswer, ResetAnswer,
    Retry, Schedule, ScheduleAnswer, Topic,
};

use crate::t;

const SECOND: Duration = Duration::from_secs(1);

fn ok(_: &Due<()>) -> Result<(), Retry> {
    Ok(())
}

#[test]
fn overdue_timeouts_begin_at_their_rate() {
    let store = MemoryStore::new();
    let (timer, driver) =
        DurableTimer::builder().topic_elsewhere(Topic::<()>::new("old")).build_manual(store.clone()).unwrap();
    (0..100).for_each(|_| _ = timer.new_timeout(Topic::new("old"), SECOND, &()).wait().unwrap());
    driver.crash();
    drop(timer);
    store.advance_clock(100 * SECOND);

    let lags = Arc::new(Mutex::new(Vec::new()));
    let log = lags.clone();
    let (timer, mut driver) = DurableTimer::builder()
        .overdue_rate(10)
        .topic(Topic::new("old"), ok)
        .topic(Topic::new("new"), move |due: &Due<()>| {
            log.lock().unwrap().push(due.lag());
            Ok(())
        })
        .build_manual(store)
        .unwrap();
    timer.new_timeout(Topic::new("new"), 5 * SECOND, &()).wait().unwrap();
    assert_eq!([0, 1, 1, 5].map(|seconds| driver.advance(seconds * SECOND)), [1, 10, 10, 51]);
    assert_eq!(driver.advance(1000 * SECOND), 29);
    assert_eq!(*lags.lock().unwrap(), [Duration::ZERO], "D13");
}

#[test]
fn a_future_addresses_a_timeout_by_its_id() {
    let (timer, mut driver) = DurableTimer::builder().topic(t(), ok).build_manual(MemoryStore::new()).unwrap();
    let [moved, cancelled] = [(); 2].map(|()| timer.new_timeout(t(), 60 * SECOND, &()).wait().unwrap());
    let reset = |id, delay| block_on(timer.reset_by_id(id, delay));
    assert_eq!(reset(moved, SECOND).unwrap(), ResetAnswer::Reset);
    assert_eq!(block_on(timer.cancel_by_id(cancelled)).unwrap(), CancelAnswer::Cancelled);
    assert_eq!(driver.advance(SECOND), 1);
    assert_eq!(reset(moved, SECOND).unwrap(), ResetAnswer::Unknown);
    assert_eq!(block_on(timer.cancel_by_id(cancelled)).unwrap(), CancelAnswer::Unknown);
    assert!(matches!(reset(moved, Duration::MAX), Err(Error::DelayTooLong { .. })));
    let again = timer.new_timeout(t(), SECOND, &()).wait().unwrap();
    drop(timer.cancel_by_id(again));
    assert_eq!(driver.advance(SECOND), 0, "a call on virtual time is written before its future is dropped");
}

#[test]
fn work_may_send_calls_of_its_timer() {
    let (ends, ended) = channel();
    thread::spawn(move || {
        let (timer, mut driver) = DurableTimer::builder().topic(t(), ok).build_manual(MemoryStore::new()).unwrap();
        let handle = timer.clone();
        let call = timer.transaction(move |_| Ok(handle.new_timeout(t(), SECOND, &()))).wait().unwrap();
        call.now_or_never().expect("the next turn has executed it").unwrap();
        ends.send(driver.advance(SECOND)).unwrap();
    });
    assert_eq!(ended.recv_timeout(10 * SECOND), Ok(1), "no call waits for the turn that it is in");
}

#[test]
fn work_of_an_attempt_may_send_calls_of_its_timer() {
    let slot = Arc::new(Mutex::new(None::<DurableTimer>));
    let (sender, calls) = channel();
    let own = slot.clone();
    let handler = move |due: &Due<()>| {
        let timer = own.lock().unwrap().take();
        let sender = sender.clone();
        due.complete_with(move |_| {
            // The handle of the first attempt is dropped here, too.
            let call = timer.map(|timer| timer.new_timeout(t(), SECOND, &()));
            Ok(sender.send(call).map_err(|_| "no test")?)
        })
        .wait()?;
        Ok(())
    };
    let (timer, mut driver) = DurableTimer::builder().topic(t(), handler).build_manual(MemoryStore::new()).unwrap();
    *slot.lock().unwrap() = Some(timer.clone());
    timer.new_timeout(t(), SECOND, &()).wait().unwrap();
    assert_eq!(driver.advance(SECOND), 1);
    let call = calls.try_recv().unwrap().unwrap();
    call.now_or_never().expect("the next turn has executed it").unwrap();
    assert_eq!(driver.advance(SECOND), 1);
}

#[test]
fn work_may_drop_the_last_handle() {
    let slot = Arc::new(Mutex::new(None::<DurableTimer>));
    let last = slot.clone();
    let handler = move |due: &Due<()>| {
        let timer = last.lock().unwrap().take();
        due.complete_with(move |_| {
            drop(timer);
            Ok(())
        })
        .wait()?;
        Ok(())
    };
    let store = MemoryStore::new();
    let (timer, mut driver) = DurableTimer::builder().topic(t(), handler).build_manual(store.clone()).unwrap();
    timer.new_timeout(t(), SECOND, &()).wait().unwrap();
    *slot.lock().unwrap() = Some(timer);
    assert_eq!(driver.advance(SECOND), 1);
    assert_eq!(timer_durable::store::Reader::counts(&mut store.clone()).unwrap().pending, 0, "D2");
}

#[test]
fn a_delay_does_not_count_the_time_of_earlier_work() {
    let store = MemoryStore::new();
    let ok = |_: &Due<()>| Ok(());
    let (timer, mut driver) = DurableTimer::builder().topic(t(), ok).build_manual(store.clone()).unwrap();
    let clock = store.clone();
    let handle = timer.clone();
    let ten = Duration::from_secs(10);
    let call = timer
        .transaction(move |_| {
            // The work takes ten seconds. At its end, another caller schedules.
            clock.advance_clock(ten);
            Ok(handle.new_timeout(t(), ten, &()))
        })
        .wait()
        .unwrap();
    assert_eq!(driver.run_due(), 0, "it was scheduled just now, for ten seconds later");
    call.wait().unwrap();
    assert_eq!(driver.advance(ten), 1);
}

/// Returns how many times a periodic timeout runs in 24 hours. The program starts `starts` times in
/// that time, and asks for the period each time.
fn runs_in_a_day(starts: u32, pending: Duration, period: Duration) -> usize {
    let store = MemoryStore::new();
    let day = 86_400 * SECOND;
    let mut ran = 0;
    let start = || DurableTimer::builder().topic(t(), ok).build_manual(store.clone()).unwrap();
    let call = |timer: &DurableTimer, delay, period| {
        let schedule = Schedule::after(delay).every(period).key("k").if_pending(IfPending::Update);
        timer.schedule(t(), schedule, &()).wait().unwrap()
    };
    call(&start().0, pending, pending);
    for _ in 0..starts {
        let (timer, mut driver) = start();
        call(&timer, Duration::ZERO, period);
        ran += driver.advance(day / starts);
    }
    ran
}

#[test]
fn an_update_takes_the_new_period_and_keeps_the_phase() {
    let hour = 3_600 * SECOND;
    let minute = 60 * SECOND;
    assert_eq!(runs_in_a_day(1, hour, 5 * minute), 288, "the new period counts from the start");
    assert_eq!(runs_in_a_day(48, hour, hour), 24, "a start each half hour puts no run off");
    assert_eq!(runs_in_a_day(1, hour, 2 * hour), 12, "the pending run stays, and the period follows it");
}

/// Runs an hourly timeout for 25 hours, of which the first 80 minutes are an outage. Returns the
/// runs that have succeeded.
fn runs_after_an_outage(failure: fn() -> Retry) -> (DurableTimer, ManualDurableDriver, usize) {
    const HOURLY: Topic<()> = Topic::new("hourly").backoff(SECOND, Duration::from_secs(60));
    let store = MemoryStore::new();
    let runs = Arc::new(Mutex::new(0));
    let clock = store.clone();
    let counted = runs.clone();
    let back = clock.now() + 80 * 60_000_000;
    let handler = move |_: &Due<()>| {
        if clock.now() < back {
            return Err(failure());
        }
        *counted.lock().unwrap() += 1;
        Ok(())
    };
    let (timer, mut driver) = DurableTimer::builder().topic(HOURLY, handler).build_manual(store).unwrap();
    let hour = 3_600 * SECOND;
    let start = || timer.schedule(HOURLY, Schedule::after(hour).key("k").every(hour), &()).wait().unwrap();
    let id = start().id();
    driver.advance(25 * hour);
    let ran = *runs.lock().unwrap();
    let again = start();
    assert_eq!(again == ScheduleAnswer::Kept(id), ran > 0, "the key belongs to the series");
    (timer, driver, ran)
}

#[test]
fn a_periodic_timeout_outlives_an_outage() {
    let (timer, mut driver, ran) = runs_after_an_outage(|| Retry::new("no bank"));
    let letters = timer.dead_letters(None, None, 9).wait().unwrap();
    assert_eq!((ran, letters.len(), timer.stats().buried), (24, 1, 1));
    let letter = letters[0].id;
    assert!(matches!(timer.requeue(letter).wait().unwrap(), RequeueAnswer::KeyTaken(_)), "the series has the key");
    assert_eq!(timer.requeue_without_key(letter).wait().unwrap(), RequeueAnswer::Requeued);
    assert_eq!((driver.run_due(), driver.advance(3_600 * SECOND)), (1, 1), "one extra run beside the series");
    let (timer, _driver, ran) = runs_after_an_outage(|| Retry::dead("no bank any more").end_series());
    assert_eq!((ran, timer.stats().buried), (0, 1));
}
