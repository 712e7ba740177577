//! Circles among the files of a crate, and among its top-level modules.

mod source;

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use self::source::{Source, joined};
use super::file::{File, TEST_ONLY, code};

/// The files that each file names, with the first line.
type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, usize>>;

/// Returns a fault for each arrow that belongs to a circle of a crate's files or of its top-level
/// modules.
///
/// A file points to the files that define the items it names. A re-export of a child is no arrow,
/// unless the parent uses the item itself. Methods and fields are not seen.
pub(super) fn circles(files: &[File]) -> Vec<String> {
    let roots: BTreeSet<&str> = files.iter().filter_map(|file| root(&file.path)).collect();
    roots.iter().flat_map(|root| circles_of(root, &roots, files)).collect()
}

/// Returns the folder of a crate's root.
fn root(path: &str) -> Option<&str> {
    ["lib.rs", "main.rs"].iter().find_map(|name| path.strip_suffix(name)).filter(|folder| folder.ends_with('/'))
}

fn circles_of(root: &str, roots: &BTreeSet<&str>, files: &[File]) -> Vec<String> {
    let mut source = Source::new();
    for file in files.iter().filter(|file| !TEST_ONLY.iter().any(|prefix| file.path.starts_with(prefix))) {
        let belongs = |root: &&&str| file.path.starts_with(**root);
        if roots.iter().filter(belongs).max_by_key(|root| root.len()) == Some(&root) && code(file).next().is_some() {
            source::read(file, &module(&file.path[root.len()..]), &mut source);
        }
    }
    let arrows = arrows(&source);
    let top = |path: &str| path[root.len()..].split(['/', '.']).next().unwrap_or_default().to_owned();
    let mut modules = BTreeMap::new();
    for (from, to, _) in each(&arrows) {
        modules.entry(top(from)).or_insert_with(BTreeSet::new).insert(top(to));
    }
    let modules = reachable(&modules);
    let files = reachable(&arrows.iter().map(|(from, named)| (*from, named.keys().copied().collect())).collect());
    let is_on_circle = |from: &str, to: &str| {
        let of = top(from);
        let other = top(to);
        reach(&files, to, from) || of != other && reach(&modules, &other, &of)
    };
    let found = each(&arrows).filter(|(from, to, _)| is_on_circle(from, to));
    found.map(|(from, to, line)| format!("{from}:{line}: a circle through {to}; move the shared part")).collect()
}

/// Returns the path of the module in a file, as in `worker::batch`.
fn module(inside: &str) -> String {
    let name = inside.strip_suffix(".rs").unwrap_or(inside);
    let name = name.strip_suffix("/mod").unwrap_or(name);
    if ["lib", "main"].contains(&name) { String::new() } else { name.replace('/', "::") }
}

fn each<'a>(arrows: &'a Arrows<'a>) -> impl Iterator<Item = (&'a str, &'a str, usize)> {
    arrows.iter().flat_map(|(from, named)| named.iter().map(move |(to, line)| (*from, *to, *line)))
}

fn arrows(source: &Source) -> Arrows<'_> {
    let mut arrows = Arrows::new();
    for (path, module) in source {
        let imports = module.imports.iter().filter_map(|import| {
            let (to, is_item) = resolve(source, path, &import.path, 0)?;
            let parent = &module.file_module;
            let is_child = parent.is_empty() || to.starts_with(&format!("{parent}::"));
            let is_used = !import.is_public || !is_child || module.words.contains(&import.name);
            (is_used && (is_item || import.name == "*")).then_some((import.line, to))
        });
        let paths = module.paths.iter().filter_map(|(line, named)| {
            let (to, is_item) = resolve(source, path, named, 0)?;
            is_item.then_some((*line, to))
        });
        for (line, to) in imports.chain(paths) {
            let Some(to) = source.get(&to).map(|module| module.file.as_str()) else { continue };
            arrows.entry(to).or_default();
            let from = arrows.entry(module.file.as_str()).or_default();
            if to != module.file {
                from.entry(to).or_insert(line);
            }
        }
    }
    arrows
}

/// Returns the module that the path `named` leads to from the module `from`, and whether it names
/// an item in there. Returns `None` if the path leaves the crate. An item that is not found belongs
/// to the last module of its path.
fn resolve(source: &Source, from: &str, named: &[String], steps: usize) -> Option<(String, bool)> {
    let parent = |path: &str| path.rsplit_once("::").map_or("", |(parent, _)| parent).to_owned();
    let mut names = named.iter().peekable();
    let mut at = match named.first()?.as_str() {
        "crate" => String::new(),
        "self" => from.to_owned(),
        "super" => parent(from),
        _ => return member(source, from, named, steps),
    };
    names.next();
    while names.next_if(|name| *name == "super").is_some() {
        at = parent(&at);
    }
    let rest: Vec<String> = names.cloned().collect();
    if rest.is_empty() { Some((at, false)) } else { member(source, &at, &rest, steps).or(Some((at, true))) }
}

