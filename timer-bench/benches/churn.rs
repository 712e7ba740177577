//! Contended use. Each of 1, 2 and 4 threads repeatedly schedules a timeout of 30 s and cancels the
//! oldest of its thousand. The figure is wall time per pair over all threads.

#![allow(clippy::unwrap_used, reason = "what cannot be set up cannot be measured")]

mod setup;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use setup::{WHEELS, builder, criterion};
use std::collections::VecDeque;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer};

const WINDOW: usize = 1_000;
const TIMEOUT: Duration = Duration::from_secs(30);

fn churn(c: &mut Criterion) {
    let mut group = c.benchmark_group("churn");
    for (name, wheel) in WHEELS {
        for threads in [1, 2, 4] {
            let timer = builder(wheel).build().unwrap();
            group.bench_function(BenchmarkId::new(name, format!("{threads} threads")), |b| {
                b.iter_custom(|times| all(&timer, threads, times));
            });
        }
    }
    group.finish();
}

/// Returns the time from the first start to the last end.
fn all(timer: &Timer, threads: u64, times: u64) -> Duration {
    let gate = Barrier::new(threads as usize);
    let one = |index: u64| {
        let mut window: VecDeque<Timeout> = (0..WINDOW).map(|_| schedule(timer)).collect();
        gate.wait();
        let start = Instant::now();
        for _ in 0..times * (index + 1) / threads - times * index / threads {
            window.push_back(schedule(timer));
            window.pop_front().unwrap().cancel();
        }
        let end = Instant::now();
        window.into_iter().for_each(|timeout| _ = timeout.cancel());
        (start, end)
    };
    thread::scope(|scope| {
        let one = &one;
        let spans: Vec<_> = (0..threads).map(|index| scope.spawn(move || one(index))).collect();
        let spans: Vec<_> = spans.into_iter().map(|span| span.join().unwrap()).collect();
        let first = spans.iter().map(|(start, _)| *start).min().unwrap();
        spans.iter().map(|(_, end)| *end).max().unwrap() - first
    })
}

fn schedule(timer: &Timer) -> Timeout {
    timer.new_timeout(TIMEOUT, |_| {}).unwrap()
}

criterion_group! { name = benches; config = criterion(); targets = churn }
criterion_main!(benches);
