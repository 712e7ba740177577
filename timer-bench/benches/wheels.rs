//! The wheels alone with 100k entries of 10 s to an hour at ticks of 1 ms: insert all, remove all
//! in random order, expire all by hops. The figure is for all of them, and the throughput is per
//! entry.

#![allow(clippy::unwrap_used, reason = "what cannot be set up cannot be measured")]

mod setup;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use setup::criterion;
use timer_bench::random::{SEED, SplitMix64};
use timer_core::wheel::{HashedWheel, HierarchicalWheel, Key, TimingWheel};

const ENTRIES: u64 = 100_000;

fn wheels(c: &mut Criterion) {
    operations(c, "hierarchical", HierarchicalWheel::new);
    operations(c, "hashed", || HashedWheel::new(32_768));
}

fn operations<W: TimingWheel<u64>>(c: &mut Criterion, name: &str, make: impl Fn() -> W) {
    let filled = || {
        let mut wheel = make();
        let mut keys = fill(&mut wheel);
        SplitMix64::new(SEED + 1).shuffle(&mut keys);
        (wheel, keys)
    };
    let mut group = c.benchmark_group("wheels");
    group.throughput(Throughput::Elements(ENTRIES));
    group.bench_function(BenchmarkId::new("insert", name), |b| {
        b.iter_batched_ref(&make, fill, BatchSize::LargeInput);
    });
    group.bench_function(BenchmarkId::new("remove", name), |b| {
        b.iter_batched_ref(
            filled,
            |(wheel, keys)| keys.drain(..).filter_map(|key| wheel.remove(key)).sum::<u64>(),
            BatchSize::LargeInput,
        );
    });
    group.bench_function(BenchmarkId::new("expire", name), |b| {
        b.iter_batched_ref(filled, |(wheel, _)| expire(wheel), BatchSize::LargeInput);
    });
    group.finish();
}

fn fill<W: TimingWheel<u64>>(wheel: &mut W) -> Vec<Key> {
    let mut random = SplitMix64::delays(0);
    (0..ENTRIES).map(|value| wheel.insert(10_000 + random.below(3_590_000), value)).collect()
}

fn expire<W: TimingWheel<u64>>(wheel: &mut W) -> u64 {
    let mut sum = 0;
    while let Some(next) = wheel.next_expiry() {
        wheel.advance(next, |value| sum += value);
    }
    sum
}

criterion_group! { name = benches; config = criterion(); targets = wheels }
criterion_main!(benches);
