//! W18: delay queues that one task owns, on a runtime of one thread.
//!
//! `cpu-ns/insert` is an insertion into a queue that grows to N items of 10 s to an hour.
//! `cpu-ns/insert+remove` inserts an item of 30 s and removes the oldest of a thousand.
//! `cpu-ns/reset` moves an item to 30 s from now, where the items were due in 10 s to an hour
//! (`to=earlier`) or in 20 to 21 s (`to=later`). `cpu-ns/expired` is the cost of an item that comes
//! out, of N items that are due within a second, or all in one instant. These are CPU times of the
//! process, so they include the thread of the timer.
//!
//! While a thousand items are due in each second, `wake-ups/s` is the number of times that the task
//! waits until it is woken, and `switches/s` the number of times that the threads of the process
//! sleep.
//!
//! Memory is measured by the program that counts its allocations. All its figures are divided by
//! the N items that were inserted. `B-heap` is the memory when all are in, `B-left` after all but a
//! thousand were removed, and `B-left-empty` after the last item was removed, too.

use super::out::Out;
use super::{HeapSize, Stop};
use crate::peers::queues::Queue;
use crate::process::{cpu, voluntary_switches};
use crate::random::{SEED, SplitMix64, seconds};
use crate::row::short;
use crate::settings::Settings;
use std::future::poll_fn;
use std::hint::black_box;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

/// The number of items in a small queue.
const SMALL_QUEUE: usize = 1_000;

