//! The first program with the timer, as README shows it: a timeout that is cancelled, and one that is moved and fires.
//!
//! One worker thread serves all timeouts of a `Timer`; it starts with the first of them and ends
//! with the last handle.
#![forbid(unsafe_code)]

use std::sync::mpsc;
use std::time::Duration;

use timer_core::Timer;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timer = Timer::new();
    let (closed, connection) = mpsc::channel();

    let reply = timer.new_timeout(Duration::from_secs(5), |_| println!("no reply within 5 s"))?;
    let idle = timer.new_timeout(Duration::from_secs(30), move |_| {
        println!("idle for 50 ms: closed");
        _ = closed.send(());
    })?;

    println!("the reply came in time: {}", reply.cancel()); // the task is dropped here and now
    println!("a packet came in time: {}", idle.reset(Duration::from_millis(50))); // soon, to be seen

    connection.recv()?; // until the timeout has fired, on the timer's own thread
    println!("{} pending, late by {:?}", timer.pending_timeouts(), timer.stats().timeout_lag.max());
    Ok(())
}
