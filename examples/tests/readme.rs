//! The first steps that README shows: its program is the one that is built and run here, and its dependencies exist.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../README.md");
const PROGRAM: &str = include_str!("../src/bin/quickstart.rs");

/// The first block of a language.
fn block(language: &str) -> &'static str {
    let (_, rest) = README.split_once(&format!("\n```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_first_program_is_the_one_that_is_built_here() {
    assert_eq!(Some(block("rust")), PROGRAM.split_once("#![forbid(unsafe_code)]\n\n").map(|(_, program)| program));
}

#[test]
fn the_first_program_prints_what_is_shown_and_fires() {
    let output = Command::new(env!("CARGO_BIN_EXE_quickstart")).output().unwrap();
    assert!(output.status.success());
    // But for how late it was, which is another figure each time.
    let but_for_lag = |text: &str| text.rsplit_once(" by ").unwrap().0.to_owned();
    let printed = but_for_lag(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(printed, but_for_lag(block("text")));
    assert!(printed.contains("\nidle for 50 ms: closed\n"), "a timeout fires before it ends");
}

#[test]
fn the_dependencies_are_crates_of_this_repository() {
    let lines: Vec<_> = block("toml").lines().filter(|line| line.contains(" = {")).collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let name = line.split(' ').next().unwrap();
        let path = line.split("path = \"../timer/").nth(1).unwrap().split('"').next().unwrap();
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path).join("Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        assert!(manifest.contains(&format!("name = \"{name}\"\n")), "{line}");
        if let Some((_, features)) = line.split_once("features = [\"") {
            assert!(manifest.contains(&format!("\n{} = [", features.split('"').next().unwrap())), "{line}");
        }
    }
}
