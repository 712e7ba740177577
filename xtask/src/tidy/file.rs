//! A file as the rules see it: its path and its text, without comments, literals and tests.

/// Prefixes of paths.
pub(super) type Exceptions = &'static [&'static str];

/// Code that is built for tests only, although no file or folder is called `tests`.
pub(super) const TEST_ONLY: Exceptions = &["timer-core/src/loom_models/", "timer-core/src/sync/model"];

/// A file's path from the root, with `/`, and its content.
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
}

/// Returns the lines of a Rust file that are not for tests alone, without comments and literals.
/// The tests of a file are at its end.
pub(super) fn code(file: &File) -> impl Iterator<Item = (usize, String)> {
    let of_tests = ["/tests/", "/benches/", "tests.rs"];
    let is_code = file.path.ends_with(".rs") && !of_tests.iter().any(|part| file.path.contains(part));
    let lines = file.text.lines().take_while(move |line| is_code && *line != "mod tests {");
    (1..).zip(lines.map(bare))
}

/// Returns a line without its comment and without the text between quotes.
pub(super) fn bare(line: &str) -> String {
    let line = line.replace("\\\"", "").replace("'\"'", "");
    let outside = line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"");
    outside.split("//").next().unwrap_or_default().to_owned()
}

pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c != '_' && !c.is_alphanumeric())
}
