//! The keeper's thread with a store that hangs, fails or refuses when the test says so.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use timer_durable::transaction::Operation;
use timer_durable::{
    CancelAnswer, Due, DurableTimer, Error, MemoryStore, ResetAnswer, Retry, Schedule, StoreError, Transaction,
};

use crate::scripted::ScriptedStore;
use crate::t;

const LONG: Duration = Duration::from_secs(60);

fn ok(_: &Due<String>) -> Result<(), Retry> {
    Ok(())
}

#[test]
fn an_outage_takes_no_turns_for_upkeep() {
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder().topic(t(), ok).open(store.clone()).wait().unwrap();
    let (tried, tries) = channel();
    store.on_rejoin(move || {
        tried.send(()).unwrap();
        Some(StoreError::Failed("the server is away".to_owned()))
    });
    store.on_write(|_| Some(StoreError::InDoubt("the connection is lost".to_owned())));
    store.set_next_upkeep(Instant::now());
    timer.new_timeout(t(), LONG, &"a".to_owned()).wait().unwrap_err();
    let before = timer.stats().turns;
    // The pauses between the attempts to join grow from 10 ms to 160 ms.
    (0..5).for_each(|_| tries.recv_timeout(LONG).unwrap());
    let turns = timer.stats().turns - before;
    assert!(turns < 20, "{turns} turns for 5 attempts to join");
}

#[test]
fn a_stop_without_limit_waits_for_handlers() {
    let (started, starts) = channel();
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let blocks = move |_: &Due<String>| {
        started.send(())?;
        released.lock().unwrap().recv()?;
        Ok(())
    };
    let timer = DurableTimer::builder().topic(t(), blocks).open(ScriptedStore::new()).wait().unwrap();
    timer.new_timeout(t(), Duration::ZERO, &"a".to_owned()).wait().unwrap();
    starts.recv_timeout(LONG).unwrap();
    let (report, reports) = channel();
    thread::spawn({
        let timer = timer.clone();
        move || report.send(timer.stop(Duration::MAX).wait().unwrap()).unwrap()
    });
    while !matches!(timer.new_timeout(t(), LONG, &"b".to_owned()).wait(), Err(Error::Stopped)) {
        thread::yield_now();
    }
    reports.recv_timeout(Duration::from_millis(100)).unwrap_err();
    release.send(()).unwrap();
    assert_eq!(reports.recv_timeout(LONG).unwrap().unfinished, 0);
}

#[test]
fn a_stop_keeps_its_limit_while_the_store_hangs() {
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder().topic(t(), ok).open(store.clone()).wait().unwrap();
    let (entered, entries) = channel();
    let (release, released) = channel::<()>();
    store.on_write(move |_| {
        entered.send(()).unwrap();
        let _ended = released.recv();
        None
    });
    let call = timer.new_timeout(t(), LONG, &"a".to_owned());
    entries.recv_timeout(LONG).unwrap();
    let (done, ended) = channel();
    thread::spawn(move || {
        let report = timer.stop(Duration::from_millis(100)).wait().unwrap();
        // The last handle does not wait for the keeper either.
        drop(timer);
        done.send(report).unwrap();
    });
    let report = ended.recv_timeout(LONG).unwrap();
    assert!(!report.released, "{report:?}");
    drop(release);
    call.wait().unwrap();
}

#[test]
fn a_step_of_the_clock_is_noticed_without_load() {
    let store = ScriptedStore::new();
    store.set_max_sleep(Duration::from_millis(10));
    let (sender, ran) = channel();
    let record = move |due: &Due<String>| sender.send(due.payload().clone()).map_err(Retry::new);
    let timer = DurableTimer::builder().topic(t(), record).open(store.clone()).wait().unwrap();
    for _ in 0..3 {
        timer.new_timeout(t(), Duration::from_secs(3600), &"a".to_owned()).wait().unwrap();
        // The keeper answers a call before it sleeps, and on the way to its sleep it reads the
        // clock anyway. The step has to come after that.
        thread::park_timeout(Duration::from_millis(200));
        store.memory.step_clock(3_600_000_000);
        assert_eq!(ran.recv_timeout(LONG).unwrap(), "a");
    }
}

