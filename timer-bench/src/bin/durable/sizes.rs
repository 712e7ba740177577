//! E5 and E6: many pending timeouts.
//!
//! E6 adds timeouts that are due in 1 to 31 days and gives the rate of each million. Its
//! process then ends without stopping the timer, as after a kill. E5 writes one overdue timeout,
//! opens the store in a new process, and measures the time until its handler begins.

use crate::ours::{Ours, TOPIC};
use crate::stores::StoreName;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use timer_bench::durable::{now, payload, row};
use timer_bench::process;
use timer_bench::random::SplitMix64;
use timer_bench::row::{Row, short};
use timer_bench::settings::Settings;
use timer_durable::TimeoutId;
use timer_durable::transaction::{Insert, Operation};

/// The peer of all rows.
const PEER: &str = "timer";
/// The greatest number of calls without an answer.
const OPEN_CALLS: usize = 4_096;
/// The number of rows of which each has a rate.
const ROWS_PER_RATE: usize = 1_000_000;
const DAY: u64 = 86_400_000_000;

/// Fills the store.
pub(crate) fn fill(store: &StoreName, settings: &Settings, print: impl Fn(Row)) -> Result<(), String> {
    let total = settings.number("n", ROWS_PER_RATE, 20_000);
    let mut opened = store.open()?;
    let before = opened.counts().map_err(|error| error.to_string())?.pending as usize;
    let Ours(timer) = Ours::open(opened, Arc::new(|_| ()))?;
    let mut random = SplitMix64::new(before as u64);
    let mut calls = std::collections::VecDeque::new();
    let (mut begin, step) = (Instant::now(), ROWS_PER_RATE.min(total));
    for number in 1..=total {
        let delay = Duration::from_micros(DAY + random.below(30 * DAY));
        calls.push_back(timer.new_timeout_async(TOPIC, delay, &payload()));
        let open_calls = if number == total { 0 } else { OPEN_CALLS };
        while calls.len() > open_calls {
            let Some(call) = calls.pop_front() else { break };
            futures::executor::block_on(call).map_err(|error| error.to_string())?;
        }
        if number.is_multiple_of(step) {
            let rate = step as f64 / begin.elapsed().as_secs_f64();
            print(row(PEER, "E6", &format!("pending={}", short(before + number)), rate, "rows/s"));
            begin = Instant::now();
        }
    }
    let params = format!("pending={}", short(before + total));
    if let StoreName::Sqlite(file) = store {
        let bytes = std::fs::metadata(file).map_or(0, |file| file.len());
        print(row(PEER, "E6", &params, bytes as f64 / 1e6, "MB-file"));
    }
    if let Some(bytes) = process::resident() {
        print(row(PEER, "E6", &params, bytes as f64 / 1e6, "MB-resident"));
    }
    std::process::abort()
}

/// Writes the overdue timeout of [`reopen`].
pub(crate) fn write_overdue(store: &StoreName) -> Result<(), String> {
    let mut store = store.open()?;
    store.rejoin().map_err(|error| error.to_string())?;
    let mut insert = Insert::new(TimeoutId::new(), now(), TOPIC.name());
    insert.payload = payload();
    store.write(&[Operation::Insert(insert)]).map_err(|error| error.to_string())?;
    std::process::abort()
}

/// Opens the store and waits for the overdue timeout.
pub(crate) fn reopen(store: &StoreName, print: impl Fn(Row)) -> Result<(), String> {
    let resident = process::resident().unwrap_or(0);
    let (ran, runs) = mpsc::channel();
    let begin = Instant::now();
    let opened = store.open()?;
    let Ours(timer) = Ours::open(opened, Arc::new(move |_| _ = ran.send(Instant::now())))?;
    let first = runs.recv_timeout(Duration::from_secs(60)).map_err(|_| "nothing ran within 60 s")?;
    print(row(PEER, "E5", "-", (first - begin).as_secs_f64() * 1e3, "ms-first-run"));
    std::thread::sleep(Duration::from_secs(2));
    let loaded = timer.stats().in_memory;
    print(row(PEER, "E5", "-", loaded as f64, "timeouts-loaded"));
    let grown = process::resident().unwrap_or(0).saturating_sub(resident);
    print(row(PEER, "E5", "-", grown as f64 / 1e6, "MB-resident"));
    std::process::abort()
}
