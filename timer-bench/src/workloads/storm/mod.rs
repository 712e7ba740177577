//! W15: more threads than CPUs use a timer at full speed. Each schedules timeouts of 1 to 3 ms and cancels nine of ten at
//! once, for 2 s; then the timer is stopped while they go on. Or 64 threads pause for a millisecond after every 100 pairs.
//! Or two threads of nice 19 use the timer at full speed and share one CPU with another that burns it, and with a caller
//! that makes a pair each millisecond. Beside each runs a thread that only sleeps for a millisecond, and the floor does all
//! of it without a timer: both show what the scheduler does.
//!
//! The threads are confined to so many CPUs. `ns/pair` is wall time / pairs, of all threads; `cpu-ns/pair` the CPU
//! time of the process. A call schedules or cancels: `ns-p50` to `us-max` are quantiles of its wall time, until the
//! end of the stop, one that never returned included. `cpu-*` are those of its CPU time, of one pair in 64 and of
//! each call that took long (of those from the last reading on, so that the greatest is an upper bound; what a
//! reading takes is taken off). `us-lag-*`: from the deadline to the run, of those that are not cancelled and ran
//! within the 2 s; `early`: how many ran before it. `overdue`: how many are not cancelled, were due by then, and had
//! not run. `MiB-peak`: by how much resident memory grew at most (what is pending at a time is less than 1 MiB).
//! `ms-stop`: how long the stop took, and `handed-back` how many timers came back; `unaccounted`: timers that were
//! accepted and did not end in just one way. `us-sleeper-*`: how much longer than a millisecond the other thread
//! slept.
//!
//! A timer that does not stop within 10 s has no figure for that, and the process ends with what it has.

mod book;
mod callers;
mod nice;
mod sleeper;
mod tape;

use super::Stop;
use super::histogram::Counts;
use super::out::{Out, millis};
use crate::peers::TICK;
use crate::peers::storming::Storming;
use crate::process;
use crate::scheduling::confine;
use crate::settings::Settings;
use book::Book;
use callers::{Callers, Plan};
use sleeper::Sleeper;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

pub(super) fn run<P: Storming>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    let span = Duration::from_millis(settings.number("ms", 2_000, 500) as u64);
    let limit = Duration::from_millis(settings.number("stop-ms", 10_000, 3_000) as u64);
    let cpus = settings.number("cpus", 2, 2);
    let nice = settings.number("nice", 0, 0) > 0;
    // Before any thread is started: those inherit it.
    confine(if nice { 1 } else { cpus }).map_err(Stop::Unavailable)?;
    if nice {
        return nice::run::<P>(span * 2, limit, out);
    }
    let pause = Duration::from_micros(settings.number("pause-us", 0, 0) as u64);
    for threads in settings.list("threads", &[4, 8, 12, 24, 48], &[4, 12, 48]) {
        let mut params = format!("P={threads},cpus={cpus}");
        if !pause.is_zero() {
            params += &format!(",pause={}us", pause.as_micros());
        }
        once::<P>(&Plan { threads, pause, each_has_a_place: 0 }, span, limit, &params, out)?;
    }
    Ok(())
}

fn once<P: Storming>(plan: &Plan, span: Duration, limit: Duration, params: &str, out: &Out) -> Result<(), Stop> {
    let peer = P::build(TICK);
    let book = Book::leak(span + limit + Duration::from_secs(5), plan.each_has_a_place);
    let callers = Callers::ready(&peer, book, plan);
    let sleeper = Sleeper::start();
    let resident = process::resident();
    process::reset_peak();
    let before = process::cpu();
    let begin = Instant::now();
    callers.go();
    thread::sleep(span);
    let (wall, cpu) = (begin.elapsed(), process::cpu() - before);
    let pairs = callers.pairs();
    out.each(params, wall, pairs as usize, "ns/pair");
    out.each(params, cpu, pairs as usize, "cpu-ns/pair");
    if P::FIRES {
        lags(&book.lags(), params, out);
        out.figure(params, book.early() as f64, "early");
        out.figure(params, callers.overdue() as f64, "overdue");
    }
    let stopped = stop(&peer, &callers, limit, params, out);
    // Those that a stop cannot end.
    callers.abort();
    calls(&callers.calls(), "", params, out);
    calls(&callers.cpu_of_calls(), "cpu-", params, out);
    sleeper.report(params, out);
    match process::peak().zip(resident) {
        Some((peak, before)) => out.figure(params, peak.saturating_sub(before) as f64 / 1_048_576.0, "MiB-peak"),
        None => out.unavailable(params, "MiB-peak", "known on Linux only"),
    }
    let quiet = Duration::from_secs(2);
    if !stopped || !callers.have_ended_within(quiet) {
        // Neither can be dropped while it is at work.
        std::mem::forget(peer);
        return Err(Stop::Endless);
    }
    if let Some(unaccounted) = callers.unaccounted(quiet) {
        out.figure(params, unaccounted as f64, "unaccounted");
    }
    drop(callers);
    if P::NO_STOP.is_some() {
        peer.stop();
    }
    Ok(())
}

/// Stops the timer on a thread of its own, and waits for it no longer than `limit`; whether the timer has ended.
fn stop<P: Storming>(peer: &P, callers: &Callers, limit: Duration, params: &str, out: &Out) -> bool {
    if let Some(why) = P::NO_STOP {
        out.unavailable(params, "ms-stop", why);
        return true;
    }
    let (stopping, (tell, told)) = (peer.clone(), channel());
    thread::spawn(move || {
        let begin = Instant::now();
        let back = stopping.stop_beside_callers();
        let took = begin.elapsed();
        // The other end may have given up.
        let _sent = tell.send((took, back));
    });
    match told.recv_timeout(limit) {
        Ok((took, back)) => {
            out.figure(params, millis(took), "ms-stop");
            let before = callers.ran();
            P::run_back(back);
            if P::FIRES {
                out.figure(params, callers.ran().saturating_sub(before) as f64, "handed-back");
            }
            true
        }
        Err(_) => {
            out.unavailable(params, "ms-stop", &format!("did not stop within {limit:?}"));
            false
        }
    }
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// The quantiles of calls.
fn calls(calls: &Counts, kind: &str, params: &str, out: &Out) {
    if calls.count() == 0 {
        return;
    }
    for (q, unit) in [(0.5, "ns-p50"), (0.99, "ns-p99")] {
        out.figure(params, calls.quantile(q) as f64, &format!("{kind}{unit}"));
    }
    out.figure(params, micros(calls.quantile(0.999)), &format!("{kind}us-p99.9"));
    out.figure(params, micros(calls.max()), &format!("{kind}us-max"));
}

/// The quantiles of lags.
fn lags(lags: &Counts, params: &str, out: &Out) {
    for (q, unit) in [(0.5, "us-lag-p50"), (0.99, "us-lag-p99"), (1.0, "us-lag-max")] {
        match lags.count() {
            0 => out.unavailable(params, unit, "none ran"),
            _ => out.figure(params, micros(lags.quantile(q)), unit),
        }
    }
}

#[cfg(test)]
mod tests;
