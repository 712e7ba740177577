//! A million sleeping tasks on a runtime with two workers are due within a span of 200 ms.
//!
//! `ms-late` is the time from the first due instant to the last wake-up of a task, minus the span.
//! `cpu-s` is the CPU time of the process in that time.

use crate::out::{Run, Stop, millis};
use crate::peer::Sleeps;
use crate::process;
use crate::random::SplitMix64;
use crate::row::short;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

const SPAN: Duration = Duration::from_millis(200);
const WORKERS: usize = 2;

/// The numbers of tasks that fell asleep and woke. The last of each records the time.
#[derive(Default)]
struct Counts {
    asleep: AtomicUsize,
    awake: AtomicUsize,
    last: OnceLock<(Instant, Duration)>,
}

pub(crate) fn run<P: Sleeps>(run: &Run) -> Result<(), Stop> {
    let n = run.settings.number("n", 1_000_000);
    let lead = run.settings.millis("lead-ms", 4_000);
    let runtime = P::runtime(WORKERS).map_err(Stop::because)?;
    let peer = P::build();
    let counts = Arc::<Counts>::default();
    let mut random = SplitMix64::delays(0);
    let first_due = Instant::now() + lead;
    for _ in 0..n {
        let peer = peer.clone();
        let counts = counts.clone();
        let due = first_due + random.duration(&(Duration::ZERO..SPAN));
        runtime.spawn(async move {
            let sleep = peer.sleep(due.saturating_duration_since(Instant::now()));
            // ORDERING: Relaxed, because these are counts. The cell publishes the time of the last.
            counts.asleep.fetch_add(1, Ordering::Relaxed);
            _ = sleep.await;
            if counts.awake.fetch_add(1, Ordering::Relaxed) + 1 == n {
                counts.last.get_or_init(|| (Instant::now(), process::cpu()));
            }
        });
    }
    thread::sleep(first_due.saturating_duration_since(Instant::now()));
    let before = process::cpu();
    // ORDERING: Relaxed, because this is only a count.
    let asleep = counts.asleep.load(Ordering::Relaxed);
    let limit = first_due + SPAN + Duration::from_secs(30);
    while asleep == n && counts.last.get().is_none() && Instant::now() < limit {
        thread::sleep(Duration::from_millis(2));
    }
    runtime.shutdown_background();
    let Some((last, cpu)) = counts.last.get() else {
        return Err(Stop::because(format!("{asleep} of {n} fell asleep in time, and not all of them woke")));
    };
    let params = format!("n={}", short(n));
    run.figure(&params, millis(last.saturating_duration_since(first_due)) - millis(SPAN), "ms-late");
    run.figure(&params, cpu.saturating_sub(before).as_secs_f64(), "cpu-s");
    Ok(())
}
