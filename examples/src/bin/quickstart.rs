//! The first program of the README. One timeout is cancelled, and one is moved and fires.
//!
//! One worker thread serves all timeouts of a `Timer`. It starts with the first timeout and ends
//! with the last handle.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use examples::cli::{self, Args, Checks};

const USAGE: &str = "\
Cancels one timeout, and moves another one that then fires.

Usage: quickstart [OPTIONS]

  -h, --help            print this
";

fn main() -> ExitCode {
    cli::main("quickstart", USAGE, Args::none, |()| first_program().map(|()| Checks::default()))
}

use std::sync::mpsc;
use std::time::{Duration, Instant};

use timer_core::Timer;

fn first_program() -> Result<(), Box<dyn std::error::Error>> {
    let timer = Timer::new();
    let (closed, connection) = mpsc::channel();

    let reply = timer.new_timeout(Duration::from_secs(5), |_| println!("no reply within 5 s"))?;
    let idle = timer.new_timeout(Duration::from_secs(30), move |_| {
        println!("idle for 50 ms, so the connection is closed");
        _ = closed.send(());
    })?;

    println!("the reply came in time: {}", reply.cancel()); // drops the task at once
    let packet = Instant::now();
    println!("a packet came in time: {}", idle.reset(Duration::from_millis(50))); // soon, for this demo

    connection.recv()?; // waits until the timeout has fired on the timer's own thread
    println!("closed {:.1?} after the packet, {} pending", packet.elapsed(), timer.pending_timeouts());
    Ok(())
}
