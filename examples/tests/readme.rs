//! The first steps in the README. Its program is the one that is built and run here, and its
//! dependencies exist.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

const README: &str = include_str!("../../README.md");
const PROGRAM: &str = include_str!("../src/bin/quickstart.rs");

/// Returns the first block of a language in the README.
fn block(language: &str) -> &'static str {
    let (_, rest) = README.split_once(&format!("\n```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_readme_has_the_program_that_is_built_here() {
    let program = PROGRAM.split_once("\nuse std::sync").unwrap().1.replace("fn first_program()", "fn main()");
    assert_eq!(block("rust"), format!("use std::sync{program}"));
}

#[test]
fn the_dependencies_are_crates_of_this_repository() {
    let lines: Vec<_> = block("toml").lines().filter(|line| line.contains(" = {")).collect();
    assert_eq!(lines.len(), 1);
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
