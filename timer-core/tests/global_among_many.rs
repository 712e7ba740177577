//! Promise 6. The timer of the process is built with nothing held, although the warning about many
//! timers may call user code then. That warning comes once per process, so this test is a separate
//! binary.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::sync::mpsc::channel;
use std::thread;
use support::{MAX_WAIT, log, named};
use timer_core::Timer;

#[test]
fn a_subscriber_may_use_the_timer_of_the_process_while_it_is_built() {
    let _many: Vec<Timer> = (0..64).map(|_| named("many")).collect();
    let (sender, warned) = channel();
    log::listen("global", move |_| _ = sender.send(Timer::global().name().to_owned()));
    let (sender, built) = channel();
    thread::spawn(move || sender.send(Timer::global().name().to_owned()));
    assert_eq!(built.recv_timeout(MAX_WAIT).as_deref(), Ok("global"));
    assert_eq!(warned.recv_timeout(MAX_WAIT).as_deref(), Ok("global"));
}
