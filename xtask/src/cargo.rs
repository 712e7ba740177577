//! Lines of cargo, in which words stand for packages and features of the workspace.

use xshell::{Cmd, Shell, cmd};

use crate::crates::{LIBRARIES, features, metadata};
use crate::run::{Result, first_failure, run};

/// Runs lines of cargo. In a line, `{all}` is the workspace with all features but the bench's
/// peers, `{peers}` is the bench with them, and `{libraries}` are the published crates.
pub(crate) fn cargo(sh: &Shell, lines: &[&str]) -> Result {
    first_failure(lines.iter().map(|line| run(cargo_line(sh, line)?)))
}

/// Returns the command of a line for [`cargo`].
pub(crate) fn cargo_line<'a>(sh: &'a Shell, line: &str) -> Result<Cmd<'a>> {
    let mut line = line.replace("{peers}", "-p timer-bench --features peers");
    if line.contains("{all}") {
        line = line.replace("{all}", &format!("--workspace --features {}", features(&metadata(sh)?)));
    }
    let line = line.replace("{libraries}", &LIBRARIES.map(|library| format!("-p {library}")).join(" "));
    let words = line.split_whitespace();
    Ok(cmd!(sh, "cargo {words...}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_exit_code_is_that_of_the_child() {
        let failure = super::cargo(&crate::run::shell().unwrap(), &["no-such-command"]).unwrap_err();
        assert!(failure.code == 101 && failure.message.contains("no-such-command"));
    }
}
