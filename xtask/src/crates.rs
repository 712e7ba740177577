//! The crates of the workspace as cargo knows them: their dependencies and their features.

use std::collections::BTreeSet;

use serde_json::Value;
use xshell::{Shell, cmd};

use crate::run::Result;

/// The crates that are published, in the order of their arrows.
pub(crate) const LIBRARIES: [&str; 8] = [
    "timer-executor",
    "timer-core",
    "timer-durable",
    "timer-durable-sqlite",
    "timer-durable-postgres",
    "timer-metrics",
    "timer-live",
    "timer-adapters",
];

/// The published crates and the command `timer`, in the order in which a person publishes them.
pub(crate) const PUBLISHED: [&str; 9] = {
    let [a, b, c, d, e, f, g, h] = LIBRARIES;
    [a, b, c, d, e, f, g, h, "timer-cli"]
};

/// The crates that the small programs of `examples` may use.
const WITH_REDB: [&str; 9] = {
    let [a, b, c, d, e, f, g, h] = LIBRARIES;
    [a, b, c, d, e, f, g, h, "redb-store"]
};

/// The adapters and the crates below them.
pub(crate) const ADAPTERS_AND_CORE: [&str; 3] = ["timer-adapters", "timer-core", "timer-executor"];

/// The tests that are generic over the store, with the parts that tests of several crates share. It
/// is no part of a published crate.
const TESTS: &str = "timer-durable-tests";

/// Each crate, with the crates of the workspace that it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("timer-executor", &[]),
    ("timer-core", &["timer-executor"]),
    ("timer-metrics", &["timer-core", "timer-durable"]),
    ("timer-live", &["timer-core", "timer-metrics", "timer-durable"]),
    ("timer-durable", &["timer-executor", "timer-core", TESTS]),
    ("timer-durable-sqlite", &["timer-durable", TESTS]),
    ("timer-durable-postgres", &["timer-executor", "timer-durable", TESTS]),
    (TESTS, &["timer-core", "timer-durable"]),
    ("timer-durable-model", &[]),
    ("timer-cli", &["timer-durable", "timer-durable-sqlite", "timer-durable-postgres"]),
    ("order-service", &["timer-durable", "timer-durable-sqlite", "timer-durable-postgres"]),
    ("redb-store", &["timer-durable"]),
    ("half-a-year", &["timer-adapters", "timer-core", "timer-durable", "timer-durable-sqlite"]),
    ("timer-adapters", &["timer-core"]),
    ("timer-bench", &LIBRARIES),
    ("examples", &WITH_REDB),
    ("xtask", &[]),
];

/// Prefixes of the crates that the core must neither need nor enable in another crate. Pools belong
/// to the executor, exporters to the metrics.
const NOT_IN_CORE: &[&str] =
    &["metrics", "opentelemetry", "prometheus", "rayon", "statsd", "threadpool", "tokio", "hyper", "quinn", "tower"];

pub(crate) fn metadata(sh: &Shell) -> Result<Value> {
    let text = cmd!(sh, "cargo metadata --format-version 1 --no-deps --quiet").quiet().read()?;
    Ok(serde_json::from_str(&text)?)
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the dependencies that [`ARROWS`] or [`NOT_IN_CORE`] forbids.
pub(crate) fn arrows(metadata: &Value) -> Vec<String> {
    let packages = list(&metadata["packages"]);
    let gone = ARROWS.iter().filter(|(known, _)| !packages.iter().any(|package| package["name"] == **known));
    let mut faults: Vec<String> =
        gone.map(|(known, _)| format!("{known} is gone; remove it from xtask/src/crates.rs")).collect();
    for package in packages {
        let name = text(&package["name"]);
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
            faults.push(format!("{name} has no place among the arrows; give it one in xtask/src/crates.rs"));
            continue;
        };
        for dependency in list(&package["dependencies"]) {
            let needs = text(&dependency["name"]);
            // A crate may enable its own features for its tests.
            let is_own = needs == name && dependency["kind"] == "dev";
            // Programs are not published.
            let is_test = needs == TESTS && !LIBRARIES.contains(&name);
            let is_known = ARROWS.iter().any(|(known, _)| *known == needs);
            if is_known && !allowed.contains(&needs) && !is_own && !is_test {
                faults.push(format!("{name} depends on {needs}; it may depend on {allowed:?} only, so move the code"));
            }
            // An optional dependency is the user's choice, and tests may depend on anything.
            let always = dependency["kind"].is_null() && dependency["optional"] != true;
            let mut brings = list(&dependency["features"]).iter().map(text).chain([needs]);
            let bad = brings.find(|word| NOT_IN_CORE.iter().any(|bad| word.starts_with(bad)));
            if let Some(bad) = bad.filter(|_| name == "timer-core" && always) {
                faults
                    .push(format!("the core gets {bad} through {needs}; move the code that needs it to another crate"));
            }
        }
    }
    faults
}

