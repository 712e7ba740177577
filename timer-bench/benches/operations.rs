//! The operations of a timer one by one, on both wheels. They show changes of a few percent on an
//! idle machine. `cargo bench -p timer-bench --features criterion` runs them.

#![allow(clippy::unwrap_used, reason = "what cannot be set up cannot be measured")]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::collections::VecDeque;
use std::time::Duration;
use timer_bench::random::{SplitMix64, seconds};
use timer_core::{Timeout, Timer, WheelKind};

/// The number of timeouts that are expired between two readings of the clock.
const CHUNK: u64 = 10_000;
const TIMEOUT: Duration = Duration::from_secs(30);
/// The hashed wheel turns once in about 30 s.
const WHEELS: [(&str, WheelKind); 2] =
    [("hierarchical", WheelKind::Hierarchical), ("hashed", WheelKind::Hashed { ticks_per_wheel: 32_768 })];

fn operations(c: &mut Criterion) {
    for (name, wheel) in WHEELS {
        let timer = Timer::builder().wheel(wheel).build().unwrap();
        let schedule = |delay| timer.new_timeout(delay, |_| {}).unwrap();
        let mut random = SplitMix64::delays(0);
        let far = seconds(10, 3600);
        c.bench_function(&format!("schedule/{name}"), |b| {
            b.iter_batched(|| random.duration(&far), schedule, BatchSize::NumIterations(CHUNK));
        });
        let mut window: VecDeque<Timeout> = (0..1_000).map(|_| schedule(TIMEOUT)).collect();
        c.bench_function(&format!("pair/{name}"), |b| {
            b.iter(|| {
                window.push_back(schedule(TIMEOUT));
                window.pop_front().unwrap().cancel()
            });
        });
        let mut at = 0;
        c.bench_function(&format!("reset/{name}"), |b| {
            b.iter(|| {
                at = (at + 1) % window.len();
                window[at].reset(TIMEOUT)
            });
        });
        let mut group = c.benchmark_group("expire");
        group.throughput(Throughput::Elements(CHUNK));
        let (timer, mut driver) = Timer::builder().wheel(wheel).build_manual().unwrap();
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            let fill = || {
                (0..CHUNK).for_each(|n| drop(timer.new_timeout(Duration::from_millis(1 + n % 100), |_| {}).unwrap()))
            };
            b.iter_batched(fill, |()| driver.advance(Duration::from_millis(100)), BatchSize::PerIteration);
        });
        group.finish();
    }
}

fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! { name = benches; config = criterion(); targets = operations }
criterion_main!(benches);
