//! Asks for the next expiry with 100k pending, on a timer with virtual time and on the wheels
//! alone. The wheels are also asked right after the removal of the earliest entry, which may
//! invalidate a cached minimum.

#![allow(clippy::unwrap_used, reason = "what cannot be set up cannot be measured")]

mod setup;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use setup::{WHEELS, builder, criterion, pending};
use std::hint::black_box;
use timer_bench::random::SplitMix64;
use timer_core::wheel::{HashedWheel, HierarchicalWheel, TimingWheel};

const PENDING: u64 = 100_000;

fn next_expiry(c: &mut Criterion) {
    let mut group = c.benchmark_group("next_expiry");
    for (name, wheel) in WHEELS {
        let (timer, driver) = builder(wheel).build_manual().unwrap();
        let _pending = pending(&timer, PENDING);
        group.bench_function(BenchmarkId::new("timer", name), |b| b.iter(|| black_box(&driver).next_expiry()));
    }
    group.finish();
    wheel(c, "hierarchical", HierarchicalWheel::new());
    wheel(c, "hashed", HashedWheel::new(32_768));
}

fn wheel(c: &mut Criterion, name: &str, mut wheel: impl TimingWheel<u64>) {
    let mut random = SplitMix64::delays(0);
    for value in 0..PENDING {
        wheel.insert(10_000 + random.below(3_590_000), value);
    }
    let mut group = c.benchmark_group("next_expiry");
    group.bench_function(BenchmarkId::new("wheel", name), |b| b.iter(|| black_box(&wheel).next_expiry()));
    group.bench_function(BenchmarkId::new("wheel, insert and remove the earliest before", name), |b| {
        b.iter(|| {
            let key = wheel.insert(black_box(5_000), 0);
            wheel.remove(key);
            wheel.next_expiry()
        });
    });
    group.finish();
}

criterion_group! { name = benches; config = criterion(); targets = next_expiry }
criterion_main!(benches);
