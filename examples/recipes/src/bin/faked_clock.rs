//! Wakes the worker twice for timeouts of a second while it has others, and prints the CPU seconds
//! that the process has used after three seconds of the system's own clock.
//!
//! `faketime -f '+0 x10' faked_clock` makes the clock of `std` ten times as fast.
#![forbid(unsafe_code)]

use std::fs;
use std::time::Duration;

use timer_core::Timer;

/// Returns the seconds since the machine has started, which no library fakes.
fn uptime() -> f64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split(' ').next().and_then(|seconds| seconds.parse().ok()).unwrap_or_default()
}

/// Returns the CPU seconds of this process, of which the system counts hundredths.
fn cpu() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields[11..13].iter().filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let begin = uptime();
    let timer = Timer::new();
    timer.new_timeout(Duration::from_secs(3), |_| ())?;
    while uptime() < begin + 0.5 {
        std::thread::sleep(Duration::from_millis(100));
    }
    // With the fast clock, the instant of this deadline has passed already.
    timer.new_timeout(Duration::from_secs(2), |_| ())?;
    while uptime() < begin + 3.0 {
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("{}", cpu());
    Ok(())
}
