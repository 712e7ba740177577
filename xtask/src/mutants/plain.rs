//! cargo-mutants, which changes code without atomics. `.cargo/mutants.toml` names the files.
//!
//! All files take hours, so a run can be restricted to some of them, and it ends after a limit. A
//! file whose mutations have all run replaces its line in the result.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use xshell::{Shell, cmd};

use super::{RESULT, read_result};
use crate::run::{Failure, Result, need, report, root, run, target_dir};

/// The heading of this part of the result.
pub(super) const HEADING: &str = "\n## Plain code\n";

/// The limit in minutes if the command line names none.
const MINUTES: u32 = 240;

/// The lists that cargo-mutants writes, in the order of the columns. A mutation is in one of them.
const LISTS: [&str; 4] = ["caught", "timeout", "unviable", "missed"];

/// The mutations of a file, as lines of cargo-mutants without their places.
#[derive(Default)]
struct Tally {
    total: usize,
    by_list: [Vec<String>; 4],
}

impl Tally {
    fn is_complete(&self) -> bool {
        self.total > 0 && self.by_list.iter().map(Vec::len).sum::<usize>() == self.total
    }
}

/// Runs cargo-mutants on the files whose paths contain `filter`, for a limited time.
pub(super) fn plain(sh: &Shell, filter: &str, minutes: Option<u32>) -> Result {
    need("cargo mutants --version", "cargo-mutants (cargo install cargo-mutants --locked)")?;
    need("timeout --version", "`timeout` of the coreutils")?;
    let all = cmd!(sh, "cargo mutants -p timer-core --list-files").quiet().read()?;
    let files: Vec<&str> = all.lines().filter(|file| file.contains(filter)).collect();
    if files.is_empty() {
        return Err(Failure::usage(format!("no file has `{filter}` in its path; there are\n{all}")));
    }
    // `--file` would add to the files of the configuration. The name of a mutation begins with its
    // file.
    let names = format!("^({}):", files.join("|").replace('.', "[.]"));
    let out = target_dir().join("mutants");
    let limit = format!("{}m", minutes.unwrap_or(MINUTES));
    let commit = cmd!(sh, "git rev-parse --short HEAD").quiet().read()?;
    let listed = cmd!(sh, "cargo mutants -p timer-core --list --re {names}").quiet().read()?;
    // The exit code reports a mutation that survives or takes too long, or the limit. The lists say
    // more.
    let ended = run(cmd!(sh, "timeout --signal INT {limit} cargo mutants -p timer-core --output {out} --re {names}"));
    let lists = LISTS.map(|list| fs::read_to_string(out.join(format!("mutants.out/{list}.txt"))).unwrap_or_default());
    let mut tallies = tallies(&listed, &lists.each_ref().map(String::as_str));
    // Deletions of fields pass every pattern.
    tallies.retain(|file, _| files.contains(&file.as_str()));
    let page = read_result();
    let (first, former) = page.split_once(HEADING).unwrap_or((&page, ""));
    let text = text(former, &tallies, &commit);
    fs::write(root().join(RESULT), format!("{first}{HEADING}{text}"))?;
    report(&text);
    let missed: usize = tallies.values().map(|tally| tally.by_list[3].len()).sum();
    let incomplete = tallies.values().filter(|tally| !tally.is_complete()).count();
    if missed > 0 {
        return Err(Failure::new(format!("{missed} mutations of plain code survive")));
    } else if lists.iter().all(String::is_empty) {
        return ended;
    } else if incomplete > 0 {
        report(&format!("the limit of {limit} left {incomplete} files incomplete\n"));
    }
    Ok(())
}

/// Sorts the lines `FILE:LINE:COLUMN: MUTATION` by file.
fn tallies(listed: &str, lists: &[&str; 4]) -> BTreeMap<String, Tally> {
    let parse = |line: &str| {
        let (place, mutation) = line.split_once(": ")?;
        Some((place.split(':').next()?.to_owned(), mutation.to_owned()))
    };
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for (file, _) in listed.lines().filter_map(parse) {
        tallies.entry(file).or_default().total += 1;
    }
    for (at, list) in lists.iter().enumerate() {
        for (file, mutation) in list.lines().filter_map(parse) {
            tallies.entry(file).or_default().by_list[at].push(mutation);
        }
    }
    tallies
}

/// Returns this part of the result. Keeps the former lines of files that are not complete in this
/// run.
fn text(former: &str, tallies: &BTreeMap<String, Tally>, commit: &str) -> String {
    let mut rows: BTreeMap<String, String> = BTreeMap::new();
    for line in former.lines().filter(|line| line.starts_with("| `")) {
        rows.insert(line.split('`').nth(1).unwrap_or_default().to_owned(), line.to_owned());
    }
    for (file, tally) in tallies.iter().filter(|(_, tally)| tally.is_complete()) {
        let counts = tally.by_list.each_ref().map(|list| format!("{} |", list.len())).join(" ");
        let missed = tally.by_list[3].iter().map(|mutation| format!("`{mutation}`")).collect::<Vec<_>>().join("<br>");
        rows.insert(file.clone(), format!("| `{file}` | {} | {counts} {missed} | `{commit}` |", tally.total));
    }
    let mut text = String::from(
        "\n`cargo xtask mutants --plain` runs cargo-mutants on the files that\n\
         [.cargo/mutants.toml](../.cargo/mutants.toml) names. A file is listed once all of\n\
         its mutations have run.\n\n\
         | file | mutations | caught | caught by a time limit | do not build | survive | survivors | commit |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    rows.values().for_each(|row| _ = writeln!(text, "{row}"));
    text
}

#[cfg(test)]
mod tests {
    use super::{tallies, text};

    #[test]
    fn only_complete_files_replace_their_lines() {
        let listed = "a.rs:1:2: replace + with -\na.rs:2:2: replace < with <=\nb.rs:1:1: one\nb.rs:2:1: two\n";
        let lists = ["a.rs:1:2: replace + with -\nb.rs:1:1: one", "", "", "a.rs:2:2: replace < with <="];
        let text = text("| `b.rs` | old |\n| `a.rs` | old |\n", &tallies(listed, &lists), "abc");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(rows, ["| `a.rs` | 2 | 1 | 0 | 0 | 1 | `replace < with <=` | `abc` |", "| `b.rs` | old |"]);
    }
}
