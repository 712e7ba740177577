//! Fires 10,000 timeouts on virtual time, a hundred in each of a hundred milliseconds, per wheel
//! and executor, until the last task has run. The figure is for all of them, and the throughput is
//! per task.

#![allow(clippy::unwrap_used, reason = "what cannot be set up cannot be measured")]

mod setup;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use setup::{CHUNK, WHEELS, builder, criterion};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::yield_now;
use std::time::{Duration, Instant};
use timer_core::{ManualDriver, Timer};
use timer_executor::{ImmediateExecutor, RayonExecutor, TaskExecutor, ThreadPoolExecutor};

fn expire(c: &mut Criterion) {
    let mut group = c.benchmark_group("expire");
    group.throughput(Throughput::Elements(CHUNK));
    for (name, wheel) in WHEELS {
        let executors: [(&str, Arc<dyn TaskExecutor>); 3] = [
            ("immediate", Arc::new(ImmediateExecutor)),
            ("rayon", Arc::new(RayonExecutor::global())),
            ("threadpool", Arc::new(ThreadPoolExecutor::new(2))),
        ];
        for (executor, run_by) in executors {
            let (timer, mut driver) = builder(wheel).executor(run_by).build_manual().unwrap();
            group.bench_function(BenchmarkId::new(name, executor), |b| {
                b.iter_custom(|times| (0..times).map(|_| once(&timer, &mut driver)).sum());
            });
        }
    }
    group.finish();
}

fn once(timer: &Timer, driver: &mut ManualDriver) -> Duration {
    let ran = Arc::new(AtomicU64::new(0));
    for number in 0..CHUNK {
        let ran = ran.clone();
        let delay = Duration::from_millis(1 + number % 100);
        timer.new_timeout(delay, move |_| _ = ran.fetch_add(1, Ordering::Relaxed)).unwrap();
    }
    let start = Instant::now();
    driver.advance(Duration::from_millis(100));
    while ran.load(Ordering::Relaxed) < CHUNK {
        yield_now();
    }
    start.elapsed()
}

criterion_group! { name = benches; config = criterion(); targets = expire }
criterion_main!(benches);
