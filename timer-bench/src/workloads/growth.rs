//! The cost of operations with N timers pending, each a CPU time of the process in nanoseconds.
//!
//! The timers are due in 10 minutes to an hour. `cpu-ns/pair` schedules one more of 30 s and
//! cancels the oldest of a thousand such. `cpu-ns/cancel` cancels random ones, `cpu-ns/earlier`
//! moves random ones to half of their former delays, and others take their places, which is not
//! timed. `cpu-ns/expiry` is the cost of a timer that is due, of N that are due at 1,000 in each
//! millisecond, so that a wake-up serves as many of them at each N.
//!
//! The floor is a load from memory whose address depends on the previous load, among N cache lines
//! in random order (`ns/load`).

use crate::caller::{Counter, run_here};
use crate::out::{Run, Stop};
use crate::peer::{Peer, TICK};
use crate::process::{cpu, until_quiet};
use crate::random::{SEED, SplitMix64};
use crate::row::short;
use std::collections::VecDeque;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

/// Half of the shortest and of the longest delay. A delay is twice a number of this range, and an
/// earlier one is such a number.
const HALVES: std::ops::Range<Duration> = Duration::from_secs(300)..Duration::from_secs(1_800);
const WINDOW: usize = 1_000;
const SHORT: Duration = Duration::from_secs(30);

/// The numbers of pending timers.
const SIZES: &[usize] = &[1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The number of operations in a row that are timed.
const BATCH: usize = 500;

pub(crate) fn run<P: Peer>(run: &Run) -> Result<(), Stop> {
    for n in run.settings.sizes(SIZES) {
        let params = format!("n={}", short(n));
        let peer = P::build(TICK);
        run_here(&peer, |caller| pending(run, caller, n, &params));
        until_quiet(Duration::from_secs(5));
        run_here(&peer, |caller| expiry(run, caller, n, &params));
        peer.stop();
    }
    Ok(())
}

/// Measures the operations on N pending timers.
fn pending<P: Peer>(run: &Run, caller: &mut P, n: usize, params: &str) {
    let count = run.settings.number("count", 200_000);
    let work = P::work(Counter::leak());
    let mut random = SplitMix64::delays(0);
    let mut half = || random.duration(&HALVES);
    let mut handles: Vec<_> = (0..n)
        .map(|_| {
            let half = half();
            (half, caller.schedule(2 * half, &work))
        })
        .collect();
    until_quiet(Duration::from_secs(5));

    let mut window: VecDeque<_> = (0..WINDOW).map(|_| caller.schedule(SHORT, &work)).collect();
    let before = cpu();
    for _ in 0..count {
        window.push_back(caller.schedule(SHORT, &work));
        if let Some(oldest) = window.pop_front() {
            caller.cancel(oldest);
        }
    }
    run.each(params, cpu() - before, count, "cpu-ns/pair");
    for handle in window {
        caller.cancel(handle);
    }

    let mut order: Vec<usize> = (0..n).collect();
    SplitMix64::new(SEED + 1).shuffle(&mut order);
    let batches = || order.chunks(BATCH.min(n)).cycle().take(count.div_ceil(BATCH.min(n)));
    // The handles are taken out of their places before, so that the cache misses of that do not
    // count.
    let mut take = |caller: &mut P, at: usize| {
        let half = half();
        std::mem::replace(&mut handles[at], (half, caller.schedule(2 * half, &work)))
    };
    let mut used = Duration::ZERO;
    for batch in batches() {
        let taken: Vec<_> = batch.iter().map(|at| take(caller, *at).1).collect();
        let before = cpu();
        for handle in taken {
            caller.cancel(handle);
        }
        used += cpu() - before;
    }
    run.each(params, used, batches().map(<[usize]>::len).sum(), "cpu-ns/cancel");

    used = Duration::ZERO;
    for batch in batches().filter(|_| P::NO_RESET.is_none()) {
        let mut taken: Vec<_> = batch.iter().map(|at| take(caller, *at)).collect();
        let before = cpu();
        for (half, handle) in &mut taken {
            caller.reset(handle, *half);
        }
        used += cpu() - before;
        for (_, handle) in taken {
            caller.cancel(handle);
        }
    }
    match P::NO_RESET {
        Some(reason) => run.unavailable(params, "cpu-ns/earlier", reason),
        None => run.each(params, used, batches().map(<[usize]>::len).sum(), "cpu-ns/earlier"),
    }
    for (_, handle) in handles {
        caller.cancel(handle);
    }
}

/// Measures the expiry of N timers. Scheduling them must take less than the time before the first
/// is due.
fn expiry<P: Peer>(run: &Run, caller: &mut P, n: usize, params: &str) {
    let counter = Counter::leak();
    let work = P::work(counter);
    let mut random = SplitMix64::delays(0);
    let span = Duration::ZERO..Duration::from_micros(n as u64);
    let first = Instant::now() + Duration::from_secs(1) + 2 * span.end;
    let handles: Vec<_> = (0..n)
        .map(|_| {
            let due = first + random.duration(&span);
            caller.schedule(due.saturating_duration_since(Instant::now()), &work)
        })
        .collect();
    let Some(left) = first.checked_duration_since(Instant::now()) else {
        return run.unavailable(params, "cpu-ns/expiry", "scheduling took too long");
    };
    let before = cpu();
    thread::sleep(left);
    let limit = first + span.end + Duration::from_secs(60);
    while counter.count() < n as u64 && Instant::now() < limit {
        thread::sleep(Duration::from_millis(1));
    }
    drop(handles);
    if counter.count() == n as u64 {
        run.each(params, cpu() - before, n, "cpu-ns/expiry");
    } else {
        run.unavailable(params, "cpu-ns/expiry", "not all have run within a minute");
    }
}

/// Measures the floor.
pub(crate) fn floor(run: &Run) -> Result<(), Stop> {
    let count = run.settings.number("count", 1_000_000);
    for n in run.settings.sizes(SIZES) {
        let mut lines: Vec<[usize; 8]> = (0..n).map(|at| [at; 8]).collect();
        // Sattolo's shuffle makes one cycle of all lines.
        let mut random = SplitMix64::new(SEED);
        for last in (1..n).rev() {
            let other = random.below(last as u64) as usize;
            let former = lines[last][0];
            lines[last][0] = lines[other][0];
            lines[other][0] = former;
        }
        let mut at = 0;
        let before = cpu();
        for _ in 0..count {
            at = lines[at][0];
        }
        let used = cpu() - before;
        black_box(at);
        run.each(&format!("n={}", short(n)), used, count, "ns/load");
    }
    Ok(())
}
