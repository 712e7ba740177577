//! The lines for `Cargo.toml` that the READMEs name, each copied into an empty package.
//!
//! The first line of a block is a comment with its cost, that is, the number of packages that it
//! builds on Linux and the oldest compiler. The packages have the versions of this workspace.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use xshell::{Shell, cmd};

use crate::run::{Failure, Result, report, root, run, target_dir};

const READMES: [&str; 3] = ["README.md", "timer-durable-sqlite/README.md", "timer-durable-postgres/README.md"];

/// The folder of this repository in the blocks.
const PLACE: &str = "../timer/";

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Compiles each package and compares its cost. Finally removes everything that it has built.
pub(crate) fn command(sh: &Shell) -> Result {
    let folder = target_dir().join("first-lines");
    for readme in READMES {
        let text = fs::read_to_string(root().join(readme))?;
        let blocks = blocks(&text);
        if blocks.is_empty() {
            return Err(Failure::new(format!("{readme} has no block of Cargo.toml")));
        }
        for (cost, dependencies) in blocks {
            let package = folder.join("empty");
            create(&package, dependencies)?;
            let _in_package = sh.push_dir(&package);
            let found = cost_of(sh)?;
            report(&format!("{readme}: {found}\n"));
            if cost != found {
                return Err(Failure::new(format!("{readme} says {cost:?}, but it is {found:?}, of\n{dependencies}")));
            }
            let target = folder.join("target");
            run(cmd!(sh, "cargo check --quiet --target-dir {target}"))?;
        }
    }
    // All drivers together take most of a gigabyte.
    Ok(fs::remove_dir_all(folder)?)
}

/// Returns the blocks of a README, each as the cost and the dependencies.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    text.split("```toml\n").skip(1).filter_map(block).collect()
}

/// Returns the cost and the dependencies of the block before the rest of a README.
fn block(text: &str) -> Option<(&str, &str)> {
    let (block, _) = text.split_once("```")?;
    block.strip_prefix("# ")?.split_once("\n[dependencies]\n")
}

fn create(package: &Path, dependencies: &str) -> Result {
    fs::create_dir_all(package.join("src"))?;
    fs::write(package.join("src/main.rs"), "fn main() {}\n")?;
    fs::copy(root().join("Cargo.lock"), package.join("Cargo.lock"))?;
    let dependencies = dependencies.replace(PLACE, &format!("{}/", root().display()));
    let head = "[package]\nname = \"empty\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n";
    Ok(fs::write(package.join("Cargo.toml"), format!("{head}{dependencies}"))?)
}

/// Returns the cost of the package in the folder of the shell.
fn cost_of(sh: &Shell) -> Result<String> {
    let tree = cmd!(sh, "cargo tree --quiet --prefix none --edges normal,build --target {TARGET}").quiet().read()?;
    let name_and_version = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let built: BTreeSet<String> = tree.lines().filter(|line| !line.is_empty()).map(name_and_version).collect();
    let metadata = cmd!(sh, "cargo metadata --quiet --format-version 1 --filter-platform {TARGET}").quiet().read()?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let text = |package: &Value, name: &str| package[name].as_str().unwrap_or_default().to_owned();
    let is_built =
        |package: &&Value| built.contains(&format!("{} v{}", text(package, "name"), text(package, "version")));
    let version = |package: &Value| -> Vec<u32> {
        text(package, "rust_version").split('.').filter_map(|part| part.parse().ok()).take(2).collect()
    };
    let oldest = metadata["packages"].as_array().into_iter().flatten().filter(is_built).map(version).max();
    let oldest: Vec<String> = oldest.unwrap_or_default().iter().map(u32::to_string).collect();
    // The empty package is one of them.
    Ok(format!("{} packages, Rust {}", built.len() - 1, oldest.join(".")))
}

#[cfg(test)]
mod tests {
    use super::blocks;

    #[test]
    fn a_block_has_its_cost_in_the_first_line() {
        let text = "a\n```toml\n# 3 packages, Rust 1.85\n[dependencies]\na = \"1\"\n```\nb\n```toml\n[features]\n```\n";
        assert_eq!(blocks(text), [("3 packages, Rust 1.85", "a = \"1\"\n")]);
    }
}
