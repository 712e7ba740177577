//! W15, the storm: a timer under more busy threads than the machine has CPUs.
//!
//! There are three kinds of load:
//!
//! - Threads at full speed. Each thread schedules timeouts of 1 to 3 ms and cancels nine out of ten
//!   at once, or another percentage. After 2 s the timer is stopped while the threads continue. In
//!   the middle of that time, a task may block the timer for a while, or SIGSTOP may stop the
//!   process.
//! - Threads that pause. 64 threads sleep for a millisecond after every 100 pairs.
//! - Threads of nice 19. Two of them use the timer at full speed. They share one CPU with a thread
//!   that burns it and with a caller that makes one pair per millisecond.
//!
//! The scheduler's own delays show in two places: a thread beside each storm only sleeps for a
//! millisecond at a time, and the floor runs the same load without a timer.
//!
//! The threads are confined to a fixed number of CPUs. A call is one schedule or one cancel. The
//! units of the rows are:
//!
//! - `ns/pair` and `cpu-ns/pair`: wall time and CPU time of the process, divided by the pairs of
//!   all threads.
//! - `ns-p50` to `us-max`: quantiles of a call's wall time until the end of the stop. They include
//!   calls that never returned.
//! - `cpu-*`: quantiles of a call's CPU time, for one pair in 64 and for each long call. The CPU
//!   time of a long call is counted from the last reading before it, so the maximum is an upper
//!   bound. The cost of a reading is subtracted.
//! - `us-lag-*`: time from the deadline to the run, for timeouts that were not cancelled and ran
//!   within the 2 s. If fewer than nine out of ten are cancelled, for one in eight of them.
//! - `early`: number of timeouts that ran before their deadline, among the same.
//! - `overdue`: number of timeouts that were not cancelled, were due at the end of the 2 s and had
//!   not run.
//! - `MiB-peak`: greatest growth of resident memory. With nine out of ten timeouts cancelled, the
//!   pending ones account for less than 1 MiB.
//! - `pending-max`: greatest number of pending timeouts, read every 10 ms.
//! - `us-lag-max-after-1s`, `pending-max-after-1s` and the same with `2s`: the maxima later than
//!   one or two seconds after the end of a stall.
//! - `us-lag-max-over-time`, `pending-max-over-time`: the maxima of the window that ends at `t`,
//!   for the plot.
//! - `ms-stop`: duration of the stop. `handed-back` is the number of timeouts that it returned.
//! - `unaccounted`: difference between the number of accepted timeouts and the number that ran or
//!   were cancelled. It is 0 if each ended in exactly one way.
//! - `us-sleeper-*`: the excess over a millisecond of each sleep of the sleeping thread.
//!
//! If a timer does not stop within 10 s, its row says so and the process ends with the figures that
//! it has.

mod book;
mod callers;
mod nice;
mod sleeper;
mod tape;
mod watch;

use super::Stop;
use super::histogram::Counts;
use super::out::{Out, millis};
use crate::peers::storming::Storming;
use crate::peers::{Job, TICK};
use crate::process;
use crate::scheduling::confine;
use crate::settings::Settings;
use book::Book;
use callers::{Callers, Plan};
use sleeper::Sleeper;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use watch::{Watch, freeze_this_process};

pub(super) fn run<P: Storming>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    let span = Duration::from_millis(settings.number("ms", 2_000, 500) as u64);
    let limit = Duration::from_millis(settings.number("stop-ms", 10_000, 3_000) as u64);
    let cpus = settings.number("cpus", 2, 2);
    let nice = settings.number("nice", 0, 0) > 0;
    // The threads inherit the confinement, so it has to precede their start.
    confine(if nice { 1 } else { cpus }).map_err(Stop::Unavailable)?;
    if nice {
        return nice::run::<P>(span * 2, limit, out);
    }
    let pause = Duration::from_micros(settings.number("pause-us", 0, 0) as u64);
    let millis = |name| Duration::from_millis(settings.number(name, 0, 0) as u64);
    let (stall, freeze, window) = (millis("stall-ms"), millis("freeze-ms"), millis("window-ms"));
    let course = Course { span, stall, freeze, window };
    let cancelled = settings.number("cancel", 90, 90).min(100) as u64;
    for threads in settings.list("threads", &[4, 8, 12, 24, 48], &[4, 12, 48]) {
        let mut params = format!("P={threads},cpus={cpus}");
        if !pause.is_zero() {
            params += &format!(",pause={}us", pause.as_micros());
        }
        if cancelled != 90 {
            params += &format!(",cancel={cancelled}");
        }
        for (name, time) in [("stall", stall), ("freeze", freeze)] {
            if !time.is_zero() {
                params += &format!(",{name}={}ms", time.as_millis());
            }
        }
        let plan = Plan { threads, cancelled, pause, each_has_a_place: 0 };
        once::<P>(&plan, &course, limit, &params, out)?;
    }
    Ok(())
}

/// The times of a storm. A time of zero does not apply.
struct Course {
    span: Duration,
    stall: Duration,
    freeze: Duration,
    window: Duration,
}

fn once<P: Storming>(plan: &Plan, course: &Course, limit: Duration, params: &str, out: &Out) -> Result<(), Stop> {
    let &Course { span, stall, freeze, window } = course;
    let peer = P::build(TICK);
    let book = Book::leak(span + limit + Duration::from_secs(5), plan.each_has_a_place);
    let callers = Callers::ready(&peer, book, plan);
    let sleeper = Sleeper::start();
    let resident = process::resident();
    process::reset_peak();
    let before = process::cpu();
    let mut watch = Watch::begin(&peer, book);
    callers.go();
    watch.until(span / 2);
    let mut stalled_until = watch.elapsed() + stall;
    if !stall.is_zero() {
        let _task = peer.clone().schedule::<Stall>(Duration::ZERO, &P::work(Stall(stall)));
    }
    if !freeze.is_zero() {
        if !freeze_this_process(freeze) {
            out.unavailable(params, "us-lag-max", "the process cannot be stopped by SIGSTOP");
        }
        stalled_until = watch.elapsed();
    }
    watch.until(span);
    let (wall, cpu) = (watch.elapsed(), process::cpu() - before);
    let pairs = callers.pairs();
    out.each(params, wall, pairs as usize, "ns/pair");
    out.each(params, cpu, pairs as usize, "cpu-ns/pair");
    if let Some(most) = watch.pending_max(Duration::ZERO) {
        out.figure(params, most as f64, "pending-max");
    }
    if !stall.is_zero() || !freeze.is_zero() {
        watch.after(stalled_until, params, out);
    }
    if !window.is_zero() {
        watch.over_time(window, params, out);
    }
    if P::FIRES {
        lags(&book.lags(), params, out);
        out.figure(params, book.early() as f64, "early");
        out.figure(params, callers.overdue() as f64, "overdue");
    }
    let stopped = stop(&peer, &callers, limit, params, out);
    // The stop does not end every kind of caller.
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
        // The stopping thread and the callers still use the timer, so it cannot be dropped.
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

/// A job that blocks the thread that runs it.
#[derive(Clone, Copy)]
struct Stall(Duration);

impl Job for Stall {
    fn run(self) {
        thread::sleep(self.0);
    }
}

/// Stops the timer on a separate thread and waits for it for at most `limit`. Returns `true` if the
/// timer has stopped.
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
        // After `limit` the receiver is gone.
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

/// Reports the quantiles of a call's time.
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

/// Reports the quantiles of the lags.
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
