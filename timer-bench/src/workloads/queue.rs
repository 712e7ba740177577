//! A delay queue that one task owns, on a runtime of one thread.
//!
//! `cpu-ns/insert` is an insertion into a queue that grows to N items of 10 s to an hour, and
//! `cpu-ns/reset` moves each of them to 30 s from now. `cpu-ns/pair` inserts an item of 30 s and
//! removes the oldest of a thousand. `cpu-ns/expired` is the cost of an item that comes out, of N
//! items that are due within a second. These are CPU times of the process, so they include the
//! thread of the timer.

use crate::out::{Run, Stop};
use crate::peer::Queue;
use crate::process::cpu;
use crate::random::{SEED, SplitMix64, seconds};
use crate::row::short;
use std::future::poll_fn;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(30);
const WINDOW: usize = 1_000;

pub(crate) fn run<Q: Queue>(run: &Run) -> Result<(), Stop> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.map_err(Stop::because)?.block_on(all::<Q>(run));
    Ok(())
}

async fn all<Q: Queue>(run: &Run) {
    let n = run.settings.number("n", 1_000_000);
    let params = format!("n={}", short(n));
    let (mut queue, mut keys, mut random, delays) =
        (Q::new(), Vec::with_capacity(n), SplitMix64::delays(0), seconds(10, 3600));
    let before = cpu();
    keys.extend((0..n as u64).map(|item| queue.insert(item, random.duration(&delays))));
    run.each(&params, cpu() - before, n, "cpu-ns/insert");
    SplitMix64::new(SEED + 1).shuffle(&mut keys);
    let before = cpu();
    keys.iter().for_each(|key| queue.reset(*key, TIMEOUT));
    run.each(&params, cpu() - before, n, "cpu-ns/reset");
    drop(queue);

    let mut queue = Q::new();
    let mut keys: Vec<Q::Key> = (0..WINDOW as u64).map(|item| queue.insert(item, TIMEOUT)).collect();
    let before = cpu();
    for at in 0..n {
        let newest = queue.insert(at as u64, TIMEOUT);
        queue.remove(std::mem::replace(&mut keys[at % WINDOW], newest));
    }
    run.each(&params, cpu() - before, n, "cpu-ns/pair");

    // Inserting takes less than this.
    let begin = Instant::now() + Duration::from_secs(1) + Duration::from_micros(n as u64) / 2;
    let mut queue = Q::new();
    let mut random = SplitMix64::delays(0);
    for item in 0..n as u64 {
        let deadline = begin + random.duration(&seconds(0, 1));
        queue.insert(item, deadline.saturating_duration_since(Instant::now()));
    }
    let before = cpu();
    let mut count = 0;
    while poll_fn(|context| queue.poll(context)).await.is_some() {
        count += 1;
    }
    assert_eq!(count, n, "each item comes out once");
    run.each(&params, cpu() - before, n, "cpu-ns/expired");
}