/// Lets the store refuse operations, either each by itself or the batches that have one. Returns
/// the counter of the refusals.
fn refuse(
    store: &ScriptedStore,
    is_alone: bool,
    is_bad: impl Fn(&Operation) -> bool + Send + 'static,
) -> Arc<AtomicUsize> {
    let refusals = Arc::<AtomicUsize>::default();
    let count = refusals.clone();
    let is_bad = move |operation: &Operation| {
        let is_bad = is_bad(operation);
        count.fetch_add(usize::from(is_bad), Ordering::Relaxed);
        is_bad
    };
    if is_alone {
        store.refuse(is_bad);
    } else {
        store.on_write(move |batch| batch.iter().any(&is_bad).then(|| StoreError::Refused("a trigger".to_owned())));
    }
    refusals
}

fn run_many(timer: &DurableTimer, ran: &mpsc::Receiver<String>) {
    for n in 0..200 {
        timer.schedule(t(), Schedule::after(Duration::ZERO).key(n.to_string()), &n.to_string()).wait().unwrap();
        assert_eq!(ran.recv_timeout(LONG).unwrap(), n.to_string());
    }
}

#[test]
fn a_refused_end_or_begin_waits_alone() {
    for (is_end, is_alone) in [(true, true), (true, false), (false, true), (false, false)] {
        let store = ScriptedStore::new();
        let (sender, ran) = channel();
        let record = move |due: &Due<String>| sender.send(due.payload().clone()).map_err(Retry::new);
        let timer = DurableTimer::builder().topic(t(), record).open(store.clone()).wait().unwrap();
        let bad = timer.new_timeout(t(), Duration::from_millis(1), &"bad".to_owned()).wait().unwrap();
        let refusals = refuse(&store, is_alone, move |operation| match operation {
            Operation::Done { id, .. } => is_end && *id == bad,
            Operation::Begin(id) => !is_end && *id == bad,
            _ => false,
        });
        store.memory.advance_clock(Duration::from_millis(1));
        if is_end {
            assert_eq!(ran.recv_timeout(LONG).unwrap(), "bad");
        }
        while refusals.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        run_many(&timer, &ran);
        let count = refusals.load(Ordering::Relaxed);
        assert!((1..50).contains(&count), "{count} refusals while 200 timeouts ran, ends: {is_end}");
        store.on_write(|_| None);
        store.refuse(|_| false);
        if !is_end {
            assert_eq!(ran.recv_timeout(LONG).unwrap(), "bad");
        }
        assert_eq!(timer.stop(LONG).wait().unwrap().unfinished, 0);
        assert_eq!(timer_durable::store::Reader::counts(&mut store.memory.clone()).unwrap().pending, 0);
    }
}

#[test]
fn a_batch_is_bounded_in_bytes() {
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder().topic(t(), ok).open(store.clone()).wait().unwrap();
    let (entered, entries) = channel();
    let (release, released) = channel::<()>();
    store.on_write(move |batch| {
        let length =
            |operation: &Operation| if let Operation::Insert(insert) = operation { insert.payload.len() } else { 0 };
        entered.send(batch.iter().map(length).sum::<usize>()).unwrap();
        let _ended = released.recv();
        None
    });
    let payload = "x".repeat(1 << 20);
    let calls: Vec<_> = (0..50).map(|_| timer.new_timeout(t(), LONG, &payload)).collect();
    drop(release);
    calls.into_iter().for_each(|call| _ = call.wait().unwrap());
    let largest = entries.try_iter().max().unwrap();
    assert!(largest <= 17 << 20, "a batch of {largest} bytes");
}

