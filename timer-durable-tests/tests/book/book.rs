//! The names in the books, which have to exist in the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::{CRATES, folder};

/// Returns the text of all files with this extension in a folder and its subfolders.
fn texts(folder: &Path, extension: &str) -> Vec<String> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = paths.flat_map(|path| match path.is_dir() {
        true => texts(&path, extension),
        false if path.extension().is_some_and(|end| end == extension) => vec![fs::read_to_string(path).unwrap()],
        false => Vec::new(),
    });
    texts.collect()
}

fn source(extension: &str) -> String {
    CRATES.iter().flat_map(|name| texts(&folder(name).join("src"), extension)).collect()
}

/// Returns the functions with the attribute `test` in the tests of the crates.
fn tests() -> BTreeSet<String> {
    let texts: Vec<String> = CRATES.iter().flat_map(|name| texts(&folder(name), "rs")).collect();
    let functions = texts.iter().flat_map(|text| text.split("\n#[test]\n").skip(1)).map(|test| {
        let line = test.lines().find(|line| !line.starts_with("#[")).unwrap_or_default();
        let name = line.strip_prefix("fn ").and_then(|line| line.strip_suffix("() {"));
        name.unwrap_or_else(|| panic!("no test: {line}")).to_owned()
    });
    functions.collect()
}

fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// Returns the tests that the tables of a chapter name, which are in the columns `test`. In the
/// table of the promises, each column but the first one has tests.
fn named_tests(name: &str, chapter: &str) -> Vec<String> {
    let text = fs::read_to_string(folder(name).join(format!("src/book/{chapter}.md"))).unwrap();
    let mut named = Vec::new();
    let mut has_tests = Vec::new();
    for line in text.lines() {
        if !line.starts_with('|') {
            has_tests.clear();
        } else if has_tests.is_empty() {
            let heads = cells(line);
            has_tests =
                heads.iter().map(|head| *head == "test" || heads[0] == "promise" && *head != "promise").collect();
        } else if !line.starts_with("|---") {
            let columns = cells(line).into_iter().zip(&has_tests);
            let tests = columns.filter(|(cell, has_tests)| **has_tests && !cell.is_empty());
            for name in tests.flat_map(|(cell, _)| cell.split(", ")) {
                let name = name.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
                named.push(name.unwrap_or_else(|| panic!("a cell with a test: {line}")).to_owned());
            }
        }
    }
    named
}

#[test]
fn each_test_that_the_book_names_exists() {
    let tests = tests();
    let chapters = [
        ("timer-durable", "promises", 44),
        ("timer-durable", "faults", 20),
        ("timer-durable-sqlite", "faults", 13),
        ("timer-durable-postgres", "postgres", 45),
    ];
    for (name, chapter, least) in chapters {
        let named = named_tests(name, chapter);
        assert!(named.len() >= least, "{chapter}: {} tests, {named:?}", named.len());
        let unknown: Vec<_> = named.iter().filter(|test| !tests.contains(*test)).collect();
        assert!(unknown.is_empty(), "{chapter}: {unknown:?}");
    }
}

/// Returns the code between backquotes in all chapters. A link counts, a block of code does not.
fn codes() -> Vec<String> {
    let chapters: Vec<String> = CRATES.iter().flat_map(|name| texts(&folder(name).join("src/book"), "md")).collect();
    let prose = chapters.iter().flat_map(|chapter| chapter.split("```").step_by(2));
    prose.flat_map(|text| text.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric())
}

/// Checks names such as `StoreError::Locked`. Names in links are checked by rustdoc, too.
#[test]
fn each_item_that_the_book_names_exists() {
    let code = source("rs");
    let exists = |owner: &str, item: &str| {
        let definitions = ["enum", "struct", "trait"].map(|kind| format!("pub {kind} {owner} {{\n"));
        let mut bodies = definitions.iter().filter_map(|start| code.split_once(start)?.1.split("\n}").next());
        let is_part = bodies.any(|body| words(body).any(|word| word == item));
        is_part || code.contains(&format!("fn {item}(")) || code.contains(&format!("fn {item}<"))
    };
    let codes = codes();
    let paths: BTreeSet<(&str, &str)> = codes
        .iter()
        .filter_map(|code| code.trim_end_matches("()").split_once("::"))
        .filter(|(owner, item)| owner.starts_with(char::is_uppercase) && words(item).eq([*item]))
        // The chapter on moving shows other libraries.
        .filter(|(owner, _)| !["Sidekiq", "Job"].contains(owner))
        .collect();
    assert!(paths.len() >= 40, "{paths:?}");
    let unknown: Vec<_> = paths.iter().filter(|(owner, item)| !exists(owner, item)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Checks names in the schema of PostgreSQL, such as `timer.schedule`.
#[test]
fn each_name_of_the_schema_in_the_book_exists() {
    let schema = source("sql");
    let created: BTreeSet<&str> = schema
        .split("create ")
        .filter_map(|statement| statement.split_once(" timer."))
        .map(|(_, rest)| words(rest).next().unwrap())
        .collect();
    let codes = codes();
    let after = |code: &str| {
        code.split("timer.").skip(1).map(|rest| words(rest).next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let named: BTreeSet<String> = codes.iter().flat_map(|code| after(code)).collect();
    assert!(named.len() >= 5, "{named:?}");
    let unknown: Vec<_> = named.iter().filter(|name| !created.contains(name.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
