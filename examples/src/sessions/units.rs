//! Numbers, times and sizes in readable form.

use std::time::Duration;

const DAY: u64 = 86_400;

/// Separates thousands, as in 30,969.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number of seconds in its two largest units.
pub(super) fn span(seconds: u64) -> String {
    let (big, small, value) = match seconds {
        ..60 => return format!("{seconds} s"),
        60..3600 => ("min", "s", (seconds / 60, seconds % 60)),
        3600..DAY => ("h", "min", (seconds / 3600, seconds % 3600 / 60)),
        _ => ("d", "h", (seconds / DAY, seconds % DAY / 3600)),
    };
    match value {
        (n, 0) => format!("{n} {big}"),
        (n, m) => format!("{n} {big} {m} {small}"),
    }
}

/// Returns a short time with three digits.
pub(super) fn fine(time: Duration) -> String {
    let nanos = time.as_nanos();
    let (unit, one) = match nanos {
        ..1_000 => return format!("{nanos} ns"),
        1_000..1_000_000 => ("µs", 1e3),
        1_000_000..1_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let value = nanos as f64 / one;
    match value {
        ..10.0 => format!("{value:.2} {unit}"),
        10.0..100.0 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

/// Returns a time in the largest unit in which it is a whole number, no finer than a microsecond.
pub(super) fn whole(time: Duration) -> String {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    match micros {
        _ if micros % 1_000_000 == 0 => format!("{} s", grouped(micros / 1_000_000)),
        _ if micros % 1_000 == 0 => format!("{} ms", grouped(micros / 1_000)),
        _ => format!("{} µs", grouped(micros)),
    }
}

pub(super) fn size(bytes: u64) -> String {
    match bytes {
        ..1_000_000 => format!("{} bytes", grouped(bytes)),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_readable() {
        assert_eq!(["0", "999", "1,000", "1,234,567"], [0, 999, 1000, 1_234_567].map(grouped)[..]);
        assert_eq!(
            ["59 s", "30 min", "1 min 1 s", "12 h 52 min", "1 d 1 h"],
            [59, 1800, 61, 46_321, 90_000].map(span)[..]
        );
        assert_eq!(
            ["999,999 bytes", "1 MB", "999 MB", "1.00 GB", "12.35 GB"],
            [999_999, 1_000_000, 999_999_999, 1_000_000_000, 12_345_678_901].map(size)[..]
        );
        let ticks = [1_000_000, 20_000_000, 1_500_000, 60_000_000_000].map(Duration::from_nanos);
        assert_eq!(["1 ms", "20 ms", "1,500 µs", "60 s"], ticks.map(whole)[..]);
        let times = [0, 999, 1_500, 62_000, 620_000, 12_340_000, 30_000_000_000].map(Duration::from_nanos);
        assert_eq!(["0 ns", "999 ns", "1.50 µs", "62.0 µs", "620 µs", "12.3 ms", "30.0 s"], times.map(fine)[..]);
    }
}
