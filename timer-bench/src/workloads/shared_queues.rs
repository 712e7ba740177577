//! W19: delay queues for several threads, with P producers and C consumers.
//!
//! `ns/item` is the wall time and `cpu-ns/item` the CPU time of an item that a producer inserts and
//! a consumer takes, with delays of up to 10 ms and producers at full speed. While one item is due
//! in each millisecond and all consumers wait, `switches/item` is the number of times that the
//! consumers sleep for each item. It is 1 if an item wakes one of them.

use super::Stop;
use super::out::Out;
use crate::peers::shared_queues::SharedQueue;
use crate::process::{cpu, voluntary_switches};
use crate::random::SplitMix64;
use crate::row::short;
use crate::settings::Settings;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The bound of the delays in nanoseconds.
const MAX_DELAY_NANOS: u64 = 10_000_000;

pub(super) fn run<Q: SharedQueue>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    let n = settings.number("n", 1_000_000, 100_000);
    for threads in settings.list("threads", &[1, 4], &[1, 4]) {
        flood::<Q>(n, threads.max(1), out);
    }
    wait::<Q>(settings.number("ms", 3_000, 1_000), 4, out);
    Ok(())
}

/// Starts `consumers` that take items until the queue is closed, and count them.
fn consume<Q: SharedQueue>(queue: &Q, consumers: usize) -> (Arc<AtomicUsize>, Vec<thread::JoinHandle<()>>) {
    let taken = Arc::new(AtomicUsize::new(0));
    let consumer = || {
        let (queue, taken) = (queue.clone(), taken.clone());
        thread::spawn(move || {
            while queue.take().is_some() {
                // ORDERING: Relaxed, a count on which nothing else depends.
                taken.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let consumers = (0..consumers).map(|_| consumer()).collect();
    (taken, consumers)
}

/// Waits until `n` items were taken.
fn wait_for(taken: &AtomicUsize, n: usize) {
    // ORDERING: Relaxed, as above.
    while taken.load(Ordering::Relaxed) < n {
        thread::sleep(Duration::from_millis(1));
    }
}

fn flood<Q: SharedQueue>(n: usize, threads: usize, out: &Out) {
    let params = format!("n={},P={threads},C={threads}", short(n));
    let queue = Q::new();
    let (taken, consumers) = consume(&queue, threads);
    let (begin, before) = (Instant::now(), cpu());
    let each = n / threads;
    let producer = |nth: usize| {
        let queue = queue.clone();
        thread::spawn(move || {
            let mut random = SplitMix64::delays(nth * each);
            for item in 0..each as u64 {
                queue.insert(item, Duration::from_nanos(random.below(MAX_DELAY_NANOS)));
            }
        })
    };
    let producers: Vec<_> = (0..threads).map(producer).collect();
    wait_for(&taken, each * threads);
    out.each(&params, begin.elapsed(), each * threads, "ns/item");
    out.each(&params, cpu() - before, each * threads, "cpu-ns/item");
    queue.close();
    for thread in producers.into_iter().chain(consumers) {
        let _: thread::Result<()> = thread.join();
    }
}

fn wait<Q: SharedQueue>(milliseconds: usize, threads: usize, out: &Out) {
    let params = format!("n=1k/s,C={threads}");
    let queue = Q::new();
    let (taken, consumers) = consume(&queue, threads);
    thread::sleep(Duration::from_millis(50));
    let switches = voluntary_switches();
    for item in 0..milliseconds as u64 {
        queue.insert(item, Duration::from_millis(50 + item));
    }
    wait_for(&taken, milliseconds);
    match switches.zip(voluntary_switches()) {
        Some((before, after)) => {
            out.figure(&params, after.saturating_sub(before) as f64 / milliseconds.max(1) as f64, "switches/item");
        }
        None => out.unavailable(&params, "switches/item", "known on Linux only"),
    }
    queue.close();
    for consumer in consumers {
        let _: thread::Result<()> = consumer.join();
    }
}
