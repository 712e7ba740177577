//! Settings of the tests in the environment.

use std::time::Duration;

/// Reads a number from the environment, hexadecimal if it begins with `0x`.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return default };
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.unwrap_or_else(|_| panic!("{name} is {text:?}, not a decimal number or a hexadecimal one after 0x"))
}

pub(crate) fn seed() -> u64 {
    let seed = setting("TIMER_STRESS_SEED", 0x7135_0A4E);
    println!("TIMER_STRESS_SEED={seed:#x}");
    seed
}

/// Returns how often each round of the tests is repeated.
pub(crate) fn repetitions() -> usize {
    setting("TIMER_STRESS_ROUNDS", 1) as usize
}

/// Returns the duration of the long storm.
pub(crate) fn minutes() -> Duration {
    let Ok(text) = std::env::var("TIMER_STRESS_MINUTES") else { return Duration::from_secs(60) };
    let minutes = text.parse().ok().and_then(|minutes: f64| Duration::try_from_secs_f64(minutes * 60.0).ok());
    minutes.unwrap_or_else(|| panic!("TIMER_STRESS_MINUTES is {text:?}, not a number of minutes"))
}