/// Returns what `named` leads to in the module `at`.
fn member(source: &Source, at: &str, named: &[String], steps: usize) -> Option<(String, bool)> {
    let (name, rest) = named.split_first()?;
    let child = joined(at, name);
    let module = source.get(at).filter(|_| steps < 9)?;
    let through = |path: &[String]| resolve(source, at, &[path, rest].concat(), steps + 1);
    if source.contains_key(&child) {
        let inside = if rest.is_empty() { Some((child.clone(), false)) } else { member(source, &child, rest, steps) };
        return inside.or(Some((child, true)));
    }
    if module.items.contains(name) {
        return Some((at.to_owned(), true));
    }
    if let Some(import) = module.imports.iter().find(|import| import.name == *name && import.path != [name.clone()]) {
        return through(&import.path);
    }
    let globs = module.imports.iter().filter(|import| import.name == "*");
    globs.filter_map(|import| through(&[&import.path[..], &named[..1]].concat())).find(|(at, _)| !at.is_empty())
}

/// Returns the names that each name leads to, directly or through others.
fn reachable<T: Ord + Clone>(arrows: &BTreeMap<T, BTreeSet<T>>) -> BTreeMap<T, BTreeSet<T>> {
    let from = |start: &T| {
        let mut reached = BTreeSet::new();
        let mut left = vec![start];
        while let Some(name) = left.pop() {
            left.extend(arrows.get(name).into_iter().flatten().filter(|name| reached.insert((*name).clone())));
        }
        reached
    };
    arrows.keys().map(|start| (start.clone(), from(start))).collect()
}
fn reach<T: Ord + ?Sized, U: Ord + Borrow<T>>(reachable: &BTreeMap<U, BTreeSet<U>>, from: &T, to: &T) -> bool {
    reachable.get(from).is_some_and(|reached| reached.contains(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the places of the arrows that are on a circle of a crate.
    fn places(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| File { path: format!("a/src/{path}"), text: (*text).to_owned() };
        let faults = circles(&files.iter().chain(&[("lib.rs", "mod r;")]).map(file).collect::<Vec<_>>());
        let place = |fault: String| fault.split(": ").next().map(|place| place["a/src/".len()..].to_owned());
        faults.into_iter().filter_map(place).collect()
    }

    #[test]
    fn files_of_a_module_form_no_circle() {
        let parent = ("r/mod.rs", "mod a;\nmod b;\npub(crate) use a::A;\npub(crate) use b::f;");
        let to_parent = ("r/b.rs", "\nuse super::A;\npub(super) fn f(_: A) {}");
        assert_eq!(places(&[parent, to_parent, ("r/a.rs", "pub(crate) struct A;")]), [""; 0]);
        // The items that the parent re-exports belong to the children.
        let circle = [parent, to_parent, ("r/a.rs", "pub(crate) struct A;\nfn g() { super::f(A) }")];
        assert_eq!(places(&circle), ["r/a.rs:2", "r/b.rs:2"]);
        let by_module = ("r/a.rs", "use crate::r::{self, b};\npub(crate) struct A;\nfn g() { b::f(A); r::f(A) }");
        assert_eq!(places(&[parent, to_parent, by_module]), ["r/a.rs:3", "r/b.rs:2"]);
    }

    #[test]
    fn a_parent_that_uses_its_child_is_on_the_circle() {
        let child = ("r/a.rs", "use super::B;\npub(crate) struct A(B);");
        assert_eq!(places(&[("r.rs", "mod a;\npub(crate) use a::A;\nstruct B;"), child]), [""; 0]);
        assert_eq!(places(&[("r.rs", "mod a;\npub(crate) use a::A;\nstruct B(*A);"), child]), ["r.rs:2", "r/a.rs:1"]);
        assert_eq!(places(&[("r.rs", "mod a;\nstruct B;\nfn f() { a::g() }"), child]), ["r.rs:3", "r/a.rs:1"]);
        assert_eq!(places(&[("r.rs", "mod a;\nuse a::*;\nstruct B;"), child]), ["r.rs:2", "r/a.rs:1"]);
        let inline = ("r.rs", "mod a;\nstruct B;\nmod c {\n    use super::a::A;\n}");
        assert_eq!(places(&[inline, child]), ["r.rs:4", "r/a.rs:1"]);
    }

    #[test]
    fn modules_form_no_circle() {
        let a = ("a.rs", "use crate::{\n    b::B,\n    e,\n};\nstruct A;");
        let b = ("b/c.rs", "use crate::d::D;");
        let parent = ("b.rs", "mod c;\nstruct B;");
        assert_eq!(places(&[a, b, parent, ("d.rs", "use crate::e::E;"), ("e.rs", "")]), [""; 0]);
        let found = places(&[a, b, parent, ("d.rs", "fn f() { crate::a::f() }"), ("e.rs", "use crate::a::A;")]);
        assert_eq!(found, ["a.rs:2", "b/c.rs:1", "d.rs:1"]);
    }

    #[test]
    fn comments_tests_and_other_crates_are_no_arrows() {
        let tests = "use super::std::B;\nmod tests {\n    use crate::a::A;\n}";
        let files = [("a.rs", "use crate::b::B;\nstruct A;"), ("b.rs", "//! crate::a\nstruct B;"), ("b/d.rs", tests)];
        assert_eq!(places(&[files[0], files[1], files[2], ("b/tests/e.rs", "use crate::a::A;")]), [""; 0]);
        let other = ("bin/c/main.rs", "mod a;\nmod b;");
        let circle = [other, ("bin/c/a.rs", "use crate::b::B;"), ("bin/c/b.rs", "use super::a::f;\nstruct B;")];
        assert_eq!(places(&circle), ["bin/c/a.rs:1", "bin/c/b.rs:1"]);
    }
}
