//! Refused futures in a process whose timer is bounded and full. There is one such timer per
//! process, so this test is a separate binary.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::sync::mpsc::channel;
use std::time::Instant;
use support::{HOUR, MAX_WAIT, MILLI};
use timer_core::{Timer, time};

#[test]
fn a_refused_future_is_woken_although_the_timer_of_the_process_is_full() {
    Timer::set_global(Timer::builder().max_pending_timeouts(1).build().unwrap()).unwrap();
    let _full = Timer::global().new_timeout(HOUR, |_| {}).unwrap();
    let stopped = Timer::new();
    stopped.stop().unwrap();
    for sleep in [stopped.sleep(5 * MILLI), time::sleep(5 * MILLI)] {
        let deadline = sleep.deadline();
        let (sender, woken) = channel();
        std::thread::spawn(move || {
            futures::executor::block_on(sleep);
            sender.send(Instant::now()).unwrap();
        });
        assert!(woken.recv_timeout(MAX_WAIT).unwrap() >= deadline);
    }
}
