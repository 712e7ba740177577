//! Each of 64 tasks repeatedly waits, for at most 30 s, for a future that is ready at the second
//! poll. It uses the timer's own call (`fresh`), or one sleep that is reset before each poll of the
//! future (`reset`).
//!
//! `ns/wait` is wall time / all waits. `cpu-ns/wait` is the CPU time of the process until its
//! threads are at rest, because some timers leave work to them.

use crate::out::{Run, Stop};
use crate::peer::Sleeps;
use crate::process;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};
use tokio::task::yield_now;

const TASKS: usize = 64;
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn run<P: Sleeps>(run: &Run) -> Result<(), Stop> {
    let span = run.settings.millis("ms", 1_000);
    for workers in run.settings.list("threads", &[1, 2]) {
        for (is_fresh, name) in [(true, "fresh"), (false, "reset")] {
            let runtime = P::runtime(workers).map_err(Stop::because)?;
            let peer = P::build();
            let over = Arc::new(AtomicBool::new(false));
            let begin = Instant::now();
            let before = process::cpu();
            let spawn = |_| {
                let peer = peer.clone();
                let over = over.clone();
                runtime.spawn(async move { if is_fresh { fresh(peer, &over).await } else { reset(peer, &over).await } })
            };
            let tasks: Vec<_> = (0..TASKS).map(spawn).collect();
            thread::sleep(span);
            // ORDERING: Relaxed, because the flag guards no other data.
            over.store(true, Ordering::Relaxed);
            let wall = begin.elapsed();
            let mut count = 0;
            for task in tasks {
                count += runtime.block_on(task).map_err(Stop::because)?;
            }
            process::until_quiet(Duration::from_secs(5));
            let cpu = process::cpu() - before;
            let params = format!("workers={workers},{name}");
            run.each(&params, wall, count, "ns/wait");
            run.each(&params, cpu, count, "cpu-ns/wait");
        }
    }
    Ok(())
}

fn is_over(over: &AtomicBool) -> bool {
    // ORDERING: Relaxed, because the flag guards no other data.
    over.load(Ordering::Relaxed)
}

async fn fresh<P: Sleeps>(peer: P, over: &AtomicBool) -> usize {
    let mut count = 0;
    while !is_over(over) {
        peer.limit(LIMIT, yield_now()).await;
        count += 1;
    }
    count
}

async fn reset<P: Sleeps>(peer: P, over: &AtomicBool) -> usize {
    let mut sleep = pin!(peer.sleep(LIMIT));
    let mut count = 0;
    while !is_over(over) {
        P::reset(sleep.as_mut(), LIMIT);
        let mut future = pin!(yield_now());
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => sleep.as_mut().poll(context).map(drop),
        })
        .await;
        count += 1;
    }
    count
}
