//! The same program on several executors, none of which has a timer.

use crate::support::wakers::{accounts, block_on};
use crate::support::*;
use std::future::{pending, poll_fn};
use std::task::Poll;
use std::time::Instant;
use timer_core::{Elapsed, Timer};

/// Sleeps, times out, ticks, and answers in time.
async fn program(timer: Timer) {
    let before = Instant::now();
    timer.sleep(3 * MILLI).await;
    assert!(before.elapsed() >= 3 * MILLI, "the sleep ended early");
    assert_eq!(timer.timeout(2 * MILLI, pending::<()>()).await, Err(Elapsed::new()));
    for _ in 0..100 {
        let mut yielded = false;
        let inner = poll_fn(|cx| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        timer.timeout(30 * SECOND, inner).await.unwrap();
    }
    let mut ticks = timer.interval(MILLI);
    let first = ticks.tick().await;
    for _ in 0..3 {
        let due = ticks.tick().await;
        assert!(due > first && Instant::now() >= due);
    }
    let mut idle = timer.sleep(HOUR);
    assert!(timer.timeout(MILLI, &mut idle).await.is_err());
    idle.reset_after(MILLI);
    idle.await;
}

/// Runs many programs at once on the executor of `spawn`.
fn many(timer: &Timer, mut spawn: impl FnMut(std::pin::Pin<Box<dyn Future<Output = ()> + Send>>)) {
    for _ in 0..20 {
        spawn(Box::pin(program(timer.clone())));
    }
}

#[track_caller]
fn nothing_is_left(timer: &Timer) {
    let (scheduled, pending, expired, cancelled) = accounts(timer);
    assert_eq!((pending, expired + cancelled), (0, scheduled));
    assert_eq!(timer.stats().task_panics, 0);
}

fn run_on_tokio(runtime: &tokio::runtime::Runtime) {
    let timer = Timer::new();
    let mut tasks = Vec::new();
    many(&timer, |task| tasks.push(runtime.spawn(task)));
    runtime.block_on(async {
        program(timer.clone()).await;
        for task in tasks {
            task.await.unwrap();
        }
    });
    nothing_is_left(&timer);
}

#[test]
fn the_program_runs_on_tokio_with_one_thread() {
    run_on_tokio(&tokio::runtime::Builder::new_current_thread().build().unwrap());
}

#[test]
fn the_program_runs_on_tokio_with_many_threads() {
    run_on_tokio(&tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().unwrap());
}

#[test]
fn the_program_runs_on_smol() {
    let timer = Timer::new();
    let mut tasks = Vec::new();
    many(&timer, |task| tasks.push(smol::spawn(task)));
    smol::block_on(async {
        program(timer.clone()).await;
        for task in tasks {
            task.await;
        }
    });
    nothing_is_left(&timer);
}

#[test]
fn the_program_runs_on_the_futures_executor() {
    let timer = Timer::new();
    futures::executor::block_on(program(timer.clone()));
    let mut pool = futures::executor::LocalPool::new();
    let spawner = pool.spawner();
    many(&timer, |task| futures::task::SpawnExt::spawn(&spawner, task).unwrap());
    pool.run();
    nothing_is_left(&timer);
}

#[test]
fn the_program_runs_on_a_handmade_executor() {
    let timer = Timer::new();
    block_on(program(timer.clone()));
    nothing_is_left(&timer);
}

#[test]
fn the_program_runs_on_a_timer_with_a_pool() {
    let pool = timer_core::executor::ThreadPoolExecutor::new(2);
    let timer = Timer::builder().executor(pool).build().unwrap();
    block_on(program(timer.clone()));
    nothing_is_left(&timer);
}