#[test]
fn calls_about_one_key_keep_their_order() {
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder().topic(t(), ok).open(store.clone()).wait().unwrap();
    let (entered, entries) = channel();
    let (release, released) = channel::<()>();
    store.on_write(move |batch| {
        let due = |operation: &Operation| if let Operation::Reset { due, .. } = operation { Some(*due) } else { None };
        entered.send(batch.iter().filter_map(due).collect::<Vec<_>>()).unwrap();
        let _ended = released.recv();
        None
    });
    let now = timer_durable::store::Store::now(&store);
    let first = timer.schedule(t(), Schedule::after(LONG).key("hot"), &"a".to_owned());
    let calls: Vec<_> = (0..100).map(|n| timer.reset(t::<()>(), "hot", Duration::from_micros(n))).collect();
    drop(release);
    first.wait().unwrap();
    calls.into_iter().for_each(|call| _ = call.wait().unwrap());
    let seen: Vec<i64> = entries.try_iter().flatten().map(|due| due - now).collect();
    assert_eq!(seen, (0..100).collect::<Vec<_>>());
}

#[test]
fn calls_wait_until_the_store_is_joined_again() {
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder().topic(t(), ok).open(store.clone()).wait().unwrap();
    let mut is_lost = Some(());
    store.on_write(move |_| is_lost.take().map(|()| StoreError::InDoubt("the connection is lost".to_owned())));
    let (tried, tries) = channel();
    let (release, released) = channel::<()>();
    let mut failures = 4;
    store.on_rejoin(move || {
        tried.send(()).unwrap();
        let _ended = released.recv();
        failures -= 1;
        (failures > 0).then(|| StoreError::Failed("the server is away".to_owned()))
    });
    timer.new_timeout(t(), LONG, &"lost".to_owned()).wait().unwrap_err();
    tries.recv_timeout(LONG).unwrap();
    // The first attempt to join is under way, and three of them fail.
    let first = timer.new_timeout(t(), LONG, &"a".to_owned());
    let keyed = timer.schedule(t(), Schedule::after(LONG).key("key"), &"b".to_owned());
    let reset = timer.reset(t::<()>(), "key", 2 * LONG);
    let many = timer.schedule_many([t().with(Schedule::after(LONG), &"c".to_owned())]);
    let cancel = timer.cancel(t::<()>(), "key");
    let pauser = timer.clone();
    let pause = thread::spawn(move || pauser.pause(t::<()>()));
    (0..3).for_each(|_| release.send(()).unwrap());
    (0..3).for_each(|_| tries.recv_timeout(LONG).unwrap());
    drop(release);
    first.wait().unwrap();
    keyed.wait().unwrap();
    assert_eq!(reset.wait().unwrap(), ResetAnswer::Reset);
    let many = many.wait();
    assert!(matches!(many, Err(Error::Store(StoreError::Unsupported(_)))), "it reaches the store: {many:?}");
    assert_eq!(cancel.wait().unwrap(), CancelAnswer::Cancelled, "calls keep their order");
    pause.join().unwrap().wait().unwrap();
}

#[test]
fn an_outage_fails_the_calls_about_locked_timeouts() {
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder().topic(t(), ok).open(store.clone()).wait().unwrap();
    let (entered, entries) = channel();
    store.on_rejoin(|| Some(StoreError::Failed("the server is away".to_owned())));
    store.on_write(move |batch| {
        if batch.iter().any(|operation| matches!(operation, Operation::Insert(insert) if insert.key.is_none())) {
            return Some(StoreError::InDoubt("the connection is lost".to_owned()));
        }
        let _ended = entered.send(());
        Some(StoreError::Locked)
    });
    let waiting = timer.schedule(t(), Schedule::after(LONG).key("locked"), &"a".to_owned());
    entries.recv_timeout(LONG).unwrap();
    timer.new_timeout(t(), LONG, &"b".to_owned()).wait().unwrap_err();
    let (sender, answer) = channel();
    thread::spawn(move || sender.send(waiting.wait()));
    let error = answer.recv_timeout(Duration::from_secs(20)).unwrap().unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Failed(_))), "{error}");
}

