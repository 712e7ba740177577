//! Rules on files as text: how long they are, what they must not say, and which must be there.

use super::tree::{Fault, File, Tree};

/// More lines than this are a fault; more than `AIM` a warning.
const MOST: usize = 400;
const AIM: usize = 300;

const PRESENT: &[&str] = &["README.md", "ARCHITECTURE.md", "CHANGELOG.md", CI];
const CI: &str = ".ci/run";

/// Each in two pieces, so that this file does not say it.
const MARKS: &[&str] = &[
    concat!("to", "do!"),
    concat!("unimpl", "emented!"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
];

/// Top folders in which one machine's files lie.
const FOLDERS: &[&str] = &["home", "root", "tmp", "work", "mnt", "Users"];

/// What a mirror's settings look like.
const MIRRORS: &[&str] = &[concat!("sparse+", "http"), concat!("replace-", "with"), concat!("arti", "factory")];

/// Short enough to be read at once.
pub(crate) fn length(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, _) in tree.rust() {
        let lines = file.text.lines().count();
        let fault = || {
            let what =
                format!("{lines} lines, {AIM} is the aim and {MOST} the most; give the next concept its own file");
            Fault::new(&file.path, lines, what)
        };
        if lines > MOST {
            faults.push(fault());
        } else if lines > AIM {
            faults.push(fault().warning());
        }
    }
    faults
}

/// Nothing that says "to be finished".
pub(crate) fn marks(tree: &Tree) -> Vec<Fault> {
    let found = |line: &str| MARKS.iter().find(|mark| has_word(line, mark)).map(|mark| (*mark).to_owned());
    lines(tree, found, "is a mark of unfinished work; finish it, or write an issue")
}

/// Nothing that holds on one machine or in one network only.
pub(crate) fn machine(tree: &Tree) -> Vec<Fault> {
    let found = |line: &str| {
        let folders = FOLDERS.iter().map(|folder| format!("/{folder}/"));
        let mirror = MIRRORS.iter().find(|mirror| line.contains(**mirror)).map(|mirror| (*mirror).to_owned());
        folders.into_iter().find(|folder| has_path(line, folder)).or(mirror)
    };
    lines(tree, found, "belongs to one machine; use a path from the root, or leave it to the environment")
}

/// The documents, and the script by which a server calls the same steps as we do.
pub(crate) fn present(tree: &Tree) -> Vec<Fault> {
    let missing = PRESENT.iter().filter(|path| tree.file(path).is_none());
    let mut faults: Vec<Fault> = missing.map(|path| Fault::new(path, 1, "is missing; write it")).collect();
    if let Some(ci) = tree.file(CI) {
        if !ci.text.contains("cargo xtask ci") {
            faults.push(Fault::new(CI, 1, "does not run `cargo xtask ci`; put the steps there and call it"));
        }
        if !ci.executable {
            faults.push(Fault::new(CI, 1, "cannot be run; make it executable"));
        }
    }
    faults
}

/// One fault for each line in which `find` finds something. Lock files are cargo's own.
fn lines(tree: &Tree, find: impl Fn(&str) -> Option<String>, what: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    let ours = |file: &&File| !file.path.ends_with(".lock");
    for file in tree.files.iter().filter(ours) {
        for (at, line) in file.text.lines().enumerate() {
            if let Some(found) = find(line) {
                faults.push(Fault::new(&file.path, at + 1, format!("`{found}` {what}")));
            }
        }
    }
    faults
}

/// Is `mark` in the line, not as a part of a longer word?
fn has_word(line: &str, mark: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c == '_' || c.is_alphanumeric());
    line.match_indices(mark).any(|(at, _)| {
        let after = &line[at + mark.len()..];
        !is_word(line[..at].chars().next_back()) && (mark.ends_with('!') || !is_word(after.chars().next()))
    })
}

/// Is `folder` in the line as a path from the top, not as a part of a longer one?
fn has_path(line: &str, folder: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || "_-.})]>*".contains(c);
    line.match_indices(folder).any(|(at, _)| !line[..at].chars().next_back().is_some_and(goes_on))
}

#[cfg(test)]
mod tests {
    use super::{CI, FOLDERS, MARKS, MIRRORS, Tree, length, machine, marks, present};

    #[test]
    fn files_are_short() {
        let faults = |lines: usize| length(&Tree::of(&[("a/src/b.rs", &"\n".repeat(lines))]));
        assert!(faults(300).is_empty());
        assert!(faults(301)[0].warning && faults(400)[0].warning);
        assert!(!faults(401)[0].warning);
        assert!(length(&Tree::of(&[("a.csv", &"\n".repeat(500))])).is_empty());
    }

    #[test]
    fn nothing_is_unfinished() {
        for mark in MARKS {
            let count = |text: String| marks(&Tree::of(&[("a/README.md", &text)])).len();
            assert_eq!(count(format!("a\nb {mark}(): c")), 1, "{mark}");
            assert_eq!(count(format!("b{mark} x")), 0, "{mark}");
            assert_eq!(marks(&Tree::of(&[("Cargo.lock", mark)])).len(), 0);
        }
        assert_eq!(marks(&Tree::of(&[("a", "mktemp a.XXXX, todo = \"deny\"")])).len(), 0);
    }

    #[test]
    fn nothing_belongs_to_one_machine() {
        let count = |text: &str| machine(&Tree::of(&[("a.sh", text)])).len();
        for folder in FOLDERS {
            assert_eq!(count(&format!("cd /{folder}/me")), 1);
            assert_eq!(count(&format!("file:///{folder}/me")), 1);
            assert_eq!(count(&format!("$DIR/{folder}/a ../{folder}/a ${{DIR}}/{folder}/a host.org/{folder}/a")), 0);
        }
        for mirror in MIRRORS {
            assert_eq!(count(&format!("x = {mirror} y")), 1);
        }
        assert_eq!(machine(&Tree::of(&[("Cargo.lock", MIRRORS[0])])).len(), 0);
    }

    #[test]
    fn documents_and_the_ci_script_are_there() {
        let tree = |ci: &str| Tree::of(&[("README.md", ""), ("ARCHITECTURE.md", ""), ("CHANGELOG.md", ""), (CI, ci)]);
        assert!(present(&tree("exec cargo xtask ci \"$@\"\n")).is_empty());
        assert_eq!(present(&tree("cargo test\n")).len(), 1);
        assert_eq!(present(&Tree::of(&[(CI, "cargo xtask ci")])).len(), 3);
        let mut not_executable = tree("cargo xtask ci");
        not_executable.files[3].executable = false;
        assert_eq!(present(&not_executable).len(), 1);
    }
}