/// The number of times that operations on a small queue are repeated.
const REPETITIONS: usize = 1_000_000;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs a future on a runtime of one thread, which is not the first thread of the process.
fn block_on<F: Future<Output = ()>>(make: impl FnOnce() -> F + Send) -> Result<(), Stop> {
    let runtime = Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| Stop::Unavailable(format!("no runtime: {error}")))?;
    thread::scope(|scope| match scope.spawn(|| runtime.block_on(make())).join() {
        Ok(()) => Ok(()),
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

pub(super) fn run<Q: Queue>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    let n = settings.number("n", 1_000_000, 100_000);
    let per_second = settings.number("ms", 5_000, 1_000);
    block_on(|| async {
        let many = format!("n={}", short(n));
        let (queue, keys, inserting) = full::<Q>(n, &seconds(10, 3600));
        out.each(&many, inserting, n, "cpu-ns/insert");
        reset(queue, keys, n, &format!("{many},to=earlier"), out);
        let (queue, keys, _) = full::<Q>(n, &seconds(20, 21));
        reset(queue, keys, n, &format!("{many},to=later"), out);

        let few = format!("n={}", short(SMALL_QUEUE));
        let (queue, keys, _) = full::<Q>(SMALL_QUEUE, &seconds(20, 21));
        reset(queue, keys, REPETITIONS, &format!("{few},to=later"), out);
        pairs::<Q>(&few, out);

        expire::<Q>(n, 1..1_000_000_000, &format!("{many},within=1s"), out).await;
        expire::<Q>(n, 0..1, &format!("{many},within=0"), out).await;
        wait::<Q>(per_second, out).await;
    })
}

/// Returns a queue with `n` items, their keys, and the time that inserting took.
fn full<Q: Queue>(n: usize, delays: &Range<Duration>) -> (Q, Vec<Q::Key>, Duration) {
    let mut random = SplitMix64::delays(0);
    let delays: Vec<Duration> = (0..n).map(|_| random.duration(delays)).collect();
    let (mut queue, mut keys) = (Q::new(), Vec::with_capacity(n));
    let before = cpu();
    keys.extend((0..).zip(delays).map(|(item, delay)| queue.insert(item, delay)));
    (queue, keys, cpu() - before)
}

/// Moves `times` items in random order.
fn reset<Q: Queue>(mut queue: Q, mut keys: Vec<Q::Key>, times: usize, params: &str, out: &Out) {
    SplitMix64::new(SEED + 1).shuffle(&mut keys);
    let before = cpu();
    for key in keys.iter().cycle().take(times) {
        queue.reset(*key, TIMEOUT);
    }
    out.each(params, cpu() - before, times, "cpu-ns/reset");
}

/// Inserts one item and removes the oldest, in turns.
fn pairs<Q: Queue>(params: &str, out: &Out) {
    let mut queue = Q::new();
    let mut keys: Vec<Q::Key> = (0..SMALL_QUEUE as u64).map(|item| queue.insert(item, TIMEOUT)).collect();
    let before = cpu();
    for at in 0..REPETITIONS {
        let newest = queue.insert(at as u64, TIMEOUT);
        let oldest = std::mem::replace(&mut keys[at % SMALL_QUEUE], newest);
        black_box(queue.remove(oldest));
    }
    out.each(params, cpu() - before, REPETITIONS, "cpu-ns/insert+remove");
}

/// Takes `n` items that are due within a range of nanoseconds, which begins after all are inserted.
async fn expire<Q: Queue>(n: usize, due: Range<u64>, params: &str, out: &Out) {
    // Inserting takes less than this.
    let begin = Instant::now() + Duration::from_secs(1) + Duration::from_micros(n as u64) / 2;
    let (mut queue, mut random) = (Q::new(), SplitMix64::delays(0));
    for item in 0..n as u64 {
        let deadline = begin + Duration::from_nanos(due.start + random.below(due.end - due.start));
        queue.insert(item, deadline.saturating_duration_since(Instant::now()));
    }
    let (before, mut sum) = (cpu(), 0_u64);
    while let Some(item) = poll_fn(|context| queue.poll(context)).await {
        sum = sum.wrapping_add(item);
    }
    out.each(params, cpu() - before, n, "cpu-ns/expired");
    // Each item came out once.
    assert_eq!(sum, n as u64 * (n as u64).saturating_sub(1) / 2);
}

/// Takes items of which one is due in each millisecond.
async fn wait<Q: Queue>(milliseconds: usize, out: &Out) {
    let mut queue = Q::new();
    for item in 0..milliseconds as u64 {
        queue.insert(item, Duration::from_millis(100 + item));
    }
    let (mut polls, begin) = (0_u64, Instant::now());
    let switches = voluntary_switches();
    while poll_fn(|context| {
        polls += 1;
        queue.poll(context)
    })
    .await
    .is_some()
    {
        // Only a poll that is not ready waits for a wake-up.
        polls -= 1;
    }
    let (seconds, params) = (begin.elapsed().as_secs_f64(), "n=1k/s");
    out.figure(params, polls as f64 / seconds, "wake-ups/s");
    match switches.zip(voluntary_switches()) {
        Some((before, after)) => out.figure(params, after.saturating_sub(before) as f64 / seconds, "switches/s"),
        None => out.unavailable(params, "switches/s", "known on Linux only"),
    }
}

pub(super) fn memory<Q: Queue>(settings: &Settings, heap: HeapSize, out: &Out) -> Result<(), Stop> {
    let n = settings.number("n", 1_000_000, 100_000);
    let params = format!("n={}", short(n));
    block_on(|| async {
        let mut keys: Vec<Q::Key> = Vec::with_capacity(n);
        let (mut random, delays) = (SplitMix64::delays(0), seconds(10, 3600));
        let mut queue = Q::new();
        let before = heap();
        keys.extend((0..n as u64).map(|item| queue.insert(item, random.duration(&delays))));
        let per_item = |n: usize| heap().saturating_sub(before) as f64 / n.max(1) as f64;
        out.figure(&params, per_item(n), "B-heap");
        SplitMix64::new(SEED + 1).shuffle(&mut keys);
        for key in keys.drain(SMALL_QUEUE.min(n)..) {
            queue.remove(key);
        }
        out.figure(&params, per_item(n), "B-left");
        for key in keys.drain(..) {
            queue.remove(key);
        }
        out.figure(&params, per_item(n), "B-left-empty");
    })
}
