//! Lines of cargo, in which words stand for packages and features of the workspace.

use std::env::consts::EXE_SUFFIX;
use std::path::Path;

use xshell::{Cmd, Shell, cmd};

use crate::crates::{HEAVY_PACKAGES, LIBRARIES, features, metadata};
use crate::run::{Result, first_failure, run};

/// Runs lines of cargo. In a line, `{all}` is the workspace with all features but the heavy ones,
/// `{linted}` is the same with clippy as its compiler, `{heavy}` are the packages with heavy
/// features, and `{libraries}` are the published crates.
pub(crate) fn cargo(sh: &Shell, lines: &[&str]) -> Result {
    first_failure(lines.iter().map(|line| run(cargo_line(sh, line)?)))
}

/// Returns the command of a line for [`cargo`].
pub(crate) fn cargo_line<'a>(sh: &'a Shell, line: &str) -> Result<Cmd<'a>> {
    let is_linted = line.contains("{linted}");
    let mut line = line.replace("{linted}", "{all}").replace("{heavy}", HEAVY_PACKAGES);
    if line.contains("{all}") {
        line = line.replace("{all}", &format!("--workspace --features {}", features(&metadata(sh)?)));
    }
    let line = line.replace("{libraries}", &LIBRARIES.map(|library| format!("-p {library}")).join(" "));
    let words = line.split_whitespace();
    let cargo = cmd!(sh, "cargo {words...}");
    if is_linted { linted(sh, cargo) } else { Ok(cargo) }
}

/// Makes clippy the compiler of the workspace and denies warnings, as `cargo clippy` does.
///
/// clippy generates the code of the tests in the same run, so that the lints need no second
/// compilation of the workspace and of all dependencies. It leaves the MIR as it was written, which
/// makes little difference for unoptimized tests. `ci --long` tests the code of the plain compiler.
/// Debug information is absent, because a failed test prints its line without it.
fn linted<'a>(sh: &Shell, cargo: Cmd<'a>) -> Result<Cmd<'a>> {
    let sysroot = cmd!(sh, "rustc --print sysroot").quiet().read()?;
    let driver = Path::new(&sysroot).join("bin").join(format!("clippy-driver{EXE_SUFFIX}"));
    let cargo = cargo.env("RUSTC_WORKSPACE_WRAPPER", driver).env("CLIPPY_ARGS", "-Dwarnings");
    Ok(cargo.env("CARGO_PROFILE_DEV_DEBUG", "false"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_exit_code_is_that_of_the_child() {
        let failure = super::cargo(&crate::run::shell().unwrap(), &["no-such-command"]).unwrap_err();
        assert!(failure.code == 101 && failure.message.contains("no-such-command"));
    }
}
