//! The files that the rules look at, and what a rule finds.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use super::paths::{Named, paths};
use super::scan::layers;
use super::test_code::{TestCode, is_test_path, module_file};

/// Every text file of the workspace, paths with `/` from its root.
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) executable: bool,
    /// What the scanner found, if it is a Rust file.
    pub(crate) rust: Option<Rust>,
}

pub(crate) struct Rust {
    /// The lines without comments and without the contents of literals.
    pub(crate) code: Vec<String>,
    /// The comments alone, line by line.
    pub(crate) comments: Vec<String>,
    /// Every path that the code names.
    pub(crate) paths: Vec<Named>,
    /// Which lines are built for tests only.
    pub(crate) test: Vec<bool>,
}

impl Rust {
    fn new(text: &str, all_test: bool, test: &TestCode) -> Self {
        let layers = layers(text);
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let mut test = test.lines.clone();
        test.resize(text.lines().count(), false);
        if all_test {
            test.fill(true);
        }
        Self { paths: paths(&layers.code), code: lines(&layers.code), comments: lines(&layers.comments), test }
    }

    /// Is this line (from 1) built for tests only?
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.test.get(line - 1).copied().unwrap_or(false)
    }
}

impl Tree {
    /// What git has or would add; where there is no git, every file outside `target`.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut paths = tracked(root).unwrap_or_default();
        if paths.is_empty() {
            walk(root, root, &mut paths)?;
        }
        paths.sort();
        let mut files = Vec::new();
        for path in paths {
            // Removed from the folder but not yet from git's index.
            let Ok(bytes) = fs::read(root.join(&path)) else {
                continue;
            };
            if let Ok(text) = String::from_utf8(bytes)
                && !text.contains('\0')
            {
                files.push((executable(&root.join(&path)), path, text));
            }
        }
        Ok(Self::new(files))
    }

    fn new(files: Vec<(bool, String, String)>) -> Self {
        let rust = |path: &String| path.ends_with(".rs");
        let found: Vec<Option<TestCode>> =
            files.iter().map(|(_, path, text)| rust(path).then(|| TestCode::of(&layers(text).code))).collect();
        let mut modules = HashSet::new();
        for ((_, path, _), test) in files.iter().zip(&found) {
            for module in test.iter().flat_map(|test| &test.modules) {
                modules.insert(module_file(path, module));
            }
        }
        let in_test_module = |path: &str| {
            let stem = path.trim_end_matches(".rs").trim_end_matches("/mod");
            modules.iter().any(|module| stem == module || stem.starts_with(&format!("{module}/")))
        };
        let files = files.into_iter().zip(found).map(|((executable, path, text), test)| {
            let all_test = is_test_path(&path) || in_test_module(&path);
            let rust = test.map(|test| Rust::new(&text, all_test, &test));
            File { path, text, executable, rust }
        });
        Self { files: files.collect() }
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = (&File, &Rust)> {
        self.files.iter().filter_map(|file| Some((file, file.rust.as_ref()?)))
    }

    /// A tree of samples.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| (true, (*path).to_owned(), (*text).to_owned()));
        Self::new(files.collect())
    }
}

/// One breach of a rule, and the way out.
#[derive(Debug)]
pub(crate) struct Fault {
    path: String,
    line: usize,
    what: String,
    pub(crate) warning: bool,
}

impl Fault {
    /// `what` says what is wrong and what to do instead; lines count from 1.
    pub(crate) fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), warning: false }
    }

    pub(crate) fn warning(self) -> Self {
        Self { warning: true, ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let warning = if self.warning { "warning: " } else { "" };
        write!(f, "{}:{}: {warning}{}", self.path, self.line, self.what)
    }
}

fn tracked(root: &Path) -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let output = git.output().ok().filter(|output| output.status.success())?;
    let list = String::from_utf8(output.stdout).ok()?;
    Some(list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

fn walk(root: &Path, dir: &Path, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name();
        if kind.is_dir() && name != "target" && name != ".git" {
            walk(root, &path, paths)?;
        } else if kind.is_file()
            && let Ok(inside) = path.strip_prefix(root)
        {
            paths.push(inside.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn executable(_: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::{Fault, Tree};

    #[test]
    fn a_file_of_a_test_module_is_test_code() {
        let tree = Tree::of(&[
            ("a/src/lib.rs", "#[cfg(all(test, timer_loom))]\nmod models;\nmod wheel;\n"),
            ("a/src/models.rs", "fn f() {}\n"),
            ("a/src/models/inbox.rs", "fn f() {}\n"),
            ("a/src/wheel/mod.rs", "#[cfg(test)]\nmod reference;\nfn f() {}\n"),
            ("a/src/wheel/reference.rs", "fn f() {}\n"),
            ("a/tests/end.rs", "fn f() {}\n"),
        ]);
        let test = |path: &str| {
            let rust = tree.file(path).and_then(|file| file.rust.as_ref());
            rust.is_some_and(|rust| rust.is_test(rust.code.len()))
        };
        assert!(test("a/src/models.rs") && test("a/src/models/inbox.rs"));
        assert!(test("a/src/wheel/reference.rs") && test("a/tests/end.rs"));
        assert!(!test("a/src/lib.rs") && !test("a/src/wheel/mod.rs"));
    }

    #[test]
    fn a_fault_reads_as_file_line_and_advice() {
        let fault = Fault::new("a/b.rs", 3, "no; do this");
        assert_eq!(fault.to_string(), "a/b.rs:3: no; do this");
        assert_eq!(fault.warning().to_string(), "a/b.rs:3: warning: no; do this");
    }
}
