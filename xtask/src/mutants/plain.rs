//! cargo-mutants, which changes code without atomics. `.cargo/mutants.toml` names the files.
//!
//! All files take hours, so a run can be restricted to some of them, and it ends after a limit.

use std::fs;

use xshell::{Shell, cmd};

use crate::run::{Failure, Result, need, report, run, target_dir};

/// The limit in minutes if the command line names none.
const MINUTES: u32 = 240;

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
    let listed = cmd!(sh, "cargo mutants -p timer-core --list --re {names}").quiet().read()?;
    // The exit code also reports mutations that take too long, and the limit. The lists say more.
    let ended = run(cmd!(sh, "timeout --signal INT {limit} cargo mutants -p timer-core --output {out} --re {names}"));
    let list = |name: &str| fs::read_to_string(out.join(format!("mutants.out/{name}.txt"))).unwrap_or_default();
    let missed = list("missed");
    let judged: usize = ["caught", "timeout", "unviable", "missed"].map(|name| list(name).lines().count()).iter().sum();
    report(&format!("{judged} of {} mutations have run. Those that survive:\n{missed}", listed.lines().count()));
    match missed.lines().count() {
        0 if judged == 0 => ended,
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} mutations of plain code survive"))),
    }
}
