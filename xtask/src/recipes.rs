//! The programs of the package `recipes`, which has the timers under other people's simulators and
//! checkers. Each simulator with a cfg of its own has its own build.

use xshell::{Shell, cmd};

use crate::run::{Result, flags_and, need, report, run, target_dir};

/// The package is another workspace.
pub(crate) const MANIFEST: &str = "examples/recipes/Cargo.toml";

/// Simulators that compile every crate with a cfg, which is also the name of their test.
const CFGS: [&str; 2] = ["madsim", "loom"];

pub(crate) fn command(sh: &Shell) -> Result {
    if let Err(skipped) = need("faketime --version", "faketime (apt-get install faketime)") {
        report(&format!("no faked clock: {}\n", skipped.message));
    }
    let folder = &target_dir().join("recipes");
    let package = ["--manifest-path", MANIFEST, "--target-dir"];
    run(cmd!(sh, "cargo clippy {package...} {folder} --all-targets -- -D warnings"))?;
    run(cmd!(sh, "cargo run {package...} {folder}"))?;
    run(cmd!(sh, "cargo test --no-fail-fast {package...} {folder}"))?;
    let flags = flags_and("RUSTFLAGS", "--cfg");
    for cfg in CFGS {
        let folder = folder.join(cfg);
        let flags = format!("{flags} {cfg}");
        run(cmd!(sh, "cargo test {package...} {folder} --test {cfg}").env("RUSTFLAGS", flags))?;
    }
    Ok(())
}
