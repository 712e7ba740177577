//! Nobody sleeps to be right: tests run on virtual time, and the worker parks.

use super::tree::{Fault, Tree};

/// Programs for people, which may wait on a real clock.
const EXEMPT: &[&str] = &["examples/", "timer-bench/", "xtask/"];

/// No sleeping in the libraries, their tests and their doctests.
pub(crate) fn sleeping(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| !EXEMPT.iter().any(|exempt| file.path.starts_with(exempt))) {
        let calls = rust.paths.iter().filter(|path| path.segments.windows(2).any(|pair| pair == ["thread", "sleep"]));
        let calls = calls.map(|path| path.line);
        let doctests = rust.comments.iter().enumerate().filter(|(_, comment)| {
            let comment = comment.trim();
            (comment.starts_with("///") || comment.starts_with("//!")) && comment.contains("thread::sleep(")
        });
        for line in calls.chain(doctests.map(|(at, _)| at + 1)) {
            faults.push(Fault::new(
                &file.path,
                line,
                "a sleep; use the manual driver's virtual time, a channel or a park",
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::sleeping;
    use crate::tidy::tree::Tree;

    #[test]
    fn libraries_their_tests_and_doctests_do_not_sleep() {
        let count = |path: &str, text: &str| sleeping(&Tree::of(&[(path, text)])).len();
        let text = "/// thread::sleep(SECOND);\nfn f() { std::thread::sleep(SECOND); }\nuse crate::sync::thread::{park, sleep};";
        assert_eq!(count("timer-core/src/worker.rs", text), 3);
        assert_eq!(count("timer-core/tests/end.rs", text), 3);
        assert_eq!(count("examples/src/bin/sessions.rs", text), 0);
        assert_eq!(count("timer-core/src/worker.rs", "/// No `thread::sleep` here.\nthread::park(); a.sleep();"), 0);
    }
}
