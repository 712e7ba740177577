//! Moves a timeout to a later time, as every packet does with its connection's timeout of 30 s, and
//! to an earlier one.

#![allow(clippy::unwrap_used, reason = "what cannot be set up cannot be measured")]

mod setup;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use setup::{WHEELS, builder, criterion};
use std::time::Duration;
use timer_core::{Timeout, Timer};

const CONNECTIONS: usize = 1_000;

fn reset(c: &mut Criterion) {
    let mut group = c.benchmark_group("reset");
    for (name, wheel) in WHEELS {
        let timer = builder(wheel).build().unwrap();
        let later = Duration::from_secs(30);
        let (handles, mut next) = (connections(&timer, later), 0);
        group.bench_function(BenchmarkId::new(name, "later"), |b| {
            b.iter(|| {
                next = if next + 1 == CONNECTIONS { 0 } else { next + 1 };
                handles[next].reset(later)
            });
        });
        // In each round, the deadline of a connection is about 10 ms earlier than in the round
        // before.
        let (hour, step) = (Duration::from_secs(3600), Duration::from_micros(10));
        let (handles, mut next, mut delay) = (connections(&timer, hour), 0, hour);
        group.bench_function(BenchmarkId::new(name, "earlier"), |b| {
            b.iter(|| {
                next = if next + 1 == CONNECTIONS { 0 } else { next + 1 };
                delay = delay.checked_sub(step).unwrap_or(hour);
                handles[next].reset(delay)
            });
        });
    }
    group.finish();
}

fn connections(timer: &Timer, delay: Duration) -> Vec<Timeout> {
    (0..CONNECTIONS).map(|_| timer.new_timeout(delay, |_| {}).unwrap()).collect()
}

criterion_group! { name = benches; config = criterion(); targets = reset }
criterion_main!(benches);
