//! The cases of durable timeouts, each on a new store. To add a row, write a function and name it
//! in [`run`].

use super::subject::{Micros, Subject, now};
use crate::out::{Run, Stop, quantile};
use crate::random::{SEED, SplitMix64};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The number of timeouts that are in flight.
pub(super) const IN_FLIGHT: usize = 512;

/// A delay that does not come due.
const HOUR: Duration = Duration::from_secs(3600);

/// The longest wait for late runs.
const MAX_LATENESS: Duration = Duration::from_secs(5);

/// The number of timeouts for each delay whose lateness is measured.
const DELAYED: usize = 20;

/// The lag of each run, from the due time to the beginning of the handler, on the wall clock.
type Lags = Receiver<Micros>;

/// Measures all cases on `store`.
///
/// # Errors
///
/// Fails if the subject does.
pub fn run<S: Subject>(run: &Run, store: &str) -> Result<(), Stop> {
    let (ran, mut lags) = mpsc::channel();
    let subject = S::open(store, Arc::new(move |due| _ = ran.send(now() - due))).map_err(Stop::because)?;
    // `lives` is the last case, because the timeouts that it leaves in flight would run during the
    // next one.
    for case in [delays, lag, schedules, lives] {
        case(&subject, &mut lags, run).map_err(Stop::because)?;
    }
    Ok(())
}

/// Single timeouts with the same delay, which are scheduled at random times within about a second.
/// Without the setting `delay-ms` there are none.
fn delays<S: Subject>(subject: &S, lags: &mut Lags, run: &Run) -> Result<(), String> {
    for millis in run.settings.list("delay-ms", &[]) {
        let delay = Duration::from_millis(millis as u64);
        let mut random = SplitMix64::new(SEED);
        for _ in 0..DELAYED {
            subject.submit(delay)?;
            thread::sleep(Duration::from_micros(random.below(100_000)));
        }
        let end = Instant::now() + delay + MAX_LATENESS;
        let next = |_| lags.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
        let mut all: Vec<Micros> = (0..DELAYED).map_while(next).collect();
        all.sort_unstable();
        let params = format!("delay={millis}ms");
        for (q, unit) in [(0.5, "us-late-p50"), (1.0, "us-late-max")] {
            match DELAYED - all.len() {
                0 => run.figure(&params, quantile(&all, q) as f64, unit),
                overdue => run.unavailable(&params, unit, &format!("{overdue} of {DELAYED} never ran")),
            }
        }
    }
    Ok(())
}

/// Timeouts come due at a fixed rate, with delays of 50 ms to 1 s, and are scheduled at that rate
/// in the same time. `overdue` is the number that had not run 5 s after the last one was due. If
/// there are any, there are no quantiles, because they would leave out the worst lags.
///
/// # Errors
///
/// Fails if the subject does.
pub fn lag<S: Subject>(subject: &S, lags: &mut Lags, run: &Run) -> Result<(), String> {
    lag_of(subject, lags, run, &format!("rate={}", rate(run)))
}

fn rate(run: &Run) -> usize {
    run.settings.number("rate", 1_000)
}

/// The same as [`lag`], with a name for the figures.
pub(super) fn lag_of<S: Subject>(subject: &S, lags: &mut Lags, run: &Run, params: &str) -> Result<(), String> {
    let rate = rate(run);
    let span = run.settings.millis("ms", 3_000);
    let total = (span.as_secs_f64() * rate as f64) as usize;
    let mut random = SplitMix64::new(SEED);
    let begin = Instant::now();
    let mut scheduled = 0;
    while scheduled < total {
        while scheduled < total && scheduled < (begin.elapsed().as_secs_f64() * rate as f64) as usize {
            subject.submit(Duration::from_millis(50) + Duration::from_micros(random.below(950_000)))?;
            scheduled += 1;
        }
        thread::sleep(Duration::from_millis(1));
    }
    let end = Instant::now() + Duration::from_secs(1) + MAX_LATENESS;
    let next = |_| lags.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
    let mut all: Vec<Micros> = (0..total).map_while(next).collect();
    all.sort_unstable();
    let overdue = total - all.len();
    for (q, unit) in [(0.5, "us-p50"), (0.99, "us-p99"), (1.0, "us-max")] {
        match overdue {
            0 => run.figure(params, quantile(&all, q) as f64, unit),
            _ => run.unavailable(params, unit, &format!("{overdue} of {total} never ran")),
        }
    }
    run.figure(params, all.iter().filter(|lag| **lag < 0).count() as f64, "early");
    run.figure(params, overdue as f64, "overdue");
    Ok(())
}

