//! The book's list of `tracing` events. It has to agree with the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::{CRATES, folder};

/// An event: its message, its level, and the names of its fields.
type Event = (String, String, BTreeSet<String>);

/// Returns the text of all Rust files in a folder and its subfolders.
fn code(folder: &Path) -> String {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = paths.map(|path| match path.is_dir() {
        true => code(&path),
        false if path.extension().is_some_and(|end| end == "rs") => fs::read_to_string(path).unwrap(),
        false => String::new(),
    });
    texts.collect()
}

/// Splits the arguments of a macro, which begin behind its opening parenthesis.
fn arguments(text: &str) -> Vec<String> {
    let mut arguments = vec![String::new()];
    let mut depth = 1;
    let mut is_quoted = false;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => is_quoted = !is_quoted,
            '(' | '[' | '{' if !is_quoted => depth += 1,
            ')' | ']' | '}' if !is_quoted => depth -= 1,
            _ => {}
        }
        match character {
            _ if depth == 0 => break,
            ',' if depth == 1 && !is_quoted => arguments.push(String::new()),
            _ => arguments.last_mut().unwrap().push(character),
        }
        if character == '\\' && is_quoted {
            arguments.last_mut().unwrap().extend(characters.next());
        }
    }
    let arguments = arguments.iter().map(|argument| argument.trim().to_owned());
    arguments.filter(|argument| !argument.is_empty()).collect()
}

/// Returns the events in the code.
fn reported() -> BTreeSet<Event> {
    let code: String = CRATES.iter().map(|name| code(&folder(name).join("src"))).collect();
    let calls = code.split("tracing::").skip(1).map(|call| {
        let (level, rest) = call.split_once("!(").unwrap_or((call, ""));
        assert!(["trace", "debug", "info", "warn", "error"].contains(&level), "no call of an event macro: {level:.80}");
        let mut arguments = arguments(rest);
        let message = arguments.pop().unwrap_or_default();
        let text = message.strip_prefix('"').and_then(|message| message.strip_suffix('"'));
        let text = text.unwrap_or_else(|| panic!("the last argument is no message: {message}"));
        let names = arguments.iter().map(|field| field.split('=').next().unwrap_or_default().trim());
        let names = names.map(|name| name.trim_start_matches(['%', '?']).to_owned());
        (text.to_owned(), level.to_owned(), names.collect())
    });
    calls.collect()
}

/// Returns the events in the tables of the chapter.
fn listed() -> Vec<Event> {
    let text = fs::read_to_string(folder("timer-durable").join("src/book/events.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [message, level, fields, when] = cells[..] else { panic!("four cells in {row}") };
        assert!(!when.is_empty(), "{row}");
        let fields = fields.split('`').skip(1).step_by(2).map(str::to_owned);
        (message.trim_matches('`').to_owned(), level.to_owned(), fields.collect())
    });
    rows.collect()
}

#[test]
fn the_book_lists_exactly_the_events_of_the_code() {
    let reported = reported();
    let listed = listed();
    assert!(reported.len() >= 13, "{reported:?}");
    let unique: BTreeSet<Event> = listed.iter().cloned().collect();
    assert_eq!(unique.len(), listed.len(), "an event is listed twice");
    let missing: Vec<_> = reported.difference(&unique).collect();
    assert!(missing.is_empty(), "not in events.md: {missing:#?}");
    let stale: Vec<_> = unique.difference(&reported).collect();
    assert!(stale.is_empty(), "no such event in the code: {stale:#?}");
}
