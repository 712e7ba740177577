//! E4: how late handlers begin, for timeouts that come due at a fixed rate.
//!
//! The timeouts are scheduled at the same rate meanwhile, with delays of 50 ms to 1 s. With
//! `alone=1` all of them are scheduled before the first one is due, so that nothing but their runs
//! takes time. The lag is the time from the due time to the beginning of the handler, on the wall
//! clock.

use super::{Micros, OnRun, Subject, now, row};
use crate::random::SplitMix64;
use crate::row::Row;
use crate::settings::Settings;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest wait for late runs after the last timeout is due.
const MAX_LATENESS: Duration = Duration::from_secs(3);

/// Runs the case, whose name is `case`.
///
/// # Errors
///
/// Fails if the subject does.
pub fn run<S: Subject>(
    peer: &str,
    case: &str,
    settings: &Settings,
    open: impl FnOnce(OnRun) -> Result<S, String>,
) -> Result<Vec<Row>, String> {
    let span = Duration::from_millis(settings.number("ms", 3_000, 500) as u64);
    let rate = settings.number("rate", 1_000, 200);
    let alone = settings.number("alone", 0, 0) != 0;
    let lags = Arc::new(Mutex::new(Vec::<Micros>::new()));
    let writer = lags.clone();
    let on_run: OnRun = Arc::new(move |due| {
        let lag = now() - due;
        writer.lock().unwrap_or_else(PoisonError::into_inner).push(lag);
    });
    let subject = open(on_run)?;
    let total = (span.as_secs_f64() * rate as f64) as usize;
    if alone {
        schedule_before(&subject, total, rate)?
    } else {
        schedule_meanwhile(&subject, total, rate)?
    }
    let read = || lags.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let end = Instant::now() + MAX_LATENESS;
    while read().len() < total && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
    let mut lags = read();
    lags.sort_unstable();
    let params = format!("rate={rate},alone={}", u8::from(alone));
    let quantile = |share: f64| {
        let rank = (lags.len() as f64 * share).ceil() as usize;
        lags.get(rank.saturating_sub(1)).map_or(0.0, |lag| *lag as f64)
    };
    let figure = |value, unit| row(peer, case, &params, value, unit);
    Ok(vec![
        figure(quantile(0.5), "us-p50"),
        figure(quantile(0.99), "us-p99"),
        figure(quantile(1.0), "us-max"),
        figure(lags.iter().filter(|lag| **lag < 0).count() as f64, "early"),
        figure(total.saturating_sub(lags.len()) as f64, "overdue"),
    ])
}

fn schedule_before<S: Subject>(subject: &S, total: usize, rate: usize) -> Result<(), String> {
    let begin = Instant::now();
    let lead = Duration::from_secs_f64(1.0 + total as f64 / 20_000.0);
    for number in 0..total {
        let due = lead + Duration::from_secs_f64(number as f64 / rate as f64);
        subject.submit(due.saturating_sub(begin.elapsed()))?;
    }
    if begin.elapsed() > lead {
        return Err("scheduling took longer than the lead".to_owned());
    }
    let last = lead + Duration::from_secs_f64(total as f64 / rate as f64);
    thread::sleep(last.saturating_sub(begin.elapsed()));
    Ok(())
}

fn schedule_meanwhile<S: Subject>(subject: &S, total: usize, rate: usize) -> Result<(), String> {
    let mut random = SplitMix64::new(42);
    let (begin, mut scheduled) = (Instant::now(), 0);
    while scheduled < total {
        let wanted = (begin.elapsed().as_secs_f64() * rate as f64) as usize;
        while scheduled < wanted.min(total) {
            subject.submit(Duration::from_micros(50_000 + random.below(950_000)))?;
            scheduled += 1;
        }
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_secs(1));
    Ok(())
}
