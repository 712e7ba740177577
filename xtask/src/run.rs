//! Running a command: its line is printed first, and its exit code is ours if it fails.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use xshell::{Cmd, Shell, cmd};

use crate::crates::{LIBRARIES, features, metadata};

pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why a command was not done, and what to exit with.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) what: String,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { code: 1, what: what.into() }
    }

    /// Something is missing here, which is no fault.
    pub(crate) fn skipped(what: &str) -> Self {
        Self { code: 0, what: format!("skipped: there is no {what}") }
    }

    /// The command line is wrong.
    pub(crate) fn usage(what: impl fmt::Display) -> Self {
        Self { code: 2, what: format!("{what}; see `cargo xtask help`") }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Where cargo builds.
pub(crate) fn target_dir() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// A shell at the root.
pub(crate) fn shell() -> Result<Shell> {
    let sh = Shell::new()?;
    sh.change_dir(root());
    Ok(sh)
}

/// Runs it; what it prints goes where ours goes.
pub(crate) fn run(cmd: Cmd<'_>) -> Result {
    run_with(cmd, |_| ())
}

/// The same after `change`, for what xshell cannot say.
pub(crate) fn run_with(cmd: Cmd<'_>, change: impl FnOnce(&mut Command)) -> Result {
    let line = cmd.to_string();
    let mut command = Command::from(cmd);
    change(&mut command);
    let set = command.get_envs().map(|(name, value)| format!("{}={:?} ", name.display(), value.unwrap_or_default()));
    eprintln!("$ {}{line}", set.collect::<String>());
    let status = command.status().map_err(|error| Failure::new(format!("cannot run `{line}`: {error}")))?;
    // What a signal ended has no code.
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    if status.success() { Ok(()) } else { Err(Failure { code, what: format!("`{line}` failed ({status})") }) }
}

/// Runs lines of cargo. `{all}` in one is the workspace with all features but the peers of the
/// bench, `{peers}` is the bench with them, `{libraries}` are the crates that are published.
pub(crate) fn cargo(sh: &Shell, lines: &[&str]) -> Result {
    for line in lines {
        let mut line = line.replace("{peers}", "-p timer-bench --features peers");
        if line.contains("{all}") {
            line = line.replace("{all}", &format!("--workspace --features {}", features(&metadata(sh)?)));
        }
        let line = line.replace("{libraries}", &LIBRARIES.map(|library| format!("-p {library}")).join(" "));
        let words = line.split_whitespace();
        run(cmd!(sh, "cargo {words...}"))?;
    }
    Ok(())
}

/// Can this be run here? If not, what it is for is skipped: `what` is missing.
pub(crate) fn need(line: &str, what: &str) -> Result {
    let (program, args) = line.split_once(' ').unwrap_or((line, ""));
    let output = Command::new(program).args(args.split(' ')).output();
    if output.is_ok_and(|output| output.status.success()) { Ok(()) } else { Err(Failure::skipped(what)) }
}

/// The flags that the environment has in `variable`, and `more`.
pub(crate) fn flags_and(variable: &str, more: &str) -> String {
    format!("{} {more}", std::env::var(variable).unwrap_or_default()).trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_exit_code_is_the_childs() {
        let failure = super::cargo(&super::shell().unwrap(), &["no-such-command"]).unwrap_err();
        assert!(failure.code == 101 && failure.what.contains("no-such-command"));
    }
}
