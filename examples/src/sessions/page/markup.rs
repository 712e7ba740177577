//! Text and numbers as they may stand in HTML and SVG.

/// `text` with what HTML would read as markup written as characters; for content and for quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // HTML has no way to write these.
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A coordinate, a tenth of a pixel fine.
pub(super) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// The share of `part` in `all`, such as `12.3 %`.
pub(super) fn percent(part: u64, all: u64) -> String {
    let share = part as f64 * 100.0 / all.max(1) as f64;
    if part > 0 && share < 0.1 { "< 0.1 %".to_owned() } else { format!("{share:.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_given_can_become_markup() {
        assert_eq!(
            escape("a<b> & \"c\" 'd'\u{1b}[2J\0"),
            "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;\u{fffd}[2J\u{fffd}"
        );
        assert_eq!(escape("λ 12 µs"), "λ 12 µs");
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!([0.0, -0.01, 12.0, 12.34, -7.25].map(px)[..], ["0", "0", "12", "12.3", "-7.2"]);
    }

    #[test]
    fn a_share_that_is_not_zero_is_never_shown_as_zero() {
        assert_eq!(
            [(0, 9), (1, 8), (1, 100_000), (0, 0)].map(|(part, all)| percent(part, all))[..],
            ["0.0 %", "12.5 %", "< 0.1 %", "0.0 %"]
        );
    }
}
