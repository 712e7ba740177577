//! W16: limits. Each of 64 tasks repeatedly waits, for at most 30 s, for a future that is ready at
//! the second poll. It uses the timer's own call (`fresh`), or one sleep beside the future that is
//! reset each time (`reset`). The workload runs for a second with 1, 2 and 4 workers.
//!
//! `ns/operation` is wall time / rounds of all loops, and `cpu-ns/operation` is the CPU time of the
//! process.

use super::super::Stop;
use super::super::out::Out;
use super::runtime;
use crate::peers::tasks::{Tasks, is_first};
use crate::process;
use crate::settings::Settings;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, yield_now};

const TASKS: usize = 64;
const LIMIT: Duration = Duration::from_secs(30);

/// The source of the limit of each round.
#[derive(Clone, Copy)]
enum Limits {
    Fresh,
    Reset,
}

pub(in super::super) fn run<P: Tasks>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    let span = Duration::from_millis(settings.number("ms", 1_000, 200) as u64);
    for workers in settings.list("threads", &[1, 2, 4], &[1, 2, 4]) {
        for limits in [Limits::Fresh, Limits::Reset] {
            once::<P>(workers, limits, span, out)?;
        }
    }
    Ok(())
}

fn once<P: Tasks>(workers: usize, limits: Limits, span: Duration, out: &Out) -> Result<(), Stop> {
    let name = match limits {
        Limits::Fresh => "fresh",
        Limits::Reset => "reset",
    };
    let params = format!("workers={workers},{name}");
    let runtime = runtime(workers)?;
    let peer = P::build();
    let over = Arc::new(AtomicBool::new(false));
    let (begin, before) = (Instant::now(), process::cpu());
    let spawn = |_| -> JoinHandle<u64> {
        let (peer, over) = (peer.clone(), over.clone());
        match limits {
            Limits::Fresh => runtime.spawn(each_with_its_own(peer, over)),
            Limits::Reset => runtime.spawn(all_beside_one(peer, over)),
        }
    };
    let tasks: Vec<_> = (0..TASKS).map(spawn).collect();
    thread::sleep(span);
    // ORDERING: Relaxed, because the flag guards no other data.
    over.store(true, Ordering::Relaxed);
    let (wall, cpu) = (begin.elapsed(), process::cpu() - before);
    let counts = runtime.block_on(async {
        let mut counts = 0;
        for task in tasks {
            counts += task.await.map_err(|error| Stop::Unavailable(format!("a task failed: {error}")))?;
        }
        Ok(counts)
    })?;
    out.each(&params, wall, counts as usize, "ns/operation");
    out.each(&params, cpu, counts as usize, "cpu-ns/operation");
    Ok(())
}

fn is_over(over: &AtomicBool) -> bool {
    // ORDERING: Relaxed, because the flag guards no other data.
    over.load(Ordering::Relaxed)
}

async fn each_with_its_own<P: Tasks>(peer: P, over: Arc<AtomicBool>) -> u64 {
    let mut count = 0;
    while !is_over(&over) {
        count += u64::from(peer.is_in_time(LIMIT, yield_now()).await);
    }
    count
}

async fn all_beside_one<P: Tasks>(peer: P, over: Arc<AtomicBool>) -> u64 {
    let mut sleep = pin!(peer.sleep(LIMIT));
    let mut count = 0;
    while !is_over(&over) {
        P::reset(sleep.as_mut(), LIMIT);
        count += u64::from(is_first(pin!(yield_now()), sleep.as_mut()).await);
    }
    count
}
