//! The cases that every subject can do.
//!
//! | case | work | figure |
//! |---|---|---|
//! | E1 | threads schedule, one timeout after the other | schedules per second |
//! | E2 | threads schedule a timeout and cancel it | pairs per second |
//! | E3 | a number of timeouts is in flight, due at once; each that runs is replaced by a new one | lives per second |
//! | E4 | timeouts come due at a fixed rate | lag, see [`super::lags`] |
//! | E7 | a thousand timeouts are pending for an hour, and nothing is due | wake-ups and CPU per second |
//!
//! On a server, `P1` is E1, `P2` and `P3` are E3 at one node, and `P4` is E4. `P6` has the work of
//! E7, and its figure is the number of transactions per minute.
//!
//! In E3, P2 and P3 a subject whose calls wait for the disk has several threads that schedule. A
//! subject whose calls do not wait has one.

use super::lags;
use super::{OnRun, Subject, row};
use crate::process;
use crate::row::Row;
use crate::settings::Settings;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// The delay of timeouts that do not come due.
pub const HOUR: Duration = Duration::from_secs(3600);

/// The stack of a calling thread.
const STACK: usize = 128 << 10;

/// The parameters of P6. The lease is that of our timer. The others have no nodes that expire.
pub const IDLE_PARAMS: &str = "lease=15s";

/// Runs the case `workload` on the subject that `open` returns, and returns its figures.
///
/// # Errors
///
/// Fails if there is no such case, or if the subject does.
pub fn run<S: Subject>(
    peer: &str,
    workload: &str,
    settings: &Settings,
    open: impl FnOnce(OnRun) -> Result<S, String>,
) -> Result<Vec<Row>, String> {
    let span = Duration::from_millis(settings.number("ms", 2_000, 300) as u64);
    let threads = settings.number("threads", 64, 8);
    let in_flight = settings.number("n", 512, 64);
    let ignore: OnRun = Arc::new(|_| ());
    let one = |params: String, value, unit| Ok(vec![row(peer, workload, &params, value, unit)]);
    match workload {
        "E1" | "P1" => {
            let unit = if workload == "P1" { "inserts/s" } else { "schedules/s" };
            let schedule = |subject: &S| subject.schedule(HOUR).map(drop);
            one(format!("callers={threads}"), rate(&Arc::new(open(ignore)?), threads, span, schedule)?, unit)
        }
        "E2" => {
            let pair = |subject: &S| subject.schedule(HOUR).and_then(|id| subject.cancel(id));
            one(format!("callers={threads}"), rate(&Arc::new(open(ignore)?), threads, span, pair)?, "pairs/s")
        }
        "E3" | "P2" | "P3" => {
            let nodes = if workload == "E3" { "" } else { "nodes=1," };
            one(format!("{nodes}in-flight={in_flight}"), lives(in_flight, threads, span, open)?, "lives/s")
        }
        "E4" | "P4" => lags::run(peer, workload, settings, open),
        "E7" => idle(peer, span, &open(ignore)?),
        "P6" => {
            let subject = open(ignore)?;
            let rate = transactions_per_minute(&subject, span, || subject.transactions())?;
            one(IDLE_PARAMS.to_owned(), rate, "transactions/min")
        }
        _ => Err(format!("no case `{workload}`")),
    }
}

/// Returns the number of calls per second of threads that call without a pause.
fn rate<S: Subject>(
    subject: &Arc<S>,
    threads: usize,
    span: Duration,
    call: impl Fn(&S) -> Result<(), String> + Copy + Send + 'static,
) -> Result<f64, String> {
    let ends = Arc::new(AtomicBool::new(false));
    let begin = Instant::now();
    let caller = |_| {
        let (subject, ends) = (subject.clone(), ends.clone());
        let work = move || {
            let mut calls = 0_u64;
            // ORDERING: Relaxed, only the end of the measurement depends on it.
            while !ends.load(Ordering::Relaxed) {
                call(&subject)?;
                calls += 1;
            }
            Ok::<u64, String>(calls)
        };
        thread::Builder::new().stack_size(STACK).spawn(work).map_err(|error| error.to_string())
    };
    let callers: Vec<_> = (0..threads).map(caller).collect::<Result<_, _>>()?;
    thread::sleep(span);
    // ORDERING: Relaxed, as above.
    ends.store(true, Ordering::Relaxed);
    let mut calls = 0;
    for caller in callers {
        calls += caller.join().map_err(|_| "a caller panicked".to_owned())??;
    }
    Ok(calls as f64 / begin.elapsed().as_secs_f64())
}

