//! The tests of timer-adapters with the lowest versions of the crates that it adapts.
//!
//! The workspace is locked to new versions, so its tests cannot find a use of an API that an old
//! version lacks. Here, a copy of the adapters and of the crates below them is locked to the
//! versions that `Cargo.toml` declares. That lock file is made on a nightly compiler in the copy,
//! whose folder the step prints:
//!
//! ```text
//! rm Cargo.lock && cargo +nightly generate-lockfile -Z direct-minimal-versions
//! ```

use std::fs;
use std::path::Path;

use xshell::{Shell, cmd};

use crate::crates::ADAPTERS_AND_CORE;
use crate::run::{Result, copy_sources, report, root, run, target_dir};

/// The lock file, and its place in the copy.
const LOCK: [&str; 2] = ["timer-adapters/lowest.lock", "Cargo.lock"];

/// A test that fails with tokio before 1.51.6 and 1.53.3, whose paused clock moves on although a
/// socket wakes a task (tokio-rs/tokio#8595).
const NEEDS_NEWER_TOKIO: &str = "a_chain_of_sockets_does_not_move_time";

pub(crate) fn command(sh: &Shell) -> Result {
    let tree = target_dir().join("lowest").join("tree");
    let wanted = |path: &str| {
        path == "Cargo.toml" || path.split('/').next().is_some_and(|name| ADAPTERS_AND_CORE.contains(&name))
    };
    copy_sources(sh, &tree, wanted)?;
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    fs::write(tree.join("Cargo.toml"), only_members(&manifest, &ADAPTERS_AND_CORE))?;
    for name in ADAPTERS_AND_CORE.iter().filter(|name| **name != "timer-adapters") {
        without_tests(&tree.join(name).join("Cargo.toml"))?;
    }
    fs::copy(root().join(LOCK[0]), tree.join(LOCK[1]))?;
    report(&format!("the copy is {}\n", tree.display()));
    sh.change_dir(&tree);
    let target = target_dir().join("lowest").join("target");
    let skip = NEEDS_NEWER_TOKIO;
    run(cmd!(sh, "cargo test -p timer-adapters --all-features --tests --locked --target-dir {target} -- --skip {skip}"))
}

/// Replaces the members of a workspace, and removes its dependencies on other members.
fn only_members(manifest: &str, members: &[&str]) -> String {
    let line = |line: &str| match line.split_once(" = ") {
        Some(("members", _)) => Some(format!("members = {members:?}")),
        Some((name, rest)) if rest.starts_with("{ path") && !members.contains(&name) => None,
        _ => Some(line.to_owned()),
    };
    manifest.lines().filter_map(line).flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// Removes the dependencies of the tests from a manifest, because they need newer versions.
fn without_tests(path: &Path) -> Result {
    let mut is_kept = true;
    let text = fs::read_to_string(path)?;
    let lines = text.lines().filter(|line| {
        if line.starts_with('[') {
            is_kept = !line.contains("dev-dependencies");
        }
        is_kept
    });
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    Ok(fs::write(path, text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crates::metadata;
    use crate::run::shell;

    /// Returns the locked versions of a crate.
    fn locked<'a>(lock: &'a str, name: &str) -> Vec<&'a str> {
        let name = format!("name = \"{name}\"");
        let versions = lock.split("[[package]]").filter(|package| package.lines().any(|line| line == name));
        versions.filter_map(|package| package.split("version = \"").nth(1)?.split('"').next()).collect()
    }

    #[test]
    fn the_lowest_versions_are_those_of_the_manifest() {
        let metadata = metadata(&shell().unwrap()).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        let adapters = packages.iter().find(|package| package["name"] == "timer-adapters").unwrap();
        let lock = fs::read_to_string(root().join(LOCK[0])).unwrap();
        for dependency in adapters["dependencies"].as_array().unwrap() {
            let name = dependency["name"].as_str().unwrap();
            let lowest = dependency["req"].as_str().unwrap().trim_start_matches('^');
            let lowest = format!("{lowest}{}", ".0".repeat(2 - lowest.matches('.').count()));
            assert!(locked(&lock, name).contains(&lowest.as_str()), "{name} {lowest} is not in {}", LOCK[0]);
        }
    }

    #[test]
    fn other_members_are_left_out() {
        let manifest = "members = [\"a\", \"b\"]\na = { path = \"a\" }\nb = { path = \"b\" }\nc = \"1\"\n";
        assert_eq!(only_members(manifest, &["a"]), "members = [\"a\"]\na = { path = \"a\" }\nc = \"1\"\n");
        let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let members = manifest.lines().find(|line| line.starts_with("members")).unwrap();
        assert!(members.ends_with(']'), "the members must stand in one line");
    }
}
