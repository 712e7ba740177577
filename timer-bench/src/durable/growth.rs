//! Lives per second and the time of a page, with N timeouts in the store that wait for months.
//!
//! `lives/s` is that of the case `lives`. `ms-page` is the median time of a page of 100 rows behind
//! the one before. `ms-page-far` is that of a page at a random time within the months.

use super::cases::{IN_FLIGHT, lives_of};
use super::ours::Ours;
use super::store::Fresh;
use super::subject::now;
use crate::out::{Run, Stop, millis, quantile};
use crate::random::{SEED, SplitMix64};
use crate::row::short;
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime};
use timer_durable::{Due, DurableTimer, Filter, PendingRow, Schedule, Topic};

const WAITING: Topic<()> = Topic::new("waiting");

/// The delays of the timeouts that wait.
const MONTHS: Range<Duration> = Duration::from_secs(30 * 86_400)..Duration::from_secs(120 * 86_400);

/// The timeouts of a call while the store is filled, and the calls in flight.
const BATCH: usize = 1_000;
const CALLS: usize = 4;

const ROWS_OF_PAGE: usize = 100;
const PAGES: usize = 50;

/// Measures one store at each number of rows.
pub(crate) fn run(run: &Run) -> Result<(), Stop> {
    let store = Fresh::of(run)?;
    let (ran, mut lags) = mpsc::channel();
    let builder = DurableTimer::builder().topic(WAITING, |_: &Due<()>| Ok(()));
    let subject = Ours::open_with(builder, &store.name(), Arc::new(move |due| _ = ran.send(now() - due)));
    let subject = subject.map_err(Stop::because)?;
    let mut random = SplitMix64::new(SEED);
    let mut rows = 0;
    for n in run.settings.sizes(&[10_000, 100_000, 1_000_000, 10_000_000]) {
        let params = format!("rows={}", short(n));
        fill(&subject.timer, n.saturating_sub(rows), &mut random).map_err(Stop::because)?;
        rows = n;
        lives_of(&subject, &mut lags, run, IN_FLIGHT, &params).map_err(Stop::because)?;
        // The last of them run after the measurement.
        while lags.recv_timeout(Duration::from_millis(500)).is_ok() {}
        pages(&subject.timer, run, &params, &mut random).map_err(Stop::because)?;
    }
    Ok(())
}

fn fill(timer: &DurableTimer, rows: usize, random: &mut SplitMix64) -> Result<(), timer_durable::Error> {
    let mut calls = std::collections::VecDeque::new();
    let mut left = rows;
    while left > 0 || !calls.is_empty() {
        if left > 0 && calls.len() < CALLS {
            let batch = left.min(BATCH);
            let all = (0..batch).map(|_| WAITING.with(Schedule::after(random.duration(&MONTHS)), &()));
            calls.push_back(timer.schedule_many(all.collect::<Vec<_>>()));
            left -= batch;
        } else if let Some(call) = calls.pop_front() {
            call.wait()?;
        }
    }
    Ok(())
}

fn pages(timer: &DurableTimer, run: &Run, params: &str, random: &mut SplitMix64) -> Result<(), timer_durable::Error> {
    let page = |filter: &Filter, after: Option<&PendingRow>| {
        let begin = Instant::now();
        let page = timer.list(filter, after, ROWS_OF_PAGE).wait()?;
        Ok::<_, timer_durable::Error>((millis(begin.elapsed()), page))
    };
    let mut last = None;
    let mut times = Vec::new();
    for _ in 0..PAGES {
        let (time, rows) = page(&Filter::new(), last.as_ref())?;
        times.push(time);
        last = rows.into_iter().last();
    }
    figure(run, params, times, "ms-page");
    let mut times = Vec::new();
    for _ in 0..PAGES {
        let from = SystemTime::now() + random.duration(&MONTHS);
        times.push(page(&Filter::new().due(from..), None)?.0);
    }
    figure(run, params, times, "ms-page-far");
    Ok(())
}

fn figure(run: &Run, params: &str, mut times: Vec<f64>, unit: &str) {
    times.sort_by(f64::total_cmp);
    run.figure(params, quantile(&times, 0.5), unit);
}
