//! What cargo knows of our crates: which depends on which, and what features they have.

use serde_json::Value;
use xshell::{Shell, cmd};

use crate::run::Result;

/// The crates that are published, in the order of their arrows.
pub(crate) const LIBRARIES: [&str; 3] = ["timer-executor", "timer-core", "timer-metrics"];

/// Each crate with those of ours that it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("timer-executor", &[]),
    ("timer-core", &["timer-executor"]),
    ("timer-metrics", &["timer-core"]),
    ("timer-bench", &["timer-executor", "timer-core", "timer-metrics"]),
    ("examples", &["timer-executor", "timer-core", "timer-metrics"]),
    ("xtask", &[]),
];

/// How the names begin of what the core must not need, nor switch on in another crate: pools are the executor's,
/// exporters are the metrics'.
const NOT_IN_CORE: &[&str] = &["metrics", "opentelemetry", "prometheus", "rayon", "statsd", "threadpool", "tokio"];

/// The crates of other timers, which take longer to build than all of ours.
const PEERS: &str = "peers";

pub(crate) fn metadata(sh: &Shell) -> Result<Value> {
    let text = cmd!(sh, "cargo metadata --format-version 1 --no-deps --quiet").quiet().read()?;
    Ok(serde_json::from_str(&text)?)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The arrows that must not be.
pub(crate) fn arrows(metadata: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let packages: Vec<&Value> = list(&metadata["packages"]).collect();
    for (known, _) in ARROWS.iter().filter(|(known, _)| !packages.iter().any(|package| package["name"] == **known)) {
        faults.push(format!("the crate {known} is missing; if that is meant, take its arrows out of crates.rs"));
    }
    for package in packages {
        let name = text(&package["name"]);
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
            faults.push(format!("the crate {name} has no place among the arrows; give it one in crates.rs"));
            continue;
        };
        for dependency in list(&package["dependencies"]) {
            let needs = text(&dependency["name"]);
            if ARROWS.iter().any(|(known, _)| *known == needs) && !allowed.contains(&needs) {
                faults.push(format!("{name} depends on {needs}; of our crates it may need {allowed:?}: move the code"));
            }
            // What is optional is switched on by a feature, for a user who asks for it; tests may need what they like.
            if name == "timer-core" && dependency["kind"].is_null() && dependency["optional"] != true {
                let mut brings = list(&dependency["features"]).map(text).chain([needs]);
                if let Some(bad) = brings.find(|word| NOT_IN_CORE.iter().any(|bad| word.starts_with(bad))) {
                    faults.push(format!("the core needs {bad} by {needs}; put what needs it into another crate"));
                }
            }
        }
    }
    faults
}

/// Every feature but the peers of the bench, as `--features` wants them.
pub(crate) fn features(metadata: &Value) -> String {
    let mut features = Vec::new();
    for package in list(&metadata["packages"]) {
        let names = package["features"].as_object().into_iter().flat_map(|features| features.keys());
        let names = names.filter(|name| *name != PEERS && *name != "default");
        features.extend(names.map(|name| format!("{}/{name}", text(&package["name"]))));
    }
    features.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ARROWS, arrows, features, metadata};
    use crate::run::shell;

    /// The faults when the crate `name` has one dependency more.
    fn faults(name: &str, dependency: Value) -> Vec<String> {
        let package = |known: &str| json!({ "name": known, "dependencies": if known == name { vec![&dependency] } else { vec![] } });
        arrows(&json!({ "packages": ARROWS.iter().map(|(known, _)| package(known)).collect::<Vec<_>>() }))
    }

    #[test]
    fn arrows_go_one_way() {
        let needs = |name: &str, other: &str| faults(name, json!({ "name": other, "kind": "dev" })).len();
        for (name, other) in
            [("timer-core", "timer-executor"), ("timer-metrics", "timer-core"), ("timer-executor", "rayon")]
        {
            assert_eq!(needs(name, other), 0, "{name} -> {other}");
        }
        for (name, other) in [
            ("timer-executor", "timer-core"),
            ("timer-core", "timer-metrics"),
            ("examples", "timer-bench"),
            ("xtask", "timer-core"),
        ] {
            assert_eq!(needs(name, other), 1, "{name} -> {other}");
        }
    }

    #[test]
    fn the_core_needs_no_pool_and_no_exporter() {
        let core = |dependency: Value| faults("timer-core", dependency).len();
        assert_eq!(core(json!({ "name": "rayon", "kind": null })), 1);
        assert_eq!(core(json!({ "name": "prometheus-client", "kind": null })), 1);
        assert_eq!(core(json!({ "name": "timer-executor", "kind": null, "features": ["rayon"] })), 1);
        assert_eq!(core(json!({ "name": "timer-executor", "kind": "dev", "features": ["rayon"] })), 0);
        assert_eq!(core(json!({ "name": "timer-executor", "kind": null, "features": [] })), 0);
    }

    #[test]
    fn a_crate_that_is_new_or_gone_is_a_fault() {
        let one = arrows(&json!({ "packages": [{ "name": "timer-new", "dependencies": [] }] }));
        assert_eq!(one.len(), ARROWS.len() + 1);
    }

    #[test]
    fn all_features_but_the_peers_are_built() {
        let features = features(&metadata(&shell().unwrap()).unwrap());
        assert!(features.contains("timer-executor/rayon,") && features.contains("timer-metrics/http"), "{features}");
        assert!(!features.contains("peers"), "{features}");
    }
}
