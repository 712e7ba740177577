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
//! On a server, `P1` is E1, `P2` and `P3` are E3 at one node, `P4` is E4 and `P6` is E7.

use super::lags;
use super::{OnRun, Subject, row};
use crate::process;
use crate::row::Row;
use crate::settings::Settings;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// The delay of timeouts that do not come due.
pub const HOUR: Duration = Duration::from_secs(3600);

/// The stack of a calling thread.
const STACK: usize = 128 << 10;

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
            one(format!("{nodes}in-flight={in_flight}"), lives(in_flight, span, open)?, "lives/s")
        }
        "E4" | "P4" => lags::run(peer, workload, settings, open),
        "E7" | "P6" => idle(peer, workload, span, &open(ignore)?),
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
/// were under way.
///
/// # Errors
///
/// Fails if the subject does, or if nothing runs for 30 s before the measurement.
pub fn lives<S: Subject>(
    in_flight: usize,
    span: Duration,
    open: impl FnOnce(OnRun) -> Result<S, String>,
) -> Result<f64, String> {
    let (ran, runs) = mpsc::channel();
    let subject = open(Arc::new(move |_| _ = ran.send(())))?;
    (0..in_flight).try_for_each(|_| subject.submit(Duration::ZERO))?;
    // The first ones are not counted, because they began together.
    for _ in 0..in_flight {
        runs.recv_timeout(Duration::from_secs(30)).map_err(|_| "no timeout ran within 30 s")?;
        subject.submit(Duration::ZERO)?;
    }
    let begin = Instant::now();
    let mut count = 0_u64;
    while begin.elapsed() < span {
        if runs.recv_timeout(Duration::from_millis(100)).is_ok() {
            count += 1;
            subject.submit(Duration::ZERO)?;
        }
    }
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}

/// Returns the wake-ups and the CPU time per second of a subject with nothing due.
fn idle<S: Subject>(peer: &str, case: &str, span: Duration, subject: &S) -> Result<Vec<Row>, String> {
    (0..1_000).try_for_each(|_| subject.submit(HOUR))?;
    subject.schedule(HOUR)?;
    thread::sleep(Duration::from_millis(500));
    let (cpu, switches, begin) = (process::cpu(), process::voluntary_switches(), Instant::now());
    thread::sleep(span);
    let seconds = begin.elapsed().as_secs_f64();
    let mut rows = Vec::new();
    if let (Some(before), Some(after)) = (switches, process::voluntary_switches()) {
        rows.push(row(peer, case, "-", after.saturating_sub(before) as f64 / seconds, "switches/s"));
    }
    let cpu = (process::cpu() - cpu).as_secs_f64() * 1e3;
    rows.push(row(peer, case, "-", cpu / seconds, "cpu-ms/s"));
    Ok(rows)
}
