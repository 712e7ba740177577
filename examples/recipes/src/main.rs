//! The first programs of four crates. They run as they are, under Miri and under the thread
//! sanitizer. No thread of a timer outlives `main`, because Miri takes such a thread for a fault.
#![forbid(unsafe_code)]

use std::error::Error;
use std::sync::mpsc;
use std::time::Duration;

use timer_core::Timer;
use timer_core::executor::ThreadPoolExecutor;
use timer_durable::{Due, DurableTimer, MemoryStore, Topic};
use timer_metrics::TimerMetrics;
use timer_metrics::prometheus_client::encoding::text;
use timer_metrics::prometheus_client::registry::Registry;

type Result = std::result::Result<(), Box<dyn Error>>;

fn main() -> Result {
    core()?;
    executor()?;
    metrics()?;
    durable()
}

/// More than each wait here takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Cancels one timeout, moves another one, and waits until it has run.
fn core() -> Result {
    let timer = Timer::new();
    let (closed, connection) = mpsc::channel();
    let reply = timer.new_timeout(Duration::from_secs(5), |_| println!("no reply within 5 s"))?;
    let idle = timer.new_timeout(Duration::from_secs(30), move |_| _ = closed.send("idle"))?;
    assert!(reply.cancel() && idle.reset(Duration::from_millis(5)));
    assert_eq!(connection.recv()?, "idle");
    // The worker's thread has ended when this returns.
    assert!(timer.stop_and_wait(LIMIT)?.unprocessed.is_empty());
    Ok(())
}

/// Runs a timeout on another thread than the worker.
fn executor() -> Result {
    let timer = Timer::builder().executor(ThreadPoolExecutor::new(1)).build()?;
    let (ran, has_run) = mpsc::channel();
    timer.new_timeout(Duration::from_millis(5), move |_| _ = ran.send(std::thread::current().id()))?;
    assert_ne!(has_run.recv()?, std::thread::current().id());
    assert!(timer.stop_and_wait(LIMIT)?.unprocessed.is_empty());
    Ok(())
}

/// Exports the figures of a timer, without the server of `timer-live`.
fn metrics() -> Result {
    let timer = Timer::builder().name("rpc").build()?;
    let mut registry = Registry::default();
    TimerMetrics::from_iter([&timer]).register(&mut registry);
    let timeout = timer.new_timeout(LIMIT, |_| ())?;
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    assert!(text.contains("timer=\"rpc\""), "{text}");
    assert!(timeout.cancel());
    assert!(timer.stop_and_wait(LIMIT)?.unprocessed.is_empty());
    Ok(())
}

/// Closes an order with a durable timeout, first on virtual time and then on a keeper's thread. The
/// clock of this store stands still unless a driver moves it, so the second timeout is due at once.
fn durable() -> Result {
    const CLOSE: Topic<String> = Topic::new("order.close");
    let builder = || {
        let (closed, order) = mpsc::channel();
        let close = move |due: &Due<String>| {
            _ = closed.send(due.payload().clone());
            Ok(())
        };
        (DurableTimer::builder().topic(CLOSE, close), order)
    };
    let (manual, order) = builder();
    let (timer, mut driver) = manual.build_manual(MemoryStore::new())?;
    timer.new_timeout(CLOSE, Duration::from_secs(1800), "17").wait()?;
    assert_eq!(driver.advance(Duration::from_secs(1800)), 1);
    assert_eq!(order.recv()?, "17");

    let (threaded, order) = builder();
    let timer = threaded.open(MemoryStore::new()).wait()?;
    timer.new_timeout(CLOSE, Duration::ZERO, "18").wait()?;
    assert_eq!(order.recv()?, "18");
    assert_eq!(timer.stop(LIMIT).wait()?.unfinished, 0);
    Ok(())
}
