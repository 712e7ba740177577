//! `cargo xtask release --dry-run`, which checks everything that a release needs and publishes
//! nothing. It ends with the commands for a person, and with the names that crates.io has already.

use std::fs;

use serde_json::Value;
use xshell::{Shell, cmd};

use crate::crates::{LIBRARIES, PUBLISHED, list, metadata, text};
use crate::flags;
use crate::package;
use crate::run::{Failure, Result, need, report, root, run};

pub(crate) fn command(sh: &Shell, flags: &flags::Release) -> Result {
    if !flags.dry_run {
        return Err(Failure::usage("a person publishes; `--dry-run` checks a release and prints the commands"));
    }
    let metadata = metadata(sh)?;
    let versions = Versions::new(&fs::read_to_string(root().join("CHANGELOG.md"))?);
    let faults = faults(&metadata, &versions);
    if !faults.is_empty() {
        return Err(Failure::new(format!("\n{}", faults.join("\n"))));
    }
    compare_api(sh, &versions)?;
    package::command(sh)?;
    let names: String = PUBLISHED.map(|name| format!("{name}: {}\n", on_registry(sh, name))).concat();
    report(&format!("\nOn crates.io, where `-` and `_` are the same:\n\n{names}\n{}", instructions(&versions)));
    Ok(())
}

/// The first two headings of CHANGELOG.md.
struct Versions {
    next: String,
    /// The rest of the first heading, a date or "unreleased".
    date: String,
    last: Option<String>,
}

impl Versions {
    fn new(changelog: &str) -> Self {
        let mut headings = changelog.lines().filter_map(|line| line.strip_prefix("## "));
        let mut heading = || headings.next().and_then(|heading| heading.split_once(", "));
        let (next, date) = heading().unwrap_or_default();
        Self { next: next.to_owned(), date: date.to_owned(), last: heading().map(|(last, _)| last.to_owned()) }
    }
}

/// Returns the versions that differ from the one in CHANGELOG.md, and the features that docs.rs
/// would not document.
fn faults(metadata: &Value, versions: &Versions) -> Vec<String> {
    let next = &versions.next;
    let mut faults = Vec::new();
    for package in list(&metadata["packages"]).iter().filter(|it| PUBLISHED.contains(&text(&it["name"]))) {
        let name = text(&package["name"]);
        if package["version"] != **next {
            faults.push(format!("{name} has version {}, and CHANGELOG.md has {next}", package["version"]));
        }
        for dependency in list(&package["dependencies"]) {
            let is_ours = PUBLISHED.contains(&text(&dependency["name"])) && dependency["kind"].is_null();
            if is_ours && dependency["req"] != format!("^{next}") {
                faults.push(format!("{name} needs {} {}", dependency["name"], dependency["req"]));
            }
        }
        let docs = &package["metadata"]["docs"]["rs"];
        let features = package["features"].as_object().into_iter().flat_map(|features| features.keys());
        let public = features.filter(|name| !name.starts_with("__") && *name != "default");
        let is_shown = |feature: &&String| list(&docs["features"]).iter().any(|shown| shown == &***feature);
        if LIBRARIES.contains(&name) && docs["all-features"] != true {
            faults.extend(public.filter(|it| !is_shown(it)).map(|it| format!("docs.rs does not show {name}/{it}")));
        }
    }
    faults
}

/// Fails if the public API breaks programs although the version promises that it does not.
fn compare_api(sh: &Shell, versions: &Versions) -> Result {
    let Some(last) = &versions.last else {
        report("There is no release yet, so there is no API to compare with.\n");
        return Ok(());
    };
    // A release without this comparison is not checked.
    need("cargo semver-checks --version", "cargo-semver-checks (cargo install cargo-semver-checks --locked)")
        .map_err(|missing| Failure::new(missing.message))?;
    let libraries = LIBRARIES.map(|library| ["-p", library]).concat();
    run(cmd!(sh, "cargo semver-checks check-release {libraries...} --all-features --baseline-rev v{last}"))
}

/// Returns who has a name on crates.io, as far as the registry can be asked.
fn on_registry(sh: &Shell, name: &str) -> String {
    // Within the workspace, cargo would describe its member.
    let _elsewhere = sh.push_dir(std::env::temp_dir());
    let Ok(output) = cmd!(sh, "cargo info --quiet {name}").quiet().ignore_status().output() else {
        return "unknown".to_owned();
    };
    let described = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = described.split_whitespace().next();
    let version = described.lines().find_map(|line| line.strip_prefix("version: "));
    match (found, version) {
        (Some(found), Some(version)) => format!("taken, {found} {version}"),
        _ if String::from_utf8_lossy(&output.stderr).contains("could not find") => "free".to_owned(),
        _ => "unknown, because the registry did not answer".to_owned(),
    }
}

fn instructions(versions: &Versions) -> String {
    let next = &versions.next;
    let publish = PUBLISHED.map(|name| format!("    cargo publish -p {name}\n")).concat();
    format!(
        "The heading of CHANGELOG.md says \"{}\". A taken name is yours or has to change, in the manifests and in \
         README.md. Then a person runs:\n\n    git tag v{next}\n{publish}    git push origin v{next}\n",
        versions.date
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run::shell;

    #[test]
    fn the_headings_have_the_versions() {
        let versions = Versions::new("# Changelog\n\n## 0.2.0, unreleased\n\n- x\n\n## 0.1.0, 2026-12-01\n");
        let Versions { next, date, last } = versions;
        assert_eq!((next.as_str(), date.as_str(), last.as_deref()), ("0.2.0", "unreleased", Some("0.1.0")));
        assert!(Versions::new("## 0.1.0, unreleased\n").last.is_none());
    }

    #[test]
    fn the_workspace_is_ready_for_its_next_version() {
        let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
        let faults = faults(&metadata(&shell().unwrap()).unwrap(), &Versions::new(&changelog));
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn other_versions_and_hidden_features_are_faults() {
        let needs = json!({ "name": "timer-executor", "kind": null, "req": "^0.1.0" });
        let docs = json!({ "docs": { "rs": { "features": ["rayon"] } } });
        let package = json!({
            "name": "timer-core", "version": "0.1.0", "dependencies": [needs], "metadata": docs,
            "features": { "rayon": [], "threadpool": [], "__tests": [] },
        });
        let count = |version: &str| {
            let versions = Versions::new(&format!("## {version}, unreleased\n"));
            faults(&json!({ "packages": [&package] }), &versions).len()
        };
        assert_eq!([count("0.1.0"), count("0.2.0")], [1, 3]);
    }
}
