//! The width of comments and of Markdown, which rustfmt leaves alone.

use super::file::File;

/// The columns that a line of prose may have.
const MOST_COLUMNS: usize = 100;

/// Returns the lines of prose that are too wide: comment lines in Rust, TOML and shell, and the
/// text of Markdown.
///
/// Tables and code blocks cannot be wrapped. A link counts without its target, for the same reason.
pub(super) fn wide_lines(file: &File) -> Vec<usize> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let Some(prose) = prose(file, line) else {
            // A code block ends with its comment at the latest. An attribute may begin one.
            is_code = line.contains("doc = \"```");
            continue;
        };
        if prose.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let is_table = prose.trim_start().starts_with('|');
        let is_code_line = is_code || prose.starts_with("    ");
        let is_target = prose.starts_with('[') && prose.contains("]: ");
        if !is_table && !is_code_line && !is_target && columns_without_targets(line) > MOST_COLUMNS {
            found.push(number);
        }
    }
    found
}

/// Returns the text of a line of prose, without the marker of the comment and the blank behind it.
fn prose<'a>(file: &File, line: &'a str) -> Option<&'a str> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let markers: &[&str] = match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("md") => return Some(line),
        Some("rs") => &["///", "//!", "//"],
        Some("toml" | "sh") => &["#"],
        None if file.text.starts_with("#!") => &["#"],
        _ => return None,
    };
    let text = markers.iter().find_map(|marker| line.trim_start().strip_prefix(marker))?;
    Some(text.strip_prefix(' ').unwrap_or(text))
}

/// Counts the characters of a line without bare addresses and without the targets of its links.
fn columns_without_targets(line: &str) -> usize {
    let mut parts = line.split("](");
    let mut columns = parts.next().unwrap_or_default().chars().count();
    columns += parts.map(|part| part.split_once(')').map_or(part, |(_, rest)| rest).chars().count()).sum::<usize>();
    let addresses = line.split_whitespace().filter(|word| word.contains("://") && !word.contains("]("));
    columns.saturating_sub(addresses.map(|address| address.chars().count()).sum())
}

#[cfg(test)]
mod tests {
    use super::super::{RULES, check};
    use super::*;

    fn wide(path: &str, text: &str) -> Vec<usize> {
        wide_lines(&File { path: path.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn tidy_refuses_a_wide_comment() {
        let files = [File { path: "a.rs".to_owned(), text: format!("\n// {}", "x".repeat(98)) }];
        let faults: Vec<_> = RULES.iter().flat_map(|rule| check(rule, &files)).collect();
        assert!(faults.iter().any(|fault| fault.starts_with("a.rs:2: too wide")), "{faults:?}");
    }

    #[test]
    fn comments_have_at_most_100_columns() {
        let words = "é".repeat(97);
        for marker in ["//!", "///", "// "] {
            let fits = format!("{marker}{words}");
            assert_eq!(wide("a/a.rs", &format!("{fits}\n{fits}x\n    {fits}\n{words}{words}")), [2, 3]);
        }
        for path in ["a.toml", "a/a.sh", "a/run"] {
            assert_eq!(wide(path, &format!("#!/bin/sh\n## {words}\n### {words}\n{words} = {words}")), [3], "{path}");
        }
        assert!(wide("a/a.csv", &format!("# {words}{words}")).is_empty());
    }

    #[test]
    fn tables_and_code_blocks_may_be_wide() {
        let words = "x".repeat(120);
        let text = format!("{words}\n| {words} |\n```\n{words}\n```\n{words}\n    {words}\n- {words}");
        assert_eq!(wide("a/a.md", &text), [1, 6, 8]);
        let unclosed = format!("/// ```\n/// {words}\nfn f() {{}}\n/// {words}");
        assert_eq!(wide("a/a.rs", &unclosed), [4]);
        let begun_by_attribute = format!("//! a\n#![cfg_attr(a, doc = \"```\")]\n//! {words}\n//! ```\n//! {words}");
        assert_eq!(wide("a/a.rs", &begun_by_attribute), [5]);
    }

    #[test]
    fn a_link_counts_without_its_target() {
        let words = "x".repeat(80);
        let target = "y".repeat(80);
        let links = format!("{words} [z]({target})\n[z]: {target}{words}\n{words} <https://{target}>");
        assert!(wide("a/a.md", &links).is_empty());
        assert_eq!(wide("a/a.md", &format!("{words} [z]({target}) {words}")), [1]);
    }
}
