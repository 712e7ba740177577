//! Rows as aligned columns for people, or as lines of JSON for programs.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use timer_durable::store::{Micros, StoredPending};
use timer_durable::{DeadLetter, PendingRow, TimeoutState};

/// Returns a text with control characters and marks of the direction of text as escapes, because a
/// terminal would obey them.
pub(crate) fn visible(text: &str) -> String {
    let obeyed = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().flat_map(|c| if obeyed(c) { c.escape_default().collect() } else { vec![c] }).collect()
}

/// Prints a line. A reader that has gone needs no further ones.
pub(crate) fn line(text: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

/// Prints rows of one kind.
#[derive(Debug)]
pub(crate) struct Printer {
    json: bool,
    now: SystemTime,
    /// The lines of a table, of which the first one has the names of the columns.
    table: Vec<Vec<String>>,
}

impl Printer {
    pub(crate) fn new(json: bool, columns: &[&str]) -> Self {
        let head = columns.iter().map(|&column| column.to_owned()).collect();
        Self { json, now: SystemTime::now(), table: vec![head] }
    }

    pub(crate) fn row(&mut self, row: &PendingRow) -> io::Result<()> {
        if self.json {
            return line(&ascii_controls(&json!(row)));
        }
        self.table.push(vec![
            row.id.to_string(),
            row.topic.clone(),
            row.key.clone().unwrap_or_else(|| "-".to_owned()),
            time(row.due),
            distance(row.due, self.now),
            state(row.state).to_owned(),
            row.attempt.to_string(),
        ]);
        Ok(())
    }

    pub(crate) fn letter(&mut self, letter: &DeadLetter) -> io::Result<()> {
        if self.json {
            return line(&ascii_controls(&json!(letter)));
        }
        self.table.push(vec![
            letter.id.to_string(),
            letter.topic.clone(),
            letter.key.clone().unwrap_or_else(|| "-".to_owned()),
            time(letter.died),
            letter.attempt.to_string(),
            letter.reason.clone(),
        ]);
        Ok(())
    }

    /// Prints the table.
    pub(crate) fn finish(self) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let table: Vec<Vec<String>> =
            self.table.iter().map(|row| row.iter().map(|cell| visible(cell)).collect()).collect();
        let columns = table.first().map_or(0, Vec::len);
        let widths: Vec<usize> =
            (0..columns).map(|n| table.iter().map(|row| row[n].chars().count()).max().unwrap_or(0)).collect();
        for row in &table {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            line(cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// Prints one timeout with its payload.
pub(crate) fn timeout(found: &StoredPending, json: bool) -> io::Result<()> {
    let (format, bytes) = &found.payload;
    if json {
        let mut value = json!(found);
        value["format"] = json!(format);
        value["payload"] = json_of(bytes);
        return line(&ascii_controls(&value));
    }
    let now = SystemTime::now();
    let mut lines = vec![
        ("id", found.id.to_string()),
        ("topic", found.topic.clone()),
        ("key", found.key.clone().unwrap_or_else(|| "-".to_owned())),
        ("due", format!("{} ({})", time(found.due), distance(found.due, now))),
        ("state", state(found.state).to_owned()),
        ("attempt", found.attempt.to_string()),
    ];
    if let Some(since) = found.running_since {
        lines.insert(5, ("since", format!("{} ({})", time(since), distance(since, now))));
    }
    if let Some(period) = found.period {
        let period = Duration::from_micros(period.unsigned_abs());
        lines.push(("period", humantime::format_duration(period).to_string()));
    }
    lines.push(("payload", text_of(*format, bytes)));
    fields(&lines)
}

/// Prints one dead letter with its payload.
pub(crate) fn dead_letter(letter: &DeadLetter, json: bool) -> io::Result<()> {
    if json {
        let mut value = json!(letter);
        value["state"] = json!("dead");
        value["payload"] = json_of(&letter.payload);
        return line(&ascii_controls(&value));
    }
    let now = SystemTime::now();
    fields(&[
        ("id", letter.id.to_string()),
        ("topic", letter.topic.clone()),
        ("key", letter.key.clone().unwrap_or_else(|| "-".to_owned())),
        ("due", format!("{} ({})", time(letter.due), distance(letter.due, now))),
        ("state", format!("dead letter; `timer requeue {}` makes it pending again", letter.id)),
        ("died", format!("{} ({})", time(letter.died), distance(letter.died, now))),
        ("attempt", letter.attempt.to_string()),
        ("reason", letter.reason.clone()),
        ("payload", text_of(letter.format, &letter.payload)),
    ])
}

fn fields(lines: &[(&str, String)]) -> io::Result<()> {
    lines.iter().try_for_each(|(name, value)| line(&format!("{name:8}{}", visible(value))))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn json_of(payload: &[u8]) -> Value {
    match std::str::from_utf8(payload) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "hex": hex(payload) }),
    }
}

fn text_of(format: i16, payload: &[u8]) -> String {
    let text = std::str::from_utf8(payload).map_or_else(|_| format!("hex {}", hex(payload)), str::to_owned);
    format!("{text} (format {format}, {} bytes)", payload.len())
}

/// Returns JSON in which the control characters that JSON allows are escapes as well.
fn ascii_controls(value: &Value) -> String {
    let escape = |c: char| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    value.to_string().chars().map(escape).collect()
}

fn state(state: TimeoutState) -> &'static str {
    match state {
        TimeoutState::Pending => "pending",
        TimeoutState::Running => "running",
        TimeoutState::Retrying => "retrying",
        TimeoutState::Queued => "queued",
    }
}

/// Returns a time in UTC, to the second.
fn time(micros: Micros) -> String {
    // The year 9999 is the last one that can be printed.
    match u64::try_from(micros).ok().filter(|micros| micros / 1_000_000 < 253_402_300_800) {
        Some(micros) => humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_micros(micros)).to_string(),
        None => format!("{micros} us"),
    }
}

/// Returns the distance from now in words.
fn distance(micros: Micros, now: SystemTime) -> String {
    let now = now.duration_since(UNIX_EPOCH).map_or(0, |now| i128::try_from(now.as_micros()).unwrap_or(0));
    let difference = i128::from(micros) - now;
    let seconds = Duration::from_secs(u64::try_from(difference.unsigned_abs() / 1_000_000).unwrap_or(u64::MAX));
    // The two largest units suffice.
    let words = humantime::format_duration(seconds).to_string();
    let words = words.split(' ').take(2).collect::<Vec<_>>().join(" ");
    if difference < 0 { format!("{words} ago") } else { format!("in {words}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_is_printed() {
        assert_eq!(visible("a\u{1b}[2J\u{9b}31m\u{202e}\n\u{e9}"), "a\\u{1b}[2J\\u{9b}31m\\u{202e}\\n\u{e9}");
        assert_eq!(ascii_controls(&json!("a\u{1b}\u{9b}")), "\"a\\u001b\\u009b\"");
    }

    #[test]
    fn times_are_relative_to_now() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        assert_eq!(distance(1_000_000_000_000 + 754_000_000, now), "in 12m 34s");
        assert_eq!(distance(1_000_000_000_000 - 90_061_000_000, now), "1day 1h ago");
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(i64::MAX), format!("{} us", i64::MAX));
    }
}
