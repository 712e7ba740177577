//! Runtimes that other code has built, whose clock only tokio's timer follows.

use ::tokio::runtime::{Builder, Runtime};
use ::tokio::time::Instant as TokioInstant;
use std::time::{Duration, Instant};
use timer_adapters::tokio::time::{MissedTickBehavior, interval, interval_at, sleep, sleep_until, timeout, timeout_at};

const SECOND: Duration = Duration::from_secs(1);

/// A function of a library that has changed its timer by one line.
async fn retry_after(delay: Duration) {
    sleep(delay).await;
}

fn paused() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

#[test]
fn a_library_takes_part_in_a_paused_test_of_its_user() {
    let real = Instant::now();
    paused().block_on(async {
        let begin = TokioInstant::now();
        ::tokio::time::timeout(60 * SECOND, retry_after(3 * SECOND)).await.unwrap();
        assert_eq!(begin.elapsed(), 3 * SECOND);
        timeout(SECOND, retry_after(3 * SECOND)).await.unwrap_err();
        timeout_at(begin + 5 * SECOND, std::future::pending::<()>()).await.unwrap_err();
        assert_eq!(timeout(SECOND, async { 7 }).await, Ok(7));
        assert_eq!(begin.elapsed(), 5 * SECOND);
        let mut sleep = std::pin::pin!(sleep_until(begin));
        sleep.as_mut().reset(begin + 6 * SECOND);
        assert!(!sleep.is_elapsed() && sleep.deadline() == begin + 6 * SECOND);
        sleep.as_mut().await;
        assert!(sleep.is_elapsed());
    });
    assert!(real.elapsed() < super::LONG);
}

#[test]
fn an_interval_ticks_on_the_clock_of_the_runtime() {
    paused().block_on(async {
        let begin = TokioInstant::now();
        let mut ticks = interval(SECOND);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        assert_eq!([ticks.tick().await, ticks.tick().await], [begin, begin + SECOND]);
        sleep(3500 * Duration::from_millis(1)).await;
        assert_eq!([ticks.tick().await, ticks.tick().await], [begin + 2 * SECOND, begin + 5 * SECOND]);
        ticks.reset_at(begin + 60 * SECOND);
        assert_eq!(ticks.tick().await, begin + 60 * SECOND);
        ticks.reset();
        assert_eq!(ticks.tick().await, begin + 61 * SECOND);
        ticks.reset_immediately();
        assert_eq!(ticks.tick().await, begin + 61 * SECOND);
        assert_eq!(interval_at(begin + 70 * SECOND, Duration::ZERO).tick().await, begin + 70 * SECOND);
        let quarter = Duration::from_micros(250);
        let mut ticks = interval_at(begin + 70 * SECOND, quarter);
        assert_eq!([ticks.tick().await, ticks.tick().await], [0, 1].map(|nth| begin + 70 * SECOND + nth * quarter));
        assert_eq!(begin.elapsed().as_secs(), 70);
    });
}

#[test]
fn a_simulated_host_has_its_own_clock_also_after_it_was_built_again() {
    let advance = |hosts: &[&Runtime]| {
        let tick = async || ::tokio::time::sleep(Duration::from_millis(1)).await;
        hosts.iter().for_each(|host| host.block_on(tick()));
    };
    let server = async || {
        let begin = TokioInstant::now();
        sleep_until(begin + 2 * SECOND).await;
        begin.elapsed()
    };
    let [other, mut host] = [paused(), paused()];
    for _ in 0..2 {
        let task = host.spawn(server());
        for _ in 0..1_999 {
            advance(&[&host, &other]);
        }
        assert!(!task.is_finished());
        advance(&[&host, &other]);
        advance(&[&host, &other]);
        assert_eq!(other.block_on(task).unwrap(), 2 * SECOND);
        // Its clock starts again, behind the one of the other host.
        host = paused();
    }
}

#[test]
fn a_clock_that_a_program_stops_later_is_tokios() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let real = Instant::now();
    runtime.block_on(async {
        sleep(Duration::from_millis(1)).await;
        ::tokio::time::pause();
        sleep(3600 * SECOND).await;
        ::tokio::time::resume();
        let begin = TokioInstant::now();
        sleep_until(begin + Duration::from_millis(3)).await;
        assert!(begin.elapsed() >= Duration::from_millis(3));
    });
    assert!(real.elapsed() < super::LONG);
}

#[test]
fn the_names_of_tokios_module_do_not_enable_virtual_time() {
    // A feature `tokio/..` of the dependency enables the feature `tokio` of this crate as well.
    assert!(!include_str!("../../Cargo.toml").contains("\"tokio/"));
}
