//! Threads at full speed, more of them than CPUs. Each schedules timeouts of 1 to 3 ms and cancels
//! nine out of ten at once, or another percentage. After half of the time, a task may block the
//! timer for a while.
//!
//! - `ns/pair`: wall time, divided by the pairs of all threads.
//! - `us-p99.9`, `us-max`: quantiles of a call's wall time, of one call in 16.
//! - `ms-lag-max`: the worst lag before the stall. The lag is the time from deadline to run.
//! - `ms-lag-max-after`: the worst lag later than a second after the stall.
//! - `ms-lag-over-time`, `pending-over-time`: the worst of the quarter of a second until `t`.
//! - `early`: number of timeouts that ran before their deadline.
//! - `MiB-peak`: greatest growth of resident memory.

use crate::caller::run_here;
use crate::out::{Run, Stop, micros, quantile};
use crate::peer::{Job, Peer, TICK};
use crate::process;
use crate::random::SplitMix64;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const DELAYS: Range<Duration> = Duration::from_millis(1)..Duration::from_millis(3);
const WINDOW: Duration = Duration::from_millis(250);
/// The time after a stall from which on the worst lag is counted separately.
const AFTER: Duration = Duration::from_secs(1);
/// If dropping a handle cancels the timeout, it is kept for this long after the deadline.
const KEPT: Duration = Duration::from_secs(1);

/// The worst lag of the current window, and the number of timeouts that ran too early.
#[derive(Default)]
struct Lags {
    worst: AtomicU64,
    early: AtomicU64,
}

/// The task of a timeout, with its deadline unless it is cancelled at once.
#[derive(Clone, Copy)]
struct Mark(&'static Lags, Option<Instant>);

impl Job for Mark {
    fn run(self) {
        let Some(due) = self.1 else { return };
        let now = Instant::now();
        let lag = now.saturating_duration_since(due).as_nanos() as u64;
        // ORDERING: Relaxed, because these are figures on which nothing depends.
        if lag > self.0.worst.load(Ordering::Relaxed) {
            self.0.worst.fetch_max(lag, Ordering::Relaxed);
        }
        if now < due {
            self.0.early.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The task that blocks the timer.
#[derive(Clone, Copy)]
struct Stall(Duration);

impl Job for Stall {
    fn run(self) {
        thread::sleep(self.0);
    }
}

pub(crate) fn run<P: Peer>(run: &Run) -> Result<(), Stop> {
    let (span, stall) =
        (run.settings.millis("ms", 4_000), Duration::from_millis(run.settings.choice("stall-ms", 0) as u64));
    let cancel = run.settings.choice("cancel", 90).min(100) as u64;
    for threads in run.settings.list("threads", &[8]) {
        let params = format!("threads={threads},cancel={cancel}%,stall={}ms", stall.as_millis());
        once::<P>(threads, cancel, span, stall, &params, run);
    }
    Ok(())
}

fn once<P: Peer>(threads: usize, cancel: u64, span: Duration, stall: Duration, params: &str, run: &Run) {
    let peer = P::build(TICK);
    let lags = &*Box::leak(Box::<Lags>::default());
    let over = AtomicBool::new(false);
    let resident = process::resident();
    process::reset_peak();
    let begin = Instant::now();
    let (calls, worst) = thread::scope(|scope| {
        let caller = |index| {
            let peer = peer.clone();
            let over = &over;
            scope.spawn(move || run_here(&peer, |caller| call(caller, index, cancel, lags, over)))
        };
        let callers: Vec<_> = (0..threads).map(caller).collect();
        let worst = watch(&peer, lags, span, stall, params, run);
        // ORDERING: Relaxed, because the flag guards no other data.
        over.store(true, Ordering::Relaxed);
        let calls: Vec<_> = callers.into_iter().filter_map(|caller| caller.join().ok()).collect();
        (calls, worst)
    });
    let pairs: usize = calls.iter().map(|(pairs, _)| pairs).sum();
    let mut times: Vec<Duration> = calls.into_iter().flat_map(|(_, times)| times).collect();
    times.sort_unstable();
    run.each(params, begin.elapsed(), pairs, "ns/pair");
    run.figure(params, micros(quantile(&times, 0.999)), "us-p99.9");
    run.figure(params, micros(quantile(&times, 1.0)), "us-max");
    run.figure(params, worst[0], "ms-lag-max");
    if !stall.is_zero() && span / 2 > stall + AFTER {
        run.figure(params, worst[1], "ms-lag-max-after");
    }
    // ORDERING: Relaxed, because this is only a count.
    run.figure(params, lags.early.load(Ordering::Relaxed) as f64, "early");
    let growth = process::peak().zip(resident).map(|(peak, before)| peak.saturating_sub(before) as f64 / 1_048_576.0);
    run.known(params, growth, "MiB-peak");
    peer.stop();
}

/// Prints the figures of each window. Returns the worst lag in milliseconds before a stall, and
/// later than a second after it.
fn watch<P: Peer>(peer: &P, lags: &Lags, span: Duration, stall: Duration, params: &str, run: &Run) -> [f64; 2] {
    let begin = Instant::now();
    let mut worst = [0.0_f64; 2];
    let mut is_stalled = stall.is_zero();
    while begin.elapsed() < span {
        if !is_stalled && begin.elapsed() >= span / 2 {
            is_stalled = true;
            run_here(peer, |caller| {
                let work = P::work(Stall(stall));
                // The handle is kept, because dropping it might cancel.
                std::mem::forget(caller.schedule(Duration::ZERO, &work));
            });
        }
        thread::sleep(WINDOW.min(span / 4));
        // ORDERING: Relaxed, because this is only a figure.
        let lag = lags.worst.swap(0, Ordering::Relaxed) as f64 / 1e6;
        let now = begin.elapsed();
        if stall.is_zero() || now < span / 2 {
            worst[0] = worst[0].max(lag);
        } else if now > span / 2 + stall + AFTER {
            worst[1] = worst[1].max(lag);
        }
        let params = format!("{params},t={:.2}", now.as_secs_f64());
        run.figure(&params, lag, "ms-lag-over-time");
        if let Some(pending) = peer.pending() {
            run.figure(&params, pending as f64, "pending-over-time");
        }
    }
    worst
}

/// Schedules and cancels until the time is over. Returns the number of pairs, and the times of some
/// calls.
fn call<P: Peer>(
    peer: &mut P,
    index: usize,
    cancel: u64,
    lags: &'static Lags,
    over: &AtomicBool,
) -> (usize, Vec<Duration>) {
    let mut random = SplitMix64::delays(index << 32);
    let mut kept = VecDeque::new();
    let mut times = Vec::new();
    let cancelled = P::work(Mark(lags, None));
    for pair in 0.. {
        // ORDERING: Relaxed, because the flag guards no other data.
        if over.load(Ordering::Relaxed) {
            return (pair, times);
        }
        let delay = random.duration(&DELAYS);
        let is_kept = random.below(100) >= cancel;
        let begin = Instant::now();
        let work = is_kept.then(|| P::work(Mark(lags, Some(begin + delay))));
        let handle = peer.schedule(delay, work.as_ref().unwrap_or(&cancelled));
        if pair % 16 == 0 {
            times.push(begin.elapsed());
        }
        if !is_kept {
            peer.cancel(handle);
        } else if P::DROP_CANCELS {
            kept.push_back((begin + delay + KEPT, handle));
            while kept.front().is_some_and(|(until, _)| *until < begin) {
                kept.pop_front();
            }
        }
    }
    (0, times)
}
