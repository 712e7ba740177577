//! Every atomic operation says why its ordering is enough.

use super::tree::{Fault, Rust, Tree};

const METHODS: &[&str] = &["load", "store", "swap"];
const FAMILIES: &[&str] = &["fetch_", "compare_exchange"];
const FENCES: &[&str] = &["fence", "compiler_fence"];
const ORDERINGS: &[&str] = &["Acquire", "Release", "AcqRel", "Relaxed", "SeqCst"];

/// How far above the operation the reason may end, and how far if no blank line lies between.
const NEAR: usize = 4;
const FAR: usize = 8;

/// An `ORDERING:` comment at each operation outside tests; one may serve several in a row.
pub(crate) fn orderings(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, rust) in tree.rust() {
        for call in calls(&rust.code) {
            if !rust.is_test(call.first + 1) && !is_argued(rust, &call) {
                let what =
                    format!("`{}` without a reason; say in an `ORDERING:` comment what it pairs with", call.name);
                faults.push(Fault::new(&file.path, call.first + 1, what));
            }
        }
    }
    faults
}

/// One atomic operation; lines from 0.
struct Call {
    name: String,
    first: usize,
    last: usize,
}

fn calls(code: &[String]) -> Vec<Call> {
    let text: Vec<char> = code.join("\n").chars().collect();
    let mut calls = Vec::new();
    let mut line = 0;
    for (at, c) in text.iter().enumerate() {
        line += usize::from(*c == '\n');
        if *c != '(' {
            continue;
        }
        let start = text[..at].iter().rposition(|c| !is_word(*c)).map_or(0, |before| before + 1);
        let name: String = text[start..at].iter().collect();
        let is_method = start > 0 && text[start - 1] == '.';
        let known = METHODS.contains(&name.as_str()) || FAMILIES.iter().any(|family| name.starts_with(family));
        if !(is_method && known || !is_method && FENCES.contains(&name.as_str())) {
            continue;
        }
        let arguments = arguments(&text[at..]);
        if arguments.split(|c| !is_word(c)).any(|word| ORDERINGS.contains(&word)) {
            let last = line + arguments.matches('\n').count();
            calls.push(Call { name, first: line, last });
        }
    }
    calls
}

/// From the parenthesis that opens to the one that closes it.
fn arguments(text: &[char]) -> String {
    let mut depth = 0;
    let inside = text.iter().take_while(|c| {
        depth += i32::from(**c == '(') - i32::from(**c == ')');
        depth > 0
    });
    inside.collect()
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn is_argued(rust: &Rust, call: &Call) -> bool {
    let says = |line: usize| rust.comments[line].contains("ORDERING:");
    if (call.first..=call.last).any(says) {
        return true;
    }
    let (mut blank, mut above_fn) = (false, false);
    for distance in 1..=FAR.min(call.first) {
        let line = call.first - distance;
        let code = rust.code[line].trim();
        let comment = !rust.comments[line].trim().is_empty();
        blank |= code.is_empty() && !comment;
        if blank && distance > NEAR {
            return false;
        }
        // Above the signature only what is attached to it counts: the reasons of the function before are not ours.
        if above_fn && !(code.is_empty() && comment || code.starts_with("#[")) {
            return false;
        }
        if comment && (says(line) || block_says(rust, line)) {
            return true;
        }
        above_fn |= code.split(|c| !is_word(c)).any(|word| word == "fn");
    }
    false
}

/// Does the comment block that ends at `line` give the reason?
fn block_says(rust: &Rust, line: usize) -> bool {
    let alone = |line: &usize| rust.code[*line].trim().is_empty() && !rust.comments[*line].trim().is_empty();
    (0..=line).rev().take_while(alone).any(|line| rust.comments[line].contains("ORDERING:"))
}

#[cfg(test)]
mod tests {
    use super::orderings;
    use crate::tidy::tree::Tree;

    fn lines(text: &str) -> Vec<String> {
        let faults = orderings(&Tree::of(&[("a/src/b.rs", text)]));
        faults.iter().filter_map(|fault| Some(fault.to_string().split(':').nth(1)?.to_owned())).collect()
    }

    #[test]
    fn every_kind_of_operation_needs_a_reason() {
        let bad = [
            "a.load(Ordering::Acquire);",
            "a.store(b.len(), Release);",
            "a.swap(1, Ordering::AcqRel);",
            "a.fetch_add(1, Relaxed);",
            "fence(SeqCst);",
            "a\n    .compare_exchange_weak(\n        1,\n        2,\n        AcqRel,\n        Acquire,\n    );",
        ];
        for text in bad {
            assert_eq!(lines(text).len(), 1, "{text}");
            assert!(lines(&format!("// ORDERING: pairs with the push.\n{text}")).is_empty(), "{text}");
        }
    }

    #[test]
    fn what_is_no_atomic_operation_needs_none() {
        assert!(lines("a.load(path); a.swap(0, 1); a.cmp(b) == Ordering::Less; store(1, Release);").is_empty());
        assert!(lines("// a.load(Relaxed)\nlet a = \"a.load(Relaxed)\";").is_empty());
        assert!(lines("#[cfg(test)]\nmod tests {\n    fn f() { a.load(Relaxed); }\n}").is_empty());
    }

    #[test]
    fn the_reason_may_be_on_the_line_or_inside_the_call() {
        assert!(lines("a.load(Relaxed); // ORDERING: a mere count.").is_empty());
        assert!(lines("a.store(\n    1, // ORDERING: a mere count.\n    Relaxed,\n);").is_empty());
    }

    #[test]
    fn one_reason_serves_operations_in_a_row() {
        let row = "a.load(Relaxed);\n".repeat(9);
        assert_eq!(lines(&format!("// ORDERING: counts.\n{row}")), ["10"]);
        let far = format!("// ORDERING: counts.\n{}a.load(Relaxed);", "b();\n".repeat(7));
        assert!(lines(&far).is_empty());
    }

    #[test]
    fn a_blank_line_shortens_the_reach() {
        assert!(lines("// ORDERING: counts.\n\nb();\nb();\na.load(Relaxed);").is_empty());
        assert_eq!(lines("// ORDERING: counts.\n\nb();\nb();\nb();\na.load(Relaxed);"), ["6"]);
    }

    #[test]
    fn a_long_reason_is_measured_from_its_end() {
        let long = format!("// ORDERING: counts.\n{}a.load(Relaxed);", "// and more\n".repeat(12));
        assert!(lines(&long).is_empty());
    }

    #[test]
    fn the_reason_of_the_function_before_does_not_count() {
        let before = "fn f() {\n    // ORDERING: counts.\n    a.load(Relaxed);\n}\nfn g() {\n    a.load(Relaxed);\n}";
        assert_eq!(lines(before), ["6"]);
        assert!(lines("/// ORDERING: counts.\n#[inline]\nfn g() {\n    a.load(Relaxed);\n}").is_empty());
    }
}
