//! What the manifests may say: which crate may need which, and that versions and lints come from the workspace.

use super::manifest::{Kind, Manifest};
use super::tree::{Fault, File, Tree};

/// Each crate with those of ours that it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("timer-executor", &[]),
    ("timer-core", &["timer-executor"]),
    ("timer-metrics", &["timer-core"]),
    ("timer-bench", &["timer-executor", "timer-core", "timer-metrics"]),
    ("examples", &["timer-executor", "timer-core", "timer-metrics"]),
    ("xtask", &[]),
];

/// How the names begin of what the core must not need: pools are the executor's, exporters are the metrics'.
const NOT_IN_CORE: &[&str] = &["metrics", "opentelemetry", "prometheus", "rayon", "statsd", "threadpool", "tokio"];

/// The features of the executor that would bring a pool into the core by the back door.
const POOLS: &[&str] = &["rayon", "threadpool"];

/// Arrows between crates.
pub(crate) fn crates(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, manifest) in members(tree) {
        let name = manifest.get("package", "name").unwrap_or_default();
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
            let what = format!("`{name}` has no place among the arrows; give it one in xtask/src/tidy/arrows.rs");
            faults.push(Fault::new(&file.path, 1, what));
            continue;
        };
        for dependency in manifest.dependencies() {
            let needs = dependency.name.as_str();
            let ours = ARROWS.iter().any(|(known, _)| *known == needs);
            let mut fault = |what: String| faults.push(Fault::new(&file.path, dependency.line, what));
            if ours && !allowed.contains(&needs) {
                let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
                fault(format!("{name} depends on {needs}; of our crates it may need {allowed}: move the code instead"));
            }
            if name != "timer-core" || dependency.kind != Kind::Normal {
                continue;
            }
            if NOT_IN_CORE.iter().any(|banned| needs.starts_with(banned)) {
                fault(format!("the core depends on {needs}; put what needs it into timer-executor or timer-metrics"));
            }
            let pool = POOLS.iter().find(|pool| dependency.spec.contains(&format!("\"{pool}\"")));
            if let Some(pool) = pool.filter(|_| needs == "timer-executor") {
                fault(format!("the core switches on `{pool}` of {needs}; only [dev-dependencies] may"));
            }
        }
    }
    faults
}

/// Dependencies and lints are taken from the workspace.
pub(crate) fn workspace(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, manifest) in members(tree) {
        for dependency in manifest.dependencies() {
            if !dependency.spec.contains("workspace=true") {
                let what = format!(
                    "{} has a version of its own; list it in the root's [workspace.dependencies] and say `workspace = true`",
                    dependency.name
                );
                faults.push(Fault::new(&file.path, dependency.line, what));
            }
        }
        let lints = manifest.get("lints", "workspace").or_else(|| manifest.get("", "lints.workspace"));
        if lints != Some("true") {
            faults.push(Fault::new(
                &file.path,
                1,
                "the workspace's lints are off; add `[lints]` with `workspace = true`",
            ));
        }
    }
    faults
}

fn members(tree: &Tree) -> Vec<(&File, Manifest)> {
    let Some(root) = tree.file("Cargo.toml") else {
        return Vec::new();
    };
    let root = Manifest::parse(&root.text);
    let members = root.strings("workspace", "members").into_iter();
    let files = members.filter_map(|member| tree.file(&format!("{member}/Cargo.toml")));
    files.map(|file| (file, Manifest::parse(&file.text))).collect()
}

#[cfg(test)]
mod tests {
    use super::{crates, workspace};
    use crate::tidy::tree::{Fault, Tree};

    fn faults(rule: fn(&Tree) -> Vec<Fault>, name: &str, rest: &str) -> Vec<String> {
        let root = "[workspace]\nmembers = [\"a\"]\n";
        let member = format!("[package]\nname = \"{name}\"\n{rest}");
        let tree = Tree::of(&[("Cargo.toml", root), ("a/Cargo.toml", &member)]);
        rule(&tree).iter().map(Fault::to_string).collect()
    }

    #[test]
    fn arrows_go_one_way() {
        let needs = |name: &str, other: &str| {
            let rest = format!("[dependencies]\n{other} = {{ workspace = true }}\n");
            faults(crates, name, &rest).len()
        };
        assert_eq!(needs("timer-core", "timer-executor"), 0);
        assert_eq!(needs("timer-metrics", "timer-core"), 0);
        assert_eq!(needs("examples", "timer-metrics"), 0);
        assert_eq!(needs("timer-executor", "rayon"), 0);
        assert_eq!(needs("timer-executor", "timer-core"), 1);
        assert_eq!(needs("timer-core", "timer-metrics"), 1);
        assert_eq!(needs("timer-metrics", "timer-executor"), 1);
        assert_eq!(needs("examples", "timer-bench"), 1);
        assert_eq!(needs("timer-bench", "xtask"), 1);
        assert_eq!(needs("xtask", "timer-core"), 1);
        assert_eq!(needs("timer-new", "timer-core"), 1);
    }

    #[test]
    fn the_core_needs_no_pool_and_no_exporter() {
        let core = |rest: &str| faults(crates, "timer-core", rest);
        let bad = core("[dependencies]\nrayon = { workspace = true }\nprometheus-client.workspace = true\n");
        assert_eq!(bad.len(), 2);
        assert!(bad[0].starts_with("a/Cargo.toml:4: the core depends on rayon"));
        let pool = "timer-executor = { workspace = true, features = [\"rayon\"] }\n";
        assert_eq!(core(&format!("[dependencies]\n{pool}")).len(), 1);
        assert_eq!(core(&format!("[dev-dependencies]\n{pool}threadpool = \"1\"\n")).len(), 0);
        assert_eq!(core(&format!("[dev-dependencies]\n{pool}timer-bench = \"1\"\n")).len(), 1);
    }

    #[test]
    fn versions_and_lints_come_from_the_workspace() {
        let good = "[dependencies]\na.workspace = true\nb = { workspace = true }\n[lints]\nworkspace = true\n";
        assert!(faults(workspace, "xtask", good).is_empty());
        let bad = "[dependencies]\na = \"1\"\n[dev-dependencies]\nb = { version = \"2\" }\n";
        assert_eq!(faults(workspace, "xtask", bad).len(), 3);
    }
}
