//! Cancels one of 10,000 timeouts in random order, on the thread that scheduled them, in batches,
//! and on another thread.

#![allow(clippy::unwrap_used, reason = "what cannot be set up cannot be measured")]

mod setup;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use setup::{CHUNK, WHEELS, builder, criterion, pending};
use std::thread;
use std::time::{Duration, Instant};
use timer_bench::random::{SEED, SplitMix64};
use timer_core::{Timeout, Timer};

fn cancel(c: &mut Criterion) {
    let mut group = c.benchmark_group("cancel");
    for (name, wheel) in WHEELS {
        let timer = builder(wheel).build().unwrap();
        group.bench_function(BenchmarkId::new(name, "same thread"), |b| {
            b.iter_custom(|times| all(&timer, times, timed))
        });
        let elsewhere = |handles| thread::scope(|scope| scope.spawn(|| timed(handles)).join().unwrap());
        group.bench_function(BenchmarkId::new(name, "all at once"), |b| {
            b.iter_custom(|times| all(&timer, times, at_once))
        });
        group.bench_function(BenchmarkId::new(name, "other thread"), |b| {
            b.iter_custom(|times| all(&timer, times, elsewhere));
        });
    }
    group.finish();
}

fn all(timer: &Timer, times: u64, timed: impl Fn(Vec<Timeout>) -> Duration) -> Duration {
    let mut random = SplitMix64::new(SEED + 1);
    let (mut total, mut left) = (Duration::ZERO, times);
    while left > 0 {
        let chunk = left.min(CHUNK);
        let mut handles = pending(timer, CHUNK);
        random.shuffle(&mut handles);
        let rest = handles.split_off(chunk as usize);
        total += timed(handles);
        rest.into_iter().for_each(|timeout| _ = timeout.cancel());
        left -= chunk;
    }
    total
}

fn timed(handles: Vec<Timeout>) -> Duration {
    let start = Instant::now();
    for timeout in handles {
        timeout.cancel();
    }
    start.elapsed()
}

fn at_once(handles: Vec<Timeout>) -> Duration {
    let start = Instant::now();
    Timeout::cancel_all(&handles);
    let took = start.elapsed();
    drop(handles);
    took
}

criterion_group! { name = benches; config = criterion(); targets = cancel }
criterion_main!(benches);
