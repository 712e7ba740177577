//! The lengths of sessions, as a table with bars.

use maud::{Markup, html};

use super::tables::percent;
use crate::sessions::ledger::Session;
use crate::sessions::units::{grouped, span};

/// The longest length of each row in seconds. The last row has all longer ones.
const ROWS: [u64; 11] = [0, 10, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200];

/// Returns the rows up to the longest length that occurs.
pub(super) fn lengths(sessions: &[Session]) -> Markup {
    let rows = rows(sessions);
    let most = rows.iter().map(|row| row.1).max().unwrap_or(0).max(1);
    html! {
        table.lengths {
            @for (label, count) in &rows {
                tr {
                    th scope="row" { (label) }
                    // A count that is not zero is visible.
                    td { div.bar style=(format!("width: max({}px, {:.1}%)", u8::from(*count > 0), *count as f64 * 100.0 / most as f64)) {} }
                    td.count { (grouped(*count)) }
                    td.count.note { (percent(*count, sessions.len() as u64)) }
                }
            }
        }
    }
}

/// Returns the label and the count of each row.
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
    fn each_session_is_in_one_row_without_empty_ends() {
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
