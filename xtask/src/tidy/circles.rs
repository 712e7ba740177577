//! Circles of imports among the modules of a crate.

use super::{File, TEST_ONLY, code, words};
use std::collections::{BTreeMap, BTreeSet};

const CRATES: [&str; 5] =
    ["timer-core/src/", "timer-durable/src/", "timer-metrics/src/", "timer-live/src/", "timer-adapters/src/"];

/// The modules that each module names, with the first place.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

/// Returns a fault for each import that belongs to a circle of a crate's top-level modules. The
/// files of one module may name each other.
pub(super) fn circles(files: &[File]) -> Vec<String> {
    CRATES.iter().flat_map(|source| circles_of(source, files)).collect()
}

fn circles_of(source: &str, files: &[File]) -> Vec<String> {
    let imports = imports(source, files);
    let on_circle = |from: &str, to: &str| reachable(&imports, to).contains(from);
    let all = imports.iter().flat_map(|(from, named)| named.iter().map(move |(to, place)| (from, to, place)));
    let found = all.filter(|(from, to, _)| on_circle(from, to));
    found
        .map(|(from, to, place)| format!("{place}: `{from}` and `{to}` need each other; move the shared part"))
        .collect()
}

fn imports(source: &str, files: &[File]) -> Imports {
    let mut imports = Imports::new();
    for file in files.iter().filter(|file| !TEST_ONLY.iter().any(|prefix| file.path.starts_with(prefix))) {
        let Some(inside) = file.path.strip_prefix(source).filter(|inside| *inside != "lib.rs") else { continue };
        let module = inside.split(['/', '.']).next().unwrap_or_default();
        for (line, text) in code(file) {
            for name in text.split("crate::").skip(1).flat_map(named).filter(|name| *name != module) {
                let place = || format!("{}:{line}", file.path);
                imports.entry(module.to_owned()).or_default().entry(name.to_owned()).or_insert_with(place);
            }
        }
    }
    imports
}

/// Returns the modules that the path after a `crate::` names, which may begin with a group.
fn named(rest: &str) -> impl Iterator<Item = &str> {
    let parts = if rest.starts_with('{') { usize::MAX } else { 1 };
    rest.trim_start_matches('{').split([',', '{']).take(parts).filter_map(|part| words(part.trim_start()).next())
}

/// Returns the modules that `from` names, directly or through others.
fn reachable<'a>(imports: &'a Imports, from: &'a str) -> BTreeSet<&'a str> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(module) = left.pop() {
        let named = imports.get(module).into_iter().flat_map(BTreeMap::keys);
        left.extend(named.map(String::as_str).filter(|name| reached.insert(*name)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let file =
            |(path, text): &(&str, &str)| File { path: format!("{}{path}", CRATES[0]), text: (*text).to_owned() };
        circles(&files.iter().map(file).collect::<Vec<_>>())
    }

    #[test]
    fn modules_form_no_circle() {
        let (a, b) = (("a.rs", "use crate::b::B;"), ("b/c.rs", "\nuse crate::d::D;"));
        assert!(faults(&[a, b, ("d.rs", "use crate::e::E;")]).is_empty());
        let found = faults(&[a, b, ("d.rs", "fn f() { crate::a::f() }"), ("e.rs", "use crate::a::A;")]);
        let places: Vec<_> = found.iter().filter_map(|fault| fault.split(": ").next()).collect();
        assert_eq!(places, ["a.rs:1", "b/c.rs:2", "d.rs:1"].map(|place| format!("{}{place}", CRATES[0])));
    }

    #[test]
    fn a_group_names_each_of_its_modules() {
        assert_eq!(named("{b::{B, f}, c::C};").collect::<Vec<_>>(), ["b", "B", "f", "c"]);
        assert_eq!(named("b::{c, d};").collect::<Vec<_>>(), ["b"]);
        let group = ("a.rs", "use crate::{b::B, c::C};");
        assert_eq!(faults(&[group, ("b.rs", ""), ("c.rs", "use crate::a::A;")]).len(), 2);
    }

    #[test]
    fn comments_tests_and_the_own_module_are_no_imports() {
        let tests = "mod tests {\n    use crate::a::A;\n}";
        let files =
            [("a/b.rs", "use crate::b::B;\nuse crate::a::c::C;"), ("b.rs", "//! crate::a\n"), ("b/d.rs", tests)];
        assert!(faults(&[files[0], files[1], files[2], ("b/tests/e.rs", "use crate::a::A;")]).is_empty());
    }
}
