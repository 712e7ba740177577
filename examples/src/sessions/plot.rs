//! Bars made of Unicode block characters, with a resolution of an eighth of a character.
//!
//! The largest value gets the full width and zero gets no bar. Any other value gets at least an
//! eighth.

use std::fmt::Write as _;

const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Returns a bar for `value`, where `largest` takes `width` characters.
///
/// ```
/// use examples::sessions::plot::bar;
///
/// assert_eq!(bar(8, 8, 3), "███");
/// assert_eq!(bar(4, 8, 3), "█▌");
/// ```
#[must_use]
pub fn bar(value: u64, largest: u64, width: usize) -> String {
    if value == 0 || largest == 0 {
        return String::new();
    }
    let full = width as u128 * 8;
    let eighths = u128::from(value.min(largest)) * full / u128::from(largest);
    let eighths = usize::try_from(eighths.max(1)).unwrap_or(usize::MAX);
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// Returns one line for each row with its label, its bar and its value. The bar of the largest
/// value has `width` characters.
#[must_use]
pub fn bars(rows: &[(String, u64)], width: usize) -> String {
    let largest = rows.iter().map(|(_, value)| *value).max().unwrap_or(0);
    let label_width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (label, value) in rows {
        let bar = bar(*value, largest, width);
        let gap = if bar.is_empty() { "" } else { " " };
        // Writing to a `String` does not fail.
        let _ = writeln!(text, "{label:>label_width$} {bar}{gap}{value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_its_share_of_the_largest_in_eighths() {
        assert_eq!(bar(0, 80, 10), "");
        assert_eq!(bar(80, 80, 10), "██████████");
        assert_eq!(bar(40, 80, 10), "█████");
        assert_eq!(bar(41, 80, 10), "█████▏");
        assert_eq!(bar(47, 80, 10), "█████▉");
    }

    #[test]
    fn nonzero_values_show_and_no_bar_is_too_wide() {
        assert_eq!(bar(1, u64::MAX, 10), "▏");
        assert_eq!(bar(u64::MAX, u64::MAX, 10), "██████████");
        assert_eq!(bar(9, 3, 2), "██", "more than the largest");
        assert_eq!(bar(3, 0, 2), "");
        assert_eq!(bar(3, 3, 0), "▏");
    }

    #[test]
    fn rows_are_aligned_and_a_zero_row_keeps_its_line() {
        let rows = [("9".to_owned(), 4), ("10".to_owned(), 0), ("11".to_owned(), 2)];
        assert_eq!(bars(&rows, 2), " 9 ██ 4\n10 0\n11 █ 2\n");
        assert_eq!(bars(&[], 10), "");
    }
}