/// The features that only `ci --long` builds, because their dependencies take long to compile. They
/// are the bench's peers, its allocator and criterion, the protobuf of timer-metrics (with the
/// compiler of its schema), the client of an example, and drivers of PostgreSQL, for which sqlx
/// stands.
const HEAVY: [&str; 10] = [
    "peers",
    "mimalloc",
    "criterion",
    "protobuf",
    "redis",
    "diesel",
    "diesel-async",
    "sea-orm",
    "sea-orm-1",
    "sqlx-0-8",
];

/// The packages with heavy features that are no drivers, and all of their features.
pub(crate) const HEAVY_PACKAGES: &str = "-p timer-bench -p examples -p timer-metrics -p timer-live --all-features";

/// Each crate, with the words of README for the number of packages that a program with it takes in,
/// which is at `#`.
const TAKEN_IN: [(&str, &str); 3] = [
    ("timer-core", "`timer-core` builds with # packages"),
    ("timer-durable-sqlite", "`timer-durable` with # for SQLite"),
    ("timer-durable-postgres", "or # for PostgreSQL"),
];

/// Returns the numbers of packages in README that are wrong.
pub(crate) fn wrong_counts(sh: &Shell, readme: &str) -> Result<Vec<String>> {
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut faults = Vec::new();
    for (name, words) in TAKEN_IN {
        let tree = cmd!(sh, "cargo tree --offline -p {name} -e normal,build --prefix none");
        let tree = tree.args(["--format", "{p}"]).quiet().ignore_stderr().read()?;
        let packages: BTreeSet<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
        let words = words.replace('#', &packages.len().to_string());
        if !readme.contains(&words) {
            faults.push(format!("README.md does not say \"{words}\""));
        }
    }
    Ok(faults)
}

/// Returns every feature but the heavy and the internal ones, joined as `--features` expects them.
/// Tests enable the internal ones.
pub(crate) fn features(metadata: &Value) -> String {
    let mut features = Vec::new();
    for package in list(&metadata["packages"]) {
        let names = package["features"].as_object().into_iter().flat_map(|features| features.keys());
        let names = names.filter(|name| !name.starts_with("__") && !is_heavy(name) && *name != "default");
        features.extend(names.map(|name| format!("{}/{name}", text(&package["name"]))));
    }
    features.join(",")
}

/// Returns the [`features`] of the libraries.
pub(crate) fn library_features(metadata: &Value) -> Vec<String> {
    let features = features(metadata);
    let is_library = |feature: &&str| LIBRARIES.contains(&feature.split('/').next().unwrap_or_default());
    features.split(',').filter(is_library).map(str::to_owned).collect()
}

