//! The first program with the timer: schedule a timeout, move one, cancel one.
//!
//! One worker thread serves all timeouts of a `Timer`; it starts with the first of them and ends
//! with the last handle.
#![forbid(unsafe_code)]

use std::sync::mpsc;
use std::time::{Duration, Instant};

use timer_core::{Timeout, Timer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timer = Timer::new();
    let start = Instant::now();
    let (say, said) = mpsc::channel();
    let task = |name: &'static str| {
        let say = say.clone();
        // Nobody listens any more only when the program has ended.
        move |_: &Timeout| _ = say.send((name, start.elapsed()))
    };

    let _tea = timer.new_timeout(Duration::from_millis(30), task("tea is ready"))?;
    let alarm = timer.new_timeout(Duration::from_millis(20), task("alarm"))?;
    let guests = timer.new_timeout(Duration::from_millis(10), task("the guests are here"))?;

    println!("the alarm is moved to 60 ms: {}", alarm.reset(Duration::from_millis(60)));
    println!("the guests are cancelled: {}", guests.cancel());

    // Each task holds a sender until it has run or was cancelled, so the loop ends with the last of
    // them.
    drop(say);
    for (name, after) in said {
        println!("{:3} ms  {name}", after.as_millis());
    }
    println!("pending: {}", timer.pending_timeouts());
    Ok(())
}
