//! How long sessions are, as rows of bars.

use std::fmt::Write as _;

use super::markup::{percent, px};
use crate::sessions::ledger::Session;
use crate::sessions::units::{grouped, span};

/// The longest length of each row, in seconds; a last row has the rest.
const ROWS: [u64; 11] = [0, 10, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200];

const WIDTH: f64 = 430.0;
const ROW: f64 = 23.0;
/// Where the bars begin, and the room for what is written behind them.
const LEFT: f64 = 92.0;
const RIGHT: f64 = 96.0;

/// The rows, from the shortest to the longest that there is.
pub(super) fn lengths(sessions: &[Session]) -> String {
    let rows = rows(sessions);
    let most = rows.iter().map(|row| row.1).max().unwrap_or(0).max(1);
    let height = ROW * rows.len() as f64 + 2.0;
    let mut svg = format!(
        "<svg class=\"half\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Lengths of sessions\">\n",
        px(WIDTH),
        px(height)
    );
    for (at, (label, count)) in rows.iter().enumerate() {
        let middle = ROW * (at as f64 + 0.5);
        let share = percent(*count, sessions.len() as u64);
        let width = (WIDTH - LEFT - RIGHT) * *count as f64 / most as f64;
        let width = if *count > 0 { width.max(1.0) } else { 0.0 };
        // Writing to a String does not fail.
        let _ = write!(svg, r#"<g class="row"><title>{label}: {} of the sessions, {share}</title>"#, grouped(*count));
        let _ =
            write!(svg, r#"<rect class="hover" y="{}" width="{}" height="{ROW}"/>"#, px(middle - ROW / 2.0), px(WIDTH));
        let _ = write!(svg, r#"<text class="end" x="{}" y="{}">{label}</text>"#, px(LEFT - 10.0), px(middle + 4.0));
        let _ = write!(
            svg,
            r#"<rect class="fill" x="{}" y="{}" width="{}" height="{}"/>"#,
            px(LEFT),
            px(middle - 7.5),
            px(width),
            px(15.0)
        );
        let x = px(LEFT + width + 8.0);
        let _ = writeln!(
            svg,
            r#"<text class="value" x="{x}" y="{}">{} <tspan class="faint" dx="4">{share}</tspan></text></g>"#,
            px(middle + 4.0),
            grouped(*count)
        );
    }
    svg + "</svg>\n"
}

/// Label and count of each row.
fn rows(sessions: &[Session]) -> Vec<(String, u64)> {
    let mut counts = [0; ROWS.len() + 1];
    for session in sessions {
        counts[ROWS.partition_point(|longest| *longest < session.last - session.first)] += 1;
    }
    let label = |at: usize| match ROWS.get(at) {
        Some(0) => "one moment".to_owned(),
        Some(longest) => format!("≤ {}", span(*longest)),
        None => "longer".to_owned(),
    };
    let last = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
    counts[..=last].iter().enumerate().map(|(at, count)| (label(at), *count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_is_in_one_row_and_rows_that_all_are_empty_are_left_out() {
        let session = |length: u64| Session { first: 5, host: 0, last: 5 + length, requests: 1 };
        let found = rows(&[0, 0, 10, 11, 60].map(session));
        let counts: Vec<u64> = found.iter().map(|row| row.1).collect();
        assert_eq!(counts, [2, 1, 1, 1]);
        assert_eq!(found[3].0, "≤ 1 min");
        assert_eq!(rows(&[session(7_200)]).last().map(|row| row.0.clone()), Some("≤ 2 h".to_owned()));
        assert_eq!(rows(&[session(7_201)]).last().map(|row| row.0.clone()), Some("longer".to_owned()));
        assert_eq!(rows(&[]).len(), 1);
    }
}
