//! Where `unsafe` may stand: in one file of timer-core, each with its reason.

use super::tree::{Fault, File, Rust, Tree};

/// The only file that may hold unsafe code, if it exists.
const HELD: &str = "timer-core/src/sync/held.rs";

/// The only crate root that may say `deny` where the others say `forbid`: it has that file below it.
const ROOT_OF_HELD: &str = "timer-core/src/lib.rs";

/// No unsafe code but there, and every crate root says so to the compiler.
pub(crate) fn unsafe_code(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, rust) in tree.rust() {
        let words = rust.paths.iter().filter(|path| path.segments[0] == "unsafe");
        for line in words.map(|path| path.line) {
            if file.path != HELD {
                faults.push(Fault::new(
                    &file.path,
                    line,
                    "unsafe code; find the safe way, or argue for it in ".to_owned() + HELD,
                ));
            } else if !is_argued(rust, line) {
                faults.push(Fault::new(HELD, line, "unsafe without a reason; write `SAFETY:` right above it"));
            }
        }
        if is_crate_root(file) && !forbids(file, rust) {
            faults.push(Fault::new(&file.path, 1, "the crate root allows unsafe code; add `#![forbid(unsafe_code)]`"));
        }
    }
    faults
}

fn is_crate_root(file: &File) -> bool {
    let Some((_, inside)) = file.path.split_once("/src/") else {
        return false;
    };
    match inside.strip_prefix("bin/") {
        None => inside == "lib.rs" || inside == "main.rs",
        Some(program) => !program.contains('/') || program.ends_with("/main.rs"),
    }
}

fn forbids(file: &File, rust: &Rust) -> bool {
    let says = |lint: &str| rust.code.iter().any(|line| line.trim() == lint);
    says("#![forbid(unsafe_code)]") || file.path == ROOT_OF_HELD && says("#![deny(unsafe_code)]")
}

/// Is there a `SAFETY:` on the line, or in the comment above the statement that it is part of?
fn is_argued(rust: &Rust, line: usize) -> bool {
    let says = |at: usize| rust.comments[at].contains("SAFETY:") || rust.comments[at].contains("# Safety");
    let mut at = line - 1;
    if says(at) {
        return true;
    }
    while at > 0 {
        at -= 1;
        let code = rust.code[at].trim();
        let comment = !rust.comments[at].trim().is_empty();
        if says(at) && code.is_empty() {
            return true;
        }
        let ends = code.ends_with([';', '{', '}', ',']) && !code.starts_with("#[");
        if ends || code.is_empty() && !comment {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{HELD, ROOT_OF_HELD, unsafe_code};
    use crate::tidy::tree::Tree;

    fn count(file: &str, text: &str) -> usize {
        unsafe_code(&Tree::of(&[(file, text)])).len()
    }

    #[test]
    fn unsafe_stands_in_one_file_only() {
        let text = "// SAFETY: it is held.\nunsafe impl Sync for A {}";
        assert_eq!(count("a/src/b.rs", text), 1);
        assert_eq!(count("a/tests/b.rs", "fn f() { unsafe { g() } }"), 1);
        assert_eq!(count("a/src/b.rs", "// unsafe\nlet unsafe_code = \"unsafe\";"), 0);
        assert_eq!(count(HELD, text), 0);
    }

    #[test]
    fn every_unsafe_has_its_reason_right_above() {
        assert_eq!(count(HELD, "unsafe impl Sync for A {}"), 1);
        assert_eq!(count(HELD, "// SAFETY: held.\n#[inline]\nunsafe impl Sync for A {}"), 0);
        assert_eq!(count(HELD, "// SAFETY: held,\n// and not moved.\nlet a =\n    unsafe { b() };"), 0);
        assert_eq!(count(HELD, "// SAFETY: held.\nlet a = unsafe { b() };\nlet c = unsafe { d() };"), 1);
        assert_eq!(count(HELD, "// SAFETY: held.\n\nlet a = unsafe { b() };"), 1);
    }

    #[test]
    fn every_crate_root_forbids_it() {
        assert_eq!(count("a/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]\n"), 0);
        assert_eq!(count("a/src/lib.rs", "//! #![forbid(unsafe_code)]\n"), 1);
        assert_eq!(count("a/src/lib.rs", "#![deny(unsafe_code)]\n"), 1);
        assert_eq!(count(ROOT_OF_HELD, "#![deny(unsafe_code)]\n"), 0);
        assert_eq!(count("a/src/main.rs", "fn main() {}"), 1);
        assert_eq!(count("a/src/bin/b.rs", "fn main() {}"), 1);
        assert_eq!(count("a/src/bin/b/main.rs", "fn main() {}"), 1);
        assert_eq!(count("a/src/bin/b/c.rs", "fn f() {}"), 0);
    }
}