/// Returns the lines that lint each library without features and with each feature alone that
/// `is_wanted` chooses. A feature may use an item or a dependency of another feature. A build with
/// all features, or with the dependencies of the tests, would hide that.
pub(crate) fn each_feature(metadata: &Value, is_wanted: fn(&str) -> bool) -> Vec<String> {
    let lint = |options: &str| format!("clippy {options} --no-default-features --lib -- -D warnings");
    let mut lines = Vec::new();
    for package in list(&metadata["packages"]).iter().filter(|package| LIBRARIES.contains(&text(&package["name"]))) {
        let name = text(&package["name"]);
        let features = package["features"].as_object().into_iter().flat_map(|features| features.keys());
        let features = features.filter(|feature| !feature.starts_with("__") && *feature != "default");
        let features = features.filter(|feature| is_wanted(feature));
        lines.extend(features.map(|feature| lint(&format!("-p {name} --features {feature}"))));
        lines.push(lint(&format!("-p {name}")));
    }
    lines
}

/// Returns `true` if only `ci --long` builds a feature.
pub(crate) fn is_heavy(feature: &str) -> bool {
    HEAVY.contains(&feature)
}

/// Returns the options that choose the programs with tests, such as `--test model`.
pub(crate) fn test_programs(metadata: &Value) -> BTreeSet<String> {
    let targets = list(&metadata["packages"]).iter().flat_map(|package| list(&package["targets"]));
    let tested = targets.filter(|target| target["test"] == true && ["bin", "test"].contains(&text(&target["kind"][0])));
    tested.map(|target| format!("--{} {}", text(&target["kind"][0]), text(&target["name"]))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_crate_is_published_after_those_that_it_needs() {
        for (name, needs) in ARROWS {
            let Some(at) = PUBLISHED.iter().position(|published| published == name) else { continue };
            assert!(needs.iter().all(|needed| *needed == TESTS || PUBLISHED[..at].contains(needed)), "{name}");
        }
    }

    /// Counts the faults when the crate `name` has one more dependency.
    fn faults(name: &str, dependency: Value) -> usize {
        let dependencies = |known: &str| if known == name { json!([dependency]) } else { json!([]) };
        let package = |known: &str| json!({ "name": known, "dependencies": dependencies(known) });
        arrows(&json!({ "packages": ARROWS.iter().map(|(known, _)| package(known)).collect::<Vec<_>>() })).len()
    }

    #[test]
    fn arrows_go_one_way() {
        let needs = |name: &str, other: &str| faults(name, json!({ "name": other, "kind": "dev" }));
        assert_eq!([needs("timer-core", "timer-executor"), needs("timer-executor", "rayon")], [0, 0]);
        assert_eq!([needs("timer-executor", "timer-core"), needs("examples", "timer-bench")], [1, 1]);
        assert_eq!(needs("timer-core", "timer-core"), 0, "a crate may enable its own features in tests");
        let new = arrows(&json!({ "packages": [{ "name": "timer-new", "dependencies": [] }] }));
        assert_eq!(new.len(), ARROWS.len() + 1, "the new crate, and all known ones that are gone");
    }

    #[test]
    fn the_core_needs_no_pool_and_no_exporter() {
        let executor = |kind| json!({ "name": "timer-executor", "kind": kind, "features": ["rayon"] });
        assert_eq!(faults("timer-core", json!({ "name": "prometheus-client", "kind": null })), 1);
        assert_eq!((faults("timer-core", executor(Value::Null)), faults("timer-core", executor("dev".into()))), (1, 0));
    }

    #[test]
    fn each_feature_of_a_library_is_linted_alone() {
        let metadata = metadata(&crate::run::shell().unwrap()).unwrap();
        let lines = each_feature(&metadata, |feature| !is_heavy(feature));
        let has =
            |options: &str| lines.contains(&format!("clippy {options} --no-default-features --lib -- -D warnings"));
        assert!(has("-p timer-metrics --features durable") && has("-p timer-live"), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("diesel") || line.contains("timer-cli")), "{lines:?}");
    }

    #[test]
    fn all_features_but_the_heavy_ones_are_built() {
        let features = features(&metadata(&crate::run::shell().unwrap()).unwrap());
        assert!(features.contains("timer-executor/rayon,") && !features.contains("diesel"), "{features}");
    }
}
