//! E4: how late handlers begin, for timeouts that come due at a fixed rate.
//!
//! The timeouts are scheduled at the same rate meanwhile, with delays of 50 ms to 1 s. With
//! `alone=1` all of them are scheduled before the first one is due, so that nothing but their runs
//! takes time. The lag is the time from the due time to the beginning of the handler, on the wall
//! clock. `overdue` is the number of timeouts that had not run 3 s after the last one was due. If
//! there are any, the quantiles are not available, because they would leave out the worst lags.

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
    let params = format!("rate={rate},alone={}", u8::from(alone));
    Ok(rows(peer, case, &params, read(), total))
}

/// Returns the figures of `total` timeouts. `lags` has the lag of each timeout that ran.
fn rows(peer: &str, case: &str, params: &str, mut lags: Vec<Micros>, total: usize) -> Vec<Row> {
    lags.sort_unstable();
    let overdue = total.saturating_sub(lags.len());
    let quantile = |share: f64, unit: &str| {
        let rank = (lags.len() as f64 * share).ceil() as usize;
        let lag = lags.get(rank.saturating_sub(1)).filter(|_| overdue == 0);
        let value = lag.map(|lag| *lag as f64).ok_or_else(|| format!("{overdue} of {total} never ran"));
        Row { value, ..row(peer, case, params, 0.0, unit) }
    };
    let count = |value: usize, unit| row(peer, case, params, value as f64, unit);
    vec![
        quantile(0.5, "us-p50"),
        quantile(0.99, "us-p99"),
        quantile(1.0, "us-max"),
        count(lags.iter().filter(|lag| **lag < 0).count(), "early"),
        count(overdue, "overdue"),
    ]
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

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn timeouts_that_never_ran_leave_no_quantiles() {
        let values = |total| rows("timer", "E4", "-", vec![30, -10, 20], total).into_iter().map(|row| row.value);
        assert_eq!(values(3).collect::<Result<Vec<f64>, String>>(), Ok(vec![20.0, 30.0, 30.0, 1.0, 0.0]));
        let lost = Err("2 of 5 never ran".to_owned());
        assert_eq!(values(5).collect::<Vec<_>>(), [lost.clone(), lost.clone(), lost, Ok(1.0), Ok(2.0)]);
    }
}
