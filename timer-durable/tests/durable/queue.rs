//! The queue of calls: its bound, calls that are dropped, and stops that do not wait behind it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::executor::block_on;
use futures::future::{join_all, select};
use timer_durable::{
    Call, Due, DurableTimer, DurableTimerBuilder, Error, Filter, MemoryStore, Schedule, TimeoutId, Topic,
};

use crate::scripted::ScriptedStore;
use crate::t;

const LONG: Duration = Duration::from_secs(60);

/// A timer whose first commit waits for a test.
struct Blocked {
    timer: DurableTimer,
    /// The number of reads that the store has executed.
    reads: Arc<AtomicUsize>,
    /// The numbers of operations of the commits.
    batches: Arc<Mutex<Vec<usize>>>,
    /// Lets the commits go on when it is dropped.
    gate: Sender<()>,
    /// Told when the store is closed.
    closed: std::sync::mpsc::Receiver<()>,
}

/// Opens a timer, and returns it with a call that is being written.
fn blocked(set: impl FnOnce(DurableTimerBuilder) -> DurableTimerBuilder) -> (Blocked, Call<TimeoutId>) {
    let store = ScriptedStore::new();
    let batches = Arc::<Mutex<Vec<usize>>>::default();
    let (gate, opened) = channel();
    let (writing, writes) = channel();
    let (closing, closed) = channel();
    let noted = batches.clone();
    store.on_write(move |batch| {
        noted.lock().unwrap().push(batch.len());
        let _received = writing.send(());
        let _open = opened.recv();
        None
    });
    let reads = Arc::<AtomicUsize>::default();
    let counted = reads.clone();
    // ORDERING: Relaxed, the channels of the keeper order it.
    store.on_count(move || _ = counted.fetch_add(1, Ordering::Relaxed));
    let builder = set(DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())));
    let timer = builder.open(store.closing_with(move || _ = closing.send(()))).wait().unwrap();
    let first = timer.new_timeout(t(), LONG, &());
    writes.recv_timeout(LONG).unwrap();
    (Blocked { timer, reads, batches, gate, closed }, first)
}

#[test]
fn a_full_queue_refuses_calls() {
    let (Blocked { timer, batches, gate, .. }, first) = blocked(|builder| builder.max_queued_calls(3));
    let calls: Vec<_> = (0..8).map(|_| timer.new_timeout(t(), LONG, &())).collect();
    let refused = timer.cancel(t::<()>(), "k").wait().unwrap_err();
    assert!(matches!(refused, Error::QueueFull { allowed: 3 }), "{refused}");
    assert!(timer.cancel_many(t::<()>(), "").wait().is_err(), "it would wait, too");
    drop(gate);
    first.wait().unwrap();
    let accepted = calls.into_iter().filter_map(|call| call.wait().ok()).count();
    assert_eq!(accepted, 2, "they had a place");
    // Each answer frees a place before the caller sees it.
    (0..20).for_each(|_| _ = timer.new_timeout(t(), LONG, &()).wait().unwrap());
    assert_eq!(timer.counts().wait().unwrap().pending, 23);
    let most = batches.lock().unwrap().iter().copied().max();
    assert!(most <= Some(3), "{most:?} calls had a place");
}

#[test]
fn a_full_queue_refuses_reads() {
    let (Blocked { timer, reads, gate, .. }, first) = blocked(|builder| builder.max_queued_calls(3));
    let counts: Vec<_> = (0..8).map(|_| timer.counts()).collect();
    // Calls do not wait behind the reads.
    let call = timer.new_timeout(t(), LONG, &());
    drop(gate);
    first.wait().unwrap();
    call.wait().unwrap();
    let counted = counts.into_iter().filter_map(|count| count.wait().ok()).count();
    // ORDERING: Relaxed, as in `blocked`.
    assert_eq!((counted, reads.load(Ordering::Relaxed)), (3, 3), "they had a place");
    assert_eq!(timer.counts().wait().unwrap().pending, 2);
}

#[test]
fn a_step_sends_as_many_cancels_as_have_a_place() {
    for places in [1, 3] {
        let builder = DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(())).max_queued_calls(places);
        let timer = builder.open(MemoryStore::new()).wait().unwrap();
        for n in 0..20 {
            timer.schedule(t(), Schedule::after(LONG).key(format!("k{n}")), &()).wait().unwrap();
        }
        let keys: Vec<String> = (0..10).map(|n| format!("k{n}")).collect();
        assert_eq!(timer.cancel_keys(t::<()>(), keys).wait().unwrap().cancelled, 10);
        assert_eq!(timer.cancel_many(t::<()>(), "k").wait().unwrap().cancelled, 10);
        assert_eq!(timer.counts().wait().unwrap().pending, 0);
    }
}

