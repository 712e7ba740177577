//! Schedules one timeout of 10 s to an hour, alone and in batches, on an empty timer and on one
//! that holds 100k.

#![allow(clippy::unwrap_used, reason = "what cannot be set up cannot be measured")]

mod setup;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use setup::{CHUNK, WHEELS, builder, criterion, far, pending};
use std::hint::black_box;
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer};

fn schedule(c: &mut Criterion) {
    let mut group = c.benchmark_group("schedule");
    for (name, wheel) in WHEELS {
        for others in [0, 100_000] {
            let timer = builder(wheel).build().unwrap();
            let _others = pending(&timer, others);
            group.bench_function(BenchmarkId::new(name, others), |b| b.iter_custom(|times| all(&timer, times)));
            let batches = format!("{others}, in batches");
            group.bench_function(BenchmarkId::new(name, batches), |b| b.iter_custom(|times| at_once(&timer, times)));
        }
    }
    group.finish();
}

/// Returns the time of `times` calls. The timeouts of each chunk are cancelled outside of the
/// measured time.
fn all(timer: &Timer, times: u64) -> Duration {
    let (mut random, delays) = far();
    let mut handles: Vec<Timeout> = Vec::with_capacity(CHUNK as usize);
    let (mut total, mut left) = (Duration::ZERO, times);
    while left > 0 {
        let chunk = left.min(CHUNK);
        let start = Instant::now();
        for _ in 0..chunk {
            handles.push(timer.new_timeout(random.duration(&delays), |_| _ = black_box(0)).unwrap());
        }
        total += start.elapsed();
        handles.drain(..).for_each(|timeout| _ = timeout.cancel());
        left -= chunk;
    }
    total
}

/// Returns the time of `times` calls in batches.
fn at_once(timer: &Timer, times: u64) -> Duration {
    let (mut random, delays) = far();
    let (mut total, mut left) = (Duration::ZERO, times);
    while left > 0 {
        let chunk = left.min(CHUNK);
        let start = Instant::now();
        let tasks = (0..chunk).map(|_| (random.duration(&delays), |_: &Timeout| _ = black_box(0)));
        let handles: Vec<Timeout> = timer.new_timeouts(tasks).into_iter().flatten().collect();
        total += start.elapsed();
        Timeout::cancel_all(&handles);
        left -= chunk;
    }
    total
}

criterion_group! { name = benches; config = criterion(); targets = schedule }
criterion_main!(benches);
