//! W17: sleepers. A million sleeping tasks are due within a span of 200 ms that begins 4 s after
//! the first was spawned, on a runtime with two workers.
//!
//! `ms-late` is the time from the first due instant to the last wake-up of a task, minus the span.
//! `cpu-s` is the CPU time of the process meanwhile. `B-heap` is the heap memory of a task for its
//! sleep, that is, the difference between a million tasks that sleep and a million tasks that wait
//! for nothing.

use super::super::out::{Out, millis};
use super::super::{HeapSize, Stop};
use super::runtime;
use crate::peers::tasks::Tasks;
use crate::process;
use crate::random::SplitMix64;
use crate::row::short;
use crate::settings::Settings;
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

const SPAN: Duration = Duration::from_millis(200);
const WORKERS: usize = 2;
const FAR: Duration = Duration::from_secs(3600);

/// The numbers of tasks that fell asleep and woke. The last of each records the time.
#[derive(Default)]
struct Counts {
    asleep: AtomicU64,
    awake: AtomicU64,
    last: OnceLock<(Instant, Duration)>,
}

pub(in super::super) fn run<P: Tasks>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    let n = settings.number("n", 1_000_000, 100_000);
    let lead = Duration::from_millis(settings.number("lead-ms", 4_000, 700) as u64);
    let params = format!("n={}", short(n));
    let (runtime, peer, counts) = (runtime(WORKERS)?, P::build(), Arc::<Counts>::default());
    let mut random = SplitMix64::delays(0);
    let first_due = Instant::now() + lead;
    for _ in 0..n {
        let (peer, counts, due) = (peer.clone(), counts.clone(), first_due + random.duration(&(Duration::ZERO..SPAN)));
        runtime.spawn(async move {
            let sleep = peer.sleep(due.saturating_duration_since(Instant::now()));
            // ORDERING: Relaxed, because these are counts. The lock of the cell publishes the time
            // of the last task.
            counts.asleep.fetch_add(1, Ordering::Relaxed);
            sleep.await;
            if counts.awake.fetch_add(1, Ordering::Relaxed) + 1 == n as u64 {
                counts.last.get_or_init(|| (Instant::now(), process::cpu()));
            }
        });
    }
    thread::sleep(first_due.saturating_duration_since(Instant::now()));
    let before = process::cpu();
    // ORDERING: Relaxed, because this is only a count.
    let asleep = counts.asleep.load(Ordering::Relaxed);
    if asleep < n as u64 {
        runtime.shutdown_background();
        return Err(Stop::Unavailable(format!("only {asleep} of {n} were asleep after {lead:?}")));
    }
    let limit = first_due + SPAN + Duration::from_secs(30);
    while counts.last.get().is_none() && Instant::now() < limit {
        thread::sleep(Duration::from_millis(2));
    }
    match counts.last.get() {
        Some((last, cpu)) => {
            out.figure(&params, millis(last.saturating_duration_since(first_due)) - millis(SPAN), "ms-late");
            out.figure(&params, cpu.saturating_sub(before).as_secs_f64(), "cpu-s");
        }
        None => out.unavailable(&params, "ms-late", "not all woke within 30 s"),
    }
    runtime.shutdown_background();
    Ok(())
}

pub(in super::super) fn memory<P: Tasks>(settings: &Settings, heap: HeapSize, out: &Out) -> Result<(), Stop> {
    let n = settings.number("n", 1_000_000, 100_000);
    let peer = P::build();
    let waiting = held(n, heap, pending::<()>)?;
    let sleeping = held(n, heap, || {
        let peer = peer.clone();
        async move { peer.sleep(FAR).await }
    })?;
    let each = (sleeping as f64 - waiting as f64) / n.max(1) as f64;
    out.figure(&format!("n={}", short(n)), each, "B-heap");
    Ok(())
}

/// Returns the bytes on the heap for `n` waiting tasks.
fn held<F: Future<Output = ()> + Send + 'static>(
    n: usize,
    heap: HeapSize,
    wait: impl Fn() -> F,
) -> Result<usize, Stop> {
    let (runtime, counts) = (runtime(WORKERS)?, Arc::<Counts>::default());
    let before = heap();
    for _ in 0..n {
        let (counts, wait) = (counts.clone(), wait());
        runtime.spawn(async move {
            // ORDERING: Relaxed, because this is only a count.
            counts.asleep.fetch_add(1, Ordering::Relaxed);
            wait.await;
        });
    }
    // ORDERING: Relaxed, because this is only a count.
    while counts.asleep.load(Ordering::Relaxed) < n as u64 {
        thread::sleep(Duration::from_millis(1));
    }
    // The last tasks have counted themselves and are about to wait.
    process::until_quiet(Duration::from_secs(3));
    let held = heap().saturating_sub(before);
    drop(runtime);
    Ok(held)
}