/// Returns the number of timeouts per second that were scheduled and ran while `in_flight` of them
/// were under way. If its calls wait for the disk, up to `threads` threads schedule, else one.
///
/// # Errors
///
/// Fails if the subject does, or if the first timeouts do not run within 30 s.
pub fn lives<S: Subject>(
    in_flight: usize,
    threads: usize,
    span: Duration,
    open: impl FnOnce(OnRun) -> Result<S, String>,
) -> Result<f64, String> {
    let (ran, runs) = mpsc::channel();
    let subject = open(Arc::new(move |_| _ = ran.send(())))?;
    let (replaced, ends, runs) = (AtomicU64::new(0), AtomicBool::new(false), Mutex::new(runs));
    let callers = if S::SUBMIT_WAITS { threads.min(in_flight).max(1) } else { 1 };
    let call = |nth: usize| {
        (nth..in_flight).step_by(callers).try_for_each(|_| subject.submit(Duration::ZERO))?;
        // ORDERING: Relaxed, only the end of the measurement depends on it.
        while !ends.load(Ordering::Relaxed) {
            let run = runs.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(Duration::from_millis(10));
            if run.is_ok() {
                // ORDERING: Relaxed, a count on which nothing else depends.
                replaced.fetch_add(1, Ordering::Relaxed);
                subject.submit(Duration::ZERO)?;
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let call = &call;
        let callers: Vec<_> = (0..callers).map(|nth| scope.spawn(move || call(nth))).collect();
        let rate = rate_of_lives(in_flight as u64, span, &replaced);
        // ORDERING: Relaxed, as above.
        ends.store(true, Ordering::Relaxed);
        let ended = callers.into_iter().map(|caller| caller.join().map_err(|_| "a caller panicked".to_owned())?);
        // An error of a caller may be the reason why nothing ran.
        ended.collect::<Result<(), String>>().and(rate)
    })
}

/// Returns the rate at which `replaced` grows, after as many timeouts ran as are in flight. Those
/// began together.
fn rate_of_lives(in_flight: u64, span: Duration, replaced: &AtomicU64) -> Result<f64, String> {
    // ORDERING: Relaxed, a count on which nothing else depends.
    let count = || replaced.load(Ordering::Relaxed);
    let begin = Instant::now();
    while count() < in_flight {
        if begin.elapsed() > Duration::from_secs(30) {
            return Err(format!("only {} of the first {in_flight} timeouts ran within 30 s", count()));
        }
        thread::sleep(Duration::from_millis(1));
    }
    let (begin, before) = (Instant::now(), count());
    thread::sleep(span);
    Ok((count() - before) as f64 / begin.elapsed().as_secs_f64())
}

/// Schedules a thousand timeouts that do not come due.
fn fill<S: Subject>(subject: &S) -> Result<(), String> {
    (0..1_000).try_for_each(|_| subject.submit(HOUR))?;
    subject.schedule(HOUR).map(drop)
}

/// Returns the wake-ups and the CPU time per second of a subject with nothing due.
fn idle<S: Subject>(peer: &str, span: Duration, subject: &S) -> Result<Vec<Row>, String> {
    fill(subject)?;
    thread::sleep(Duration::from_millis(500));
    let (cpu, switches, begin) = (process::cpu(), process::voluntary_switches(), Instant::now());
    thread::sleep(span);
    let seconds = begin.elapsed().as_secs_f64();
    let mut rows = Vec::new();
    if let (Some(before), Some(after)) = (switches, process::voluntary_switches()) {
        rows.push(row(peer, "E7", "-", after.saturating_sub(before) as f64 / seconds, "switches/s"));
    }
    let cpu = (process::cpu() - cpu).as_secs_f64() * 1e3;
    rows.push(row(peer, "E7", "-", cpu / seconds, "cpu-ms/s"));
    Ok(rows)
}

/// Returns the transactions per minute of a subject with nothing due. `transactions` returns the
/// number of transactions that have ended so far.
///
/// # Errors
///
/// Fails if the subject or `transactions` does.
pub fn transactions_per_minute<S: Subject>(
    subject: &S,
    span: Duration,
    transactions: impl Fn() -> Result<f64, String>,
) -> Result<f64, String> {
    fill(subject)?;
    // A server counts the transactions of a connection with a delay.
    thread::sleep(Duration::from_secs(12));
    let (begin, before) = (Instant::now(), transactions()?);
    thread::sleep(span);
    Ok((transactions()? - before) / begin.elapsed().as_secs_f64() * 60.0)
}