#[test]
fn timeouts_that_wait_for_a_busy_handler_are_due() {
    let (started, starts) = channel();
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let blocks = move |_: &Due<()>| {
        started.send(())?;
        // The sender is dropped at the end of the test.
        let _ended = released.lock().unwrap().recv();
        Ok(())
    };
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder().max_running(1).topic(t(), blocks).open(store.clone()).wait().unwrap();
    let due = || {
        // The figures are those of the last turn that has ended.
        (0..2).for_each(|_| _ = timer.new_timeout(t(), 2 * LONG, &()).wait().unwrap());
        timer.stats().due
    };
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    starts.recv_timeout(LONG).unwrap();
    let ids: Vec<_> = (0..10).map(|_| timer.new_timeout(t(), LONG, &()).wait().unwrap()).collect();
    assert_eq!(due(), 0);
    store.memory.advance_clock(LONG);
    assert_eq!(due(), 10);
    ids[..4].iter().for_each(|id| _ = timer.cancel_by_id(*id).wait().unwrap());
    assert_eq!(due(), 6);
    drop(release);
}

#[test]
fn work_of_the_user_does_not_hold_up_timeouts_for_ever() {
    let (sender, ran) = channel();
    let record = move |due: &Due<String>| sender.send(due.payload().clone()).map_err(Retry::new);
    let timer = DurableTimer::builder().topic(t(), record).open(MemoryStore::new()).wait().unwrap();
    let ends = Arc::new(AtomicBool::new(false));
    let visitors: Vec<_> = (0..4)
        .map(|_| {
            let timer = timer.clone();
            let ends = ends.clone();
            thread::spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    let work = |_: &mut Transaction<'_>| {
                        thread::park_timeout(Duration::from_millis(2));
                        Ok(())
                    };
                    timer.transaction(work).wait().unwrap();
                }
            })
        })
        .collect();
    thread::park_timeout(Duration::from_millis(100));
    let call = timer.new_timeout(t(), Duration::ZERO, &"a".to_owned());
    let result = ran.recv_timeout(LONG);
    ends.store(true, Ordering::Relaxed);
    visitors.into_iter().for_each(|visitor| visitor.join().unwrap());
    assert_eq!(result.unwrap(), "a");
    call.wait().unwrap();
}

#[test]
fn the_lease_is_renewed_between_two_long_visits() {
    let store = ScriptedStore::new();
    let upkeeps = Arc::new(AtomicUsize::new(0));
    let (entered, counting) = channel();
    let (release, gate) = channel::<()>();
    let before = upkeeps.clone();
    store.on_count(move || {
        // ORDERING: Relaxed, the keeper calls both functions.
        entered.send(before.load(Ordering::Relaxed)).unwrap();
        // Fails when the test lets the visits go.
        let _released = gate.recv();
    });
    store.on_upkeep(move || _ = upkeeps.fetch_add(1, Ordering::Relaxed));
    let timer = DurableTimer::builder().topic(t(), ok).open(store.clone()).wait().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| timer.counts().wait().unwrap());
        assert_eq!(counting.recv().unwrap(), 0);
        let (visits, visitors) = channel();
        for visits in [visits.clone(), visits] {
            let timer = &timer;
            scope.spawn(move || {
                visits.send(()).unwrap();
                timer.counts().wait().unwrap()
            });
        }
        // Both visits arrive while the first one lasts.
        (0..2).for_each(|_| visitors.recv().unwrap());
        thread::park_timeout(Duration::from_millis(100));
        store.set_next_upkeep(Instant::now());
        drop(release);
    });
    store.set_next_upkeep(Instant::now() + LONG);
    let [second, third] = [(); 2].map(|()| counting.recv().unwrap());
    assert!(0 < second && second < third, "{second} and {third} upkeeps came before the visits");
}
