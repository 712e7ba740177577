//! What the environment may say.

use std::time::Duration;

/// A number from the environment; hexadecimal if it begins with `0x`.
pub(crate) fn setting(name: &str, otherwise: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return otherwise };
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.unwrap_or_else(|_| panic!("{name} is {text:?}: a number is wanted, decimal or after 0x"))
}

pub(crate) fn seed() -> u64 {
    let seed = setting("TIMER_STRESS_SEED", 0x7135_0A4E);
    println!("TIMER_STRESS_SEED={seed:#x}");
    seed
}

/// How often each round of the tests is to come.
pub(crate) fn times() -> usize {
    setting("TIMER_STRESS_ROUNDS", 1) as usize
}

/// How long the long storm is to last.
pub(crate) fn minutes() -> Duration {
    let Ok(text) = std::env::var("TIMER_STRESS_MINUTES") else { return Duration::from_secs(60) };
    let minutes = text.parse().ok().and_then(|minutes: f64| Duration::try_from_secs_f64(minutes * 60.0).ok());
    minutes.unwrap_or_else(|| panic!("TIMER_STRESS_MINUTES is {text:?}: a number of minutes is wanted"))
}
