//! The step `doctest`, which also documents the libraries.
//!
//! `cargo doc` checks all dependencies once more. `cargo test --doc` passes the crates that the
//! tests have compiled to rustdoc. In this step, cargo calls this program instead of rustdoc. The
//! program documents a library, and then lets rustdoc test the examples of the library.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use xshell::Shell;

use crate::cargo::cargo;
use crate::crates::LIBRARIES;
use crate::run::{Failure, Result, target_dir};

/// The variable with the folder of the pages. This program stands in for rustdoc if it is set.
const PAGES: &str = "XTASK_PAGES";

pub(crate) fn test(sh: &Shell) -> Result {
    let program = std::env::current_exe()?;
    // The system says so if the tests have built this program anew.
    sh.set_var("RUSTDOC", program.to_string_lossy().trim_end_matches(" (deleted)"));
    sh.set_var(PAGES, target_dir().join("doc"));
    cargo(sh, &["test --no-fail-fast {linted} --doc"])
}

/// Does the work of rustdoc if this program stands in for it.
pub(crate) fn stand_in() -> Option<Result> {
    let pages = PathBuf::from(std::env::var_os(PAGES)?);
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    Some(document(words.clone(), &pages).and(rustdoc(Command::new("rustdoc").args(words))))
}

/// Documents the crate whose examples `words` test, unless the pages are as new as the crate.
///
/// The first pages contain the private items, and rustdoc checks the links of all items. The second
/// pages are those of a published library. They remain, and rustdoc warns if a link in them leads
/// to a private page.
fn document(mut words: Vec<OsString>, pages: &Path) -> Result {
    words.retain(|word| word != "--test");
    let value_of = |words: &[OsString], option| words.iter().position(|word| word == option).map(|at| at + 1);
    if let Some(at) = value_of(&words, "--test-run-directory") {
        words.drain(at - 1..=at);
    }
    let name = value_of(&words, "--crate-name").and_then(|at| words[at].to_str()).unwrap_or_default().to_owned();
    let path = words.iter().find_map(|word| word.to_str()?.strip_prefix(&format!("{name}=")));
    let built = path.and_then(|path| fs::metadata(path).ok()?.modified().ok());
    let stamp = pages.join(format!("{name}.state"));
    let state = format!("{built:?} {words:?}");
    if fs::read_to_string(&stamp).is_ok_and(|text| text == state) {
        return Ok(());
    }
    let is_published = LIBRARIES.contains(&name.replace('_', "-").as_str());
    for options in [&["--document-private-items"][..], &[]].iter().take(1 + usize::from(is_published)) {
        let mut command = Command::new("rustdoc");
        rustdoc(command.args(&words).args(["-Dwarnings", "--out-dir"]).arg(pages).args(*options))?;
    }
    Ok(fs::write(stamp, state)?)
}

/// Runs rustdoc, which reports its failures.
fn rustdoc(command: &mut Command) -> Result {
    if command.status()?.success() { Ok(()) } else { Err(Failure::new("")) }
}
