//! One thread schedules 10,000 timers a second, ten at a time. Each batch is at a random phase of
//! its millisecond, and the delays are 1 to 100 ms to the nanosecond. The due instant is the
//! reading just before the call plus the delay.
//!
//! `us-p50` and so on are quantiles of the time from the due instant to the run. `early` is the
//! number of timers that ran before they were due. Ours runs at the tick of the others, 1 ms, and
//! at its finest tick, 1 us. A peer without a choice of ticks has the same figures beside both.

use crate::caller::run_here;
use crate::out::{Run, Stop, quantile};
use crate::peer::{Job, Peer, TICK};
use crate::random::SplitMix64;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BATCH: usize = 10;
const PERIOD: Duration = Duration::from_millis(1);
const MIN_DELAY: Duration = Duration::from_millis(1);
const MAX_DELAY: Duration = Duration::from_millis(100);

/// The lateness of each task.
struct Record {
    lags: Vec<AtomicI64>,
    ran: AtomicUsize,
}

#[derive(Clone, Copy)]
struct LagJob {
    record: &'static Record,
    index: usize,
    due: Instant,
}

impl Job for LagJob {
    fn run(self) {
        let now = Instant::now();
        let late = now.saturating_duration_since(self.due).as_nanos() as i64;
        let early = self.due.saturating_duration_since(now).as_nanos() as i64;
        // ORDERING: Relaxed, because the count below publishes it.
        self.record.lags[self.index].store(late - early, Ordering::Relaxed);
        // ORDERING: Release, pairs with the Acquire of the reader, which then sees all lags.
        self.record.ran.fetch_add(1, Ordering::Release);
    }
}

pub(crate) fn run<P: Peer>(run: &Run) -> Result<(), Stop> {
    let batches = run.settings.number("ms", 3_000);
    let ticks = run.settings.list("tick-us", &[1_000, 1]);
    if P::HAS_TICK {
        for tick in ticks {
            once::<P>(batches, Duration::from_micros(tick as u64), &[params(tick)], run);
        }
    } else {
        let all: Vec<String> = ticks.into_iter().map(params).collect();
        once::<P>(batches, TICK, &all, run);
    }
    Ok(())
}

fn params(tick: usize) -> String {
    if tick.is_multiple_of(1_000) { format!("tick={}ms", tick / 1_000) } else { format!("tick={tick}us") }
}

fn once<P: Peer>(batches: usize, tick: Duration, params: &[String], run: &Run) {
    let peer = P::build(tick);
    let all = batches * BATCH;
    let lags = std::iter::repeat_with(AtomicI64::default).take(all).collect();
    let record: &'static Record = Box::leak(Box::new(Record { lags, ran: AtomicUsize::new(0) }));
    let handles = run_here(&peer, |caller| feed(caller, record, batches));
    let limit = Instant::now() + MAX_DELAY + Duration::from_secs(5);
    // ORDERING: Acquire, pairs with the Release of each task.
    while record.ran.load(Ordering::Acquire) < all && Instant::now() < limit {
        thread::sleep(PERIOD);
    }
    // ORDERING: Acquire, pairs with the Release of each task.
    let ran = record.ran.load(Ordering::Acquire);
    for params in params {
        if ran == all {
            report(record, params, run);
        } else {
            run.unavailable(params, "us-p50", &format!("{} of {all} have not run", all - ran.min(all)));
        }
    }
    drop(handles);
    peer.stop();
}

/// Schedules all batches.
fn feed<P: Peer>(caller: &mut P, record: &'static Record, batches: usize) -> Vec<P::Handle> {
    let mut handles = Vec::with_capacity(batches * BATCH);
    let mut random = SplitMix64::delays(0);
    let delays = MIN_DELAY..MAX_DELAY;
    let begin = Instant::now();
    for batch in 0..batches {
        let at = begin + PERIOD * batch as u32 + random.duration(&(Duration::ZERO..PERIOD));
        thread::sleep(at.saturating_duration_since(Instant::now()));
        for _ in 0..BATCH {
            let delay = random.duration(&delays);
            let index = handles.len();
            let due = Instant::now() + delay;
            let work = P::work(LagJob { record, index, due });
            handles.push(caller.schedule(delay, &work));
        }
    }
    handles
}

fn report(record: &Record, params: &str, run: &Run) {
    // ORDERING: Relaxed, because the count has published all lags.
    let lags = record.lags.iter().map(|lag| lag.load(Ordering::Relaxed));
    let mut lags: Vec<i64> = lags.collect();
    lags.sort_unstable();
    for (q, unit) in [(0.5, "us-p50"), (0.99, "us-p99"), (1.0, "us-max")] {
        run.figure(params, quantile(&lags, q) as f64 / 1e3, unit);
    }
    let early = lags.iter().filter(|lag| **lag < 0).count();
    run.figure(params, early as f64, "early");
}
