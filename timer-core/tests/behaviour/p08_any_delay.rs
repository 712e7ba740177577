//! Promise 8. Any delay is valid, such as zero, 1 ns or `Duration::MAX`. At every uptime, far
//! timeouts wait and do not wrap, run early or get lost. The model tests this on virtual time, and
//! this module on ticks.

use crate::support::*;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use timer_core::Timer;

#[test]
fn extreme_delays_harm_no_worker_of_any_tick() {
    for wheel in WHEELS {
        for tick in [MICRO, Duration::from_micros(1_500), YEAR] {
            let timer = Timer::builder().wheel(wheel).tick_duration(tick).build().unwrap();
            let far = [Duration::MAX, Duration::MAX - NANO, Duration::from_nanos(u64::MAX), 500 * YEAR]
                .map(|delay| accepted(timer.new_timeout(delay, |_| panic!("early"))));
            let farthest = Instant::now() + 100 * YEAR;
            accepted(timer.new_timeout_at(farthest, |_| panic!("early")));
            assert!(far.iter().all(|timeout| timeout.deadline() > Instant::now() + 100 * YEAR));
            let (ran, received) = channel();
            accepted(timer.new_timeout(Duration::ZERO, move |_| ran.send(()).unwrap()));
            next(&received);
            assert!(far[0].reset(Duration::MAX) && far[1].cancel());
            assert_eq!(timer.stop().unwrap().len(), 4);
            assert_eq!(timer.stats().task_panics, 0);
        }
    }
}