/// N timeouts are in flight, due at once. Each that runs is replaced by a new one. Up to 64 threads
/// schedule if calls wait for the disk, else one.
fn lives<S: Subject>(subject: &S, lags: &mut Lags, run: &Run) -> Result<(), String> {
    let in_flight = run.settings.choice("n", IN_FLIGHT);
    lives_of(subject, lags, run, in_flight, &format!("in-flight={in_flight}"))
}

/// The same as [`lives`], with a name for the figure.
pub(super) fn lives_of<S: Subject>(
    subject: &S,
    lags: &mut Lags,
    run: &Run,
    in_flight: usize,
    params: &str,
) -> Result<(), String> {
    let callers = if S::SUBMIT_WAITS { in_flight.clamp(1, 64) } else { 1 };
    let lives = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    let lags = Mutex::new(lags);
    let call = |nth: usize| {
        (nth..in_flight).step_by(callers).try_for_each(|_| subject.submit(Duration::ZERO))?;
        // ORDERING: Relaxed, here and below, only the measurement depends on it.
        while !over.load(Ordering::Relaxed) {
            let ran = lags.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(Duration::from_millis(10));
            if ran.is_ok() {
                lives.fetch_add(1, Ordering::Relaxed);
                subject.submit(Duration::ZERO)?;
            }
        }
        Ok(())
    };
    // ORDERING: Relaxed, as above.
    let count = || lives.load(Ordering::Relaxed);
    let (ended, rate) = thread::scope(|scope| {
        let call = &call;
        let callers: Vec<_> = (0..callers).map(|nth| scope.spawn(move || call(nth))).collect();
        let limit = Instant::now() + Duration::from_secs(30);
        while count() < in_flight as u64 && Instant::now() < limit {
            thread::sleep(Duration::from_millis(1));
        }
        let begin = Instant::now();
        let before = count();
        thread::sleep(run.settings.millis("ms", 3_000));
        let rate = (count() - before) as f64 / begin.elapsed().as_secs_f64();
        // ORDERING: Relaxed, as above.
        over.store(true, Ordering::Relaxed);
        let ended: Result<(), String> = callers.into_iter().try_for_each(joined);
        (ended, rate)
    });
    run.figure(params, rate, "lives/s");
    ended
}

/// Threads schedule and wait until the timeout is on disk.
fn schedules<S: Subject>(subject: &S, _: &mut Lags, run: &Run) -> Result<(), String> {
    let span = run.settings.millis("ms", 3_000);
    for threads in run.settings.list("threads", &[1, 64]) {
        let begin = Instant::now();
        let calls = thread::scope(|scope| {
            let caller = |_| {
                scope.spawn(|| {
                    let mut calls = 0;
                    while begin.elapsed() < span {
                        subject.schedule(HOUR)?;
                        calls += 1;
                    }
                    Ok(calls)
                })
            };
            let callers: Vec<_> = (0..threads).map(caller).collect();
            callers.into_iter().map(joined).sum::<Result<u64, String>>()
        });
        run.figure(&format!("callers={threads}"), calls? as f64 / begin.elapsed().as_secs_f64(), "schedules/s");
    }
    Ok(())
}

fn joined<R>(thread: thread::ScopedJoinHandle<'_, Result<R, String>>) -> Result<R, String> {
    thread.join().unwrap_or_else(|_| Err("a caller panicked".to_owned()))
}
