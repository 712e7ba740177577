//! The queue of calls: its bound, calls that are taken back, and stops that do not wait behind it.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use futures::executor::block_on;
use futures::future::join_all;
use timer_durable::{Due, DurableTimer, DurableTimerBuilder, Error, TimeoutId};

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

/// Opens a timer, and returns it with the future of a call that is being written.
fn blocked(
    set: impl FnOnce(DurableTimerBuilder) -> DurableTimerBuilder,
) -> (Blocked, impl Future<Output = Result<TimeoutId, Error>>) {
    let (store, batches) = (ScriptedStore::new(), Arc::<Mutex<Vec<usize>>>::default());
    let ((gate, opened), (writing, writes), (closing, closed)) = (channel(), channel(), channel());
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
    let timer = builder.open(store.closing_with(move || _ = closing.send(()))).unwrap();
    let first = timer.new_timeout_async(t(), LONG, &());
    writes.recv_timeout(LONG).unwrap();
    (Blocked { timer, reads, batches, gate, closed }, first)
}

#[test]
fn a_full_queue_lets_calls_wait() {
    let (Blocked { timer, batches, gate, .. }, first) = blocked(|builder| builder.max_queued_calls(3));
    let futures: Vec<_> = (0..8).map(|_| timer.new_timeout_async(t(), LONG, &())).collect();
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let timer = timer.clone();
            thread::spawn(move || timer.new_timeout(t(), LONG, &()).unwrap())
        })
        .collect();
    drop(gate);
    block_on(first).unwrap();
    assert!(block_on(join_all(futures)).iter().all(Result::is_ok));
    callers.into_iter().for_each(|caller| _ = caller.join().unwrap());
    assert_eq!(timer.counts().unwrap().pending, 17);
    let most = batches.lock().unwrap().iter().copied().max();
    assert!(most <= Some(3), "{most:?} calls had a place");
}

#[test]
fn a_full_queue_lets_reads_wait() {
    let (Blocked { timer, reads, gate, .. }, first) = blocked(|builder| builder.max_queued_calls(3));
    let futures: Vec<_> = (0..8).map(|_| timer.counts_async()).collect();
    // Calls do not wait behind the reads.
    let call = timer.new_timeout_async(t(), LONG, &());
    drop(gate);
    block_on(first).unwrap();
    block_on(call).unwrap();
    // ORDERING: Relaxed, as in `blocked`.
    assert_eq!(reads.load(Ordering::Relaxed), 3, "reads had a place");
    assert!(block_on(join_all(futures)).iter().all(Result::is_ok));
    assert_eq!(timer.counts().unwrap().pending, 2);
}

#[test]
fn a_dropped_future_takes_its_call_back() {
    let (Blocked { timer, reads, gate, .. }, first) = blocked(|builder| builder.max_queued_calls(3));
    // Two of them have a place, and the others wait in line.
    let futures: Vec<_> = (0..200).map(|_| timer.new_timeout_async(t(), LONG, &())).collect();
    drop(futures);
    drop((0..200).map(|_| timer.counts_async()).collect::<Vec<_>>());
    drop(gate);
    block_on(first).unwrap();
    timer.new_timeout(t(), LONG, &()).unwrap();
    assert_eq!(timer.counts().unwrap().pending, 2);
    // ORDERING: Relaxed, as in `blocked`.
    assert_eq!(reads.load(Ordering::Relaxed), 1, "nobody waits for the others");
}

#[test]
fn a_future_that_is_dropped_during_its_commit_takes_effect() {
    let (Blocked { timer, gate, .. }, first) = blocked(|builder| builder);
    drop(first);
    drop(gate);
    assert_eq!(timer.counts().unwrap().pending, 1);
}

#[test]
fn neither_a_stop_nor_the_last_drop_waits_behind_the_queue() {
    for drops in [false, true] {
        let (Blocked { timer, batches, gate, closed, .. }, first) =
            blocked(|builder| builder.max_batch(1).max_queued_calls(100));
        let futures: Vec<_> = (0..200).map(|_| timer.new_timeout_async(t(), LONG, &())).collect();
        let ending = thread::spawn(move || if drops { drop(timer) } else { _ = timer.stop(Duration::ZERO) });
        if !drops {
            ending.join().unwrap();
        }
        // After the first commit, each further one would take 10 ms.
        while closed.recv_timeout(Duration::from_millis(10)).is_err() {
            let _next = gate.send(());
        }
        let commits = batches.lock().unwrap().len();
        assert!(commits < 50, "{commits} commits came before the end");
        block_on(first).unwrap();
        let answers = block_on(join_all(futures));
        let refused = answers.iter().filter(|answer| matches!(answer, Err(Error::Stopped))).count();
        assert_eq!(refused, 201 - commits);
    }
}