/// Drops a call in one of three ways: unpolled, polled once, and after a `select`.
fn drop_call<T: Send + 'static>(way: usize, mut call: Call<T>) {
    match way {
        0 => drop(call),
        1 => drop((&mut call).now_or_never()),
        _ => drop(block_on(select(call, futures::future::ready(())))),
    }
}

/// Makes calls of all kinds and drops them.
fn drop_calls(way: usize, timer: &DurableTimer) {
    drop_call(way, timer.new_timeout(t(), LONG, &()));
    drop_call(way, timer.schedule(t(), Schedule::after(LONG).key("reset"), &()));
    drop_call(way, timer.reset(t::<()>(), "reset", 10 * LONG));
    drop_call(way, timer.schedule(t(), Schedule::after(LONG).key("cancelled"), &()));
    drop_call(way, timer.cancel(t::<()>(), "cancelled"));
    drop_call(way, timer.schedule_many([t().with(Schedule::after(LONG).key("many"), &())]));
    drop_call(way, timer.transaction(|tx| Ok(tx.new_timeout(t(), LONG, &())?)));
    drop_call(way, timer.pause(Topic::<()>::new("paused")));
}

fn assert_in_effect(way: usize, timer: &DurableTimer) {
    // Nobody waits for the calls, so their effect comes some time later.
    let until = |is_true: &dyn Fn() -> bool, what: &str| {
        let begun = Instant::now();
        while !is_true() {
            assert!(begun.elapsed() < Duration::from_secs(30), "{way}: {what}");
        }
    };
    until(&|| timer.paused_topics().wait().unwrap() == ["paused"], "the topic is paused");
    let is_moved = || {
        let pending = timer.get(t::<()>(), "reset").wait().unwrap();
        let first = timer.list(&Filter::new(), None, 1).wait().unwrap();
        pending.is_some_and(|pending| pending.deadline() > first[0].deadline() + 5 * LONG)
    };
    until(&is_moved, "a timeout is moved");
    let is_cancelled = || timer.get(t::<()>(), "cancelled").wait().unwrap().is_none();
    until(&|| is_cancelled() && timer.counts().wait().unwrap().pending == 4, "the others are pending");
    drop_call(way, timer.cancel_many(t::<()>(), ""));
    // Only the steps of the call cancel both timeouts with a key.
    until(&|| timer.counts().wait().unwrap().pending == 2, "two are cancelled");
    drop_call(way, timer.stop(LONG));
    assert!(timer.stop(LONG).wait().unwrap().released);
}

#[test]
fn a_call_that_is_dropped_takes_effect() {
    let builder = || DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(()));
    for way in 0..3 {
        let timer = builder().open(MemoryStore::new()).wait().unwrap();
        let (gate, opened) = channel::<()>();
        // The keeper executes no other call meanwhile.
        let busy = timer.transaction(move |_| Ok(_ = opened.recv()));
        drop_calls(way, &timer);
        drop(gate);
        busy.wait().unwrap();
        assert_in_effect(way, &timer);

        let (timer, _driver) = builder().build_manual(MemoryStore::new()).unwrap();
        drop_calls(way, &timer);
        assert_in_effect(way, &timer);
    }
}

#[test]
fn a_timer_whose_opening_was_dropped_stops() {
    for way in 0..3 {
        let (closing, closed) = channel();
        let store = ScriptedStore::new().closing_with(move || _ = closing.send(()));
        drop_call(way, DurableTimer::builder().open(store));
        closed.recv_timeout(LONG).unwrap();
    }
}

#[test]
fn neither_a_stop_nor_the_last_drop_waits_behind_the_queue() {
    for drops in [false, true] {
        let (Blocked { timer, batches, gate, closed, .. }, first) = blocked(|builder| builder.max_batch(1));
        let futures: Vec<_> = (0..200).map(|_| timer.new_timeout(t(), LONG, &())).collect();
        let ending = thread::spawn(move || if drops { drop(timer) } else { _ = timer.stop(Duration::ZERO).wait() });
        if !drops {
            ending.join().unwrap();
        }
        // After the first commit, each further one would take 10 ms.
        while closed.recv_timeout(Duration::from_millis(10)).is_err() {
            let _next = gate.send(());
        }
        let commits = batches.lock().unwrap().len();
        assert!(commits < 50, "{commits} commits came before the end");
        first.wait().unwrap();
        let answers = block_on(join_all(futures));
        let refused = answers.iter().filter(|answer| matches!(answer, Err(Error::Stopped))).count();
        assert_eq!(refused, 201 - commits);
    }
}
