//! tokio programs whose clock is not paused.

use ::tokio::task::{spawn, spawn_blocking};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timer_adapters::tokio::{advance, paused, resume};
use timer_core::{Timeout, time};

const SECOND: Duration = Duration::from_secs(1);

/// Computes without a pause.
fn compute(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {}
}

/// Asserts that a delay of 10 ms after a computation is not early.
async fn assert_not_early<F: Future>(name: &str, delayed: impl FnOnce() -> F) {
    compute(Duration::from_millis(20));
    let begin = Instant::now();
    delayed().await;
    assert!(begin.elapsed() >= Duration::from_millis(10), "{name}: {:?}", begin.elapsed());
}

#[test]
fn no_deadline_of_a_running_clock_is_early() {
    const DELAY: Duration = Duration::from_millis(10);
    let runtime = timer_adapters::tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let timer = timer_core::Timer::current();
        assert_not_early("sleep", || time::sleep(DELAY)).await;
        assert_not_early("timeout", || timer.timeout(DELAY, std::future::pending::<()>())).await;
        let mut sleep = time::sleep(Duration::ZERO);
        let reset = || {
            sleep.reset_after(DELAY);
            sleep
        };
        assert_not_early("reset", reset).await;
        let mut queue = timer_core::delay_queue::DelayQueue::new(&timer);
        let insert = async || {
            queue.insert((), DELAY);
            queue.next().await
        };
        assert_not_early("item", insert).await;
        let scheduling = async || {
            let task = async { time::sleep(DELAY).await };
            spawn(task).await
        };
        assert_not_early("task", scheduling).await;
        let timer = timer.clone();
        let (ended, has_ended) = ::tokio::sync::oneshot::channel();
        let thread = spawn_blocking(move || {
            compute(Duration::from_millis(20));
            let begin = Instant::now();
            timer.new_timeout(DELAY, move |_| ended.send(begin.elapsed()).unwrap()).unwrap();
        });
        thread.await.unwrap();
        assert!(has_ended.await.unwrap() >= DELAY, "another thread");
    });
}

#[test]
fn no_delay_is_early_on_a_running_clock_of_two_threads() {
    let runtime = timer_adapters::tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let delays = || {
        runtime.block_on(async {
            for _ in 0..20 {
                compute(Duration::from_micros(300));
                let begin = Instant::now();
                time::sleep(Duration::from_millis(3)).await;
                assert!(begin.elapsed() >= Duration::from_millis(3), "{:?}", begin.elapsed());
            }
        });
    };
    std::thread::scope(|scope| [(); 2].map(|()| scope.spawn(delays)).map(|thread| thread.join().unwrap()));
}

#[test]
fn a_clock_that_tokio_itself_stops_is_followed() {
    let runtime = timer_adapters::tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        ::tokio::time::pause();
        compute(Duration::from_millis(5));
        let begin = ::tokio::time::Instant::now();
        time::sleep(3600 * SECOND).await;
        assert!(begin.elapsed() >= 3600 * SECOND);
        ::tokio::time::advance(3600 * SECOND).await;
        ::tokio::time::resume();
        time::sleep(Duration::from_millis(3)).await;
        assert!(begin.elapsed() >= 7200 * SECOND);
    });
}

#[test]
fn a_timeout_that_runs_when_the_clock_begins_to_run_makes_no_delay_early() {
    const DELAY: Duration = Duration::from_millis(10);
    paused(async {
        let timer = timer_core::Timer::current();
        let (ended, has_ended) = ::tokio::sync::oneshot::channel();
        let task = move |me: &Timeout| {
            compute(Duration::from_millis(20));
            let begin = Instant::now();
            me.timer().unwrap().new_timeout(DELAY, move |_| ended.send(begin.elapsed()).unwrap()).unwrap();
        };
        timer.new_timeout(Duration::ZERO, task).unwrap();
        resume();
        assert!(has_ended.await.unwrap() >= DELAY);
    });
}

#[test]
fn a_clock_that_has_stood_still_makes_no_sleep_late() {
    let runtime = timer_adapters::tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        time::sleep(Duration::from_millis(1)).await;
        ::tokio::time::pause();
        compute(2 * SECOND);
        ::tokio::time::resume();
        let begin = Instant::now();
        time::sleep(Duration::from_millis(3)).await;
        assert!((Duration::from_millis(3)..SECOND).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    });
}

#[test]
fn a_sleep_on_a_running_clock_runs_no_timeout_on_the_thread_that_makes_it() {
    let runtime = timer_adapters::tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let timer = timer_core::Timer::current();
        let lock = Arc::new(Mutex::new(()));
        let (seen, has_seen) = ::tokio::sync::oneshot::channel();
        let is_free = lock.clone();
        let task = move |_: &Timeout| seen.send(is_free.try_lock().is_ok()).unwrap();
        time::sleep(Duration::from_millis(1)).await;
        timer.new_timeout(Duration::from_millis(1), task).unwrap();
        let guard = lock.lock().unwrap();
        compute(Duration::from_millis(3));
        let sleep = timer_adapters::tokio::time::sleep(Duration::from_millis(3));
        drop(guard);
        sleep.await;
        assert!(has_seen.await.unwrap());
    });
}

#[test]
fn a_clock_runs_on_after_the_end_of_the_timers_time() {
    const YEARS: Duration = Duration::from_secs(600 * 365 * 86_400);
    paused(async {
        advance(YEARS).await;
        resume();
        let begin = ::tokio::time::Instant::now();
        ::tokio::time::sleep(Duration::from_millis(3)).await;
        assert!(begin.elapsed() >= Duration::from_millis(3));
    });
}

/// A file of a program that changed its timer by one line.
mod ported {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use timer_adapters::tokio;
    use tokio::time::{self, Duration};

    #[tokio::test]
    async fn a_clock_that_stands_between_two_milliseconds_keeps_the_order_of_deadlines() {
        let ms = Duration::from_millis;
        time::sleep(ms(1)).await;
        time::pause();
        let task = tokio::spawn(time::sleep(ms(100)));
        time::sleep(ms(101)).await;
        assert!(task.is_finished());
        let reply = tokio::spawn(time::sleep(ms(100)));
        time::timeout(ms(101), reply).await.expect("the reply comes first").unwrap();
        let counter = Arc::new(AtomicUsize::new(0));
        let counted = counter.clone();
        tokio::spawn(async move {
            let mut ticks = time::interval(ms(10));
            loop {
                ticks.tick().await;
                counted.fetch_add(1, Relaxed);
            }
        });
        for ticks in 2..=4 {
            time::sleep(ms(11)).await;
            assert_eq!(counter.load(Relaxed), ticks);
        }
    }

    async fn answer() -> u32 {
        time::sleep(Duration::from_secs(3600)).await;
        42
    }

    /// The example of the chapter `from_tokio`.
    mod tests {
        use super::*;
        use timer_adapters::tokio;

        #[tokio::test(start_paused = true)]
        async fn the_answer_takes_an_hour() {
            let begin = tokio::time::Instant::now();
            assert_eq!(answer().await, 42);
            assert_eq!(begin.elapsed().as_secs(), 3600);
        }
    }
}
