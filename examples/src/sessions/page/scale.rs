//! The positions of ticks.
//!
//! Ticks are round numbers and rise strictly. There are no more of them than requested, and at
//! least two for counts.

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;
const DAY: u64 = 86_400;

/// Returns ticks for counts from 0 to `most`. The steps are 1, 2 or 5 times a power of ten, and the
/// last tick is `most` or a little more.
pub(super) fn counts(most: u64, about: usize) -> Vec<u64> {
    let most = most.max(1);
    let steps = (0..19).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)));
    let about = about.max(2) as u64;
    let step = steps.into_iter().find(|step| most.div_ceil(*step) < about).unwrap_or(most);
    (0..=most.div_ceil(step)).map(|n| n.saturating_mul(step)).collect()
}

/// Returns ticks with labels for a time from 0 to `span` seconds, at whole seconds, minutes, hours
/// or days.
pub(super) fn times(span: u64, about: usize) -> Vec<(u64, String)> {
    let step = time_step(span, about.max(2) as u64 - 1);
    (0..=span / step).map(|n| (n * step, label(n * step, step))).collect()
}

/// Returns the finest round step that fits at most `most` times into `span`.
pub(super) fn time_step(span: u64, most: u64) -> u64 {
    let fine = [1, 2, 5, 10, 15, 30].into_iter().flat_map(|n| [n, n * MINUTE]);
    let coarse = [1, 2, 3, 4, 6, 12, 24].map(|n| n * HOUR);
    let mut steps: Vec<u64> = fine.chain(coarse).collect();
    steps.sort_unstable();
    let most = most.max(1);
    let step = steps.into_iter().find(|step| span / step <= most);
    step.unwrap_or_else(|| span.div_ceil(most).div_ceil(DAY) * DAY)
}

fn label(second: u64, step: u64) -> String {
    let (one, unit) = match step {
        ..MINUTE => (1, "s"),
        MINUTE..HOUR => (MINUTE, "min"),
        HOUR..DAY => (HOUR, "h"),
        _ => (DAY, "d"),
    };
    format!("{} {unit}", second / one)
}

/// Returns the powers of ten from `from` to `to` nanoseconds with their labels.
pub(super) fn decades(from: u64, to: u64) -> Vec<(u64, String)> {
    let powers = (0..20).map_while(|power| 10_u64.checked_pow(power));
    powers.filter(|power| (from..=to).contains(power)).map(|power| (power, decade(power))).collect()
}

fn decade(nanos: u64) -> String {
    match nanos {
        ..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{} µs", nanos / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", nanos / 1_000_000),
        _ => format!("{} s", nanos / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_round_ticks_that_cover_the_range() {
        assert_eq!(counts(0, 5), [0, 1]);
        assert_eq!(counts(3, 5), [0, 1, 2, 3]);
        assert_eq!(counts(87, 5), [0, 50, 100]);
        assert_eq!(counts(100, 6), [0, 20, 40, 60, 80, 100]);
        for most in [1, 9, 10, 11, 99, 1_234, 99_999, u64::MAX / 2] {
            let ticks = counts(most, 6);
            assert!((2..=6).contains(&ticks.len()), "{ticks:?}");
            assert!(ticks.is_sorted() && ticks.last() >= Some(&most), "{ticks:?}");
        }
    }

    #[test]
    fn times_have_ticks_in_the_unit_of_their_step() {
        let labels = |span, about| times(span, about).into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(labels(48_121, 8), ["0 h", "2 h", "4 h", "6 h", "8 h", "10 h", "12 h"]);
        assert_eq!(labels(48_121, 5), ["0 h", "3 h", "6 h", "9 h", "12 h"]);
        assert_eq!(labels(119, 5), ["0 s", "30 s", "60 s", "90 s"]);
        assert_eq!(labels(400 * DAY, 5).last().map(String::as_str), Some("400 d"));
        for span in [0, 1, 59, 60, 3_599, 3_600, DAY - 1, DAY, 9 * DAY, u64::from(u32::MAX) + 31_536_000] {
            let ticks = times(span, 7);
            assert!((1..=7).contains(&ticks.len()), "{ticks:?}");
            assert!(ticks.is_sorted());
        }
    }

    #[test]
    fn decades_have_labels_in_a_fitting_unit() {
        let labels: Vec<String> = decades(100, 10_000_000_000).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]);
        assert!(decades(11, 99).is_empty());
    }
}
