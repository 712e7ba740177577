//! Running a command: its line is printed first, and its exit code is ours if it fails.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use xshell::{Cmd, Shell};

pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why a command failed, and what to exit with.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) what: String,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { code: 1, what: what.into() }
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

/// The workspace.
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
    for (name, value) in command.get_envs() {
        eprint!("{}='{}' ", name.display(), value.unwrap_or_default().display());
    }
    eprintln!("$ {line}");
    let status = command.status().map_err(|error| Failure::new(format!("cannot run `{line}`: {error}")))?;
    check(status, &line)
}

fn check(status: ExitStatus, line: &str) -> Result {
    if status.success() {
        return Ok(());
    }
    // What a signal ended has no code.
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(Failure { code, what: format!("`{line}` failed ({status})") })
}

/// Can `program` be started?
pub(crate) fn has(program: &str, args: &[&str]) -> bool {
    let status = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// A variable with `more` added to the flags that the environment has in `name` (`RUSTFLAGS`, `RUSTDOCFLAGS`). Where the
/// encoded variable is set, cargo heeds that one alone.
pub(crate) fn flags(name: &str, more: &str) -> (String, String) {
    let encoded = format!("CARGO_ENCODED_{name}");
    match std::env::var(&encoded) {
        Ok(old) => (encoded, joined(&old, "\u{1f}", more)),
        Err(_) => (name.to_owned(), joined(&std::env::var(name).unwrap_or_default(), " ", more)),
    }
}

fn joined(old: &str, separator: &str, more: &str) -> String {
    let flags: Vec<&str> = old.split(separator).filter(|flag| !flag.is_empty()).chain(more.split(' ')).collect();
    flags.join(separator)
}

#[cfg(test)]
mod tests {
    use xshell::cmd;

    use super::{joined, root, run, shell};

    #[test]
    fn flags_are_added_and_not_replaced() {
        assert_eq!(joined("", " ", "--cfg timer_loom"), "--cfg timer_loom");
        assert_eq!(joined("-C\u{1f}x", "\u{1f}", "--cfg y"), "-C\u{1f}x\u{1f}--cfg\u{1f}y");
    }

    #[test]
    fn the_exit_code_is_the_childs() {
        let sh = shell().unwrap();
        let failure = run(cmd!(sh, "cargo no-such-command")).unwrap_err();
        assert!(failure.code == 101 && failure.what.contains("no-such-command"));
        assert!(root().join("xtask/Cargo.toml").is_file());
    }
}
