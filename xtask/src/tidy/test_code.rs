//! Which lines are built for tests only: items under `#[test]` or `#[cfg(test)]`, and the files of such modules.

/// What one file says about tests.
#[derive(Debug, Default)]
pub(crate) struct TestCode {
    /// For each line, whether it belongs to a test item.
    pub(crate) lines: Vec<bool>,
    /// Test modules that are files of their own.
    pub(crate) modules: Vec<String>,
}

/// Words that begin an item: a comma inside one does not end it.
const ITEMS: [&str; 11] = ["fn", "mod", "impl", "use", "struct", "enum", "trait", "const", "static", "type", "let"];

impl TestCode {
    /// `code` must be free of comments and literals.
    pub(crate) fn of(code: &str) -> Self {
        let chars: Vec<char> = code.chars().collect();
        let mut found = Self { lines: vec![false; code.lines().count()], modules: Vec::new() };
        let mut at = 0;
        while at < chars.len() {
            let Some(attribute) = Attribute::at(&chars, at) else {
                at += 1;
                continue;
            };
            at = attribute.end;
            if !attribute.is_test() {
                continue;
            }
            if attribute.inner {
                found.lines.fill(true);
                return found;
            }
            let (end, module) = item(&chars, attribute.end);
            found.modules.extend(module);
            let line = |at: usize| chars[..at.min(chars.len())].iter().filter(|c| **c == '\n').count();
            let last = line(end).min(found.lines.len().saturating_sub(1));
            found.lines[line(attribute.start)..=last].fill(true);
            at = end;
        }
        found
    }
}

/// Is the whole file test code by its place?
pub(crate) fn is_test_path(path: &str) -> bool {
    let (dirs, name) = path.rsplit_once('/').unwrap_or(("", path));
    dirs.split('/').any(|dir| dir == "tests" || dir == "benches") || name == "tests.rs" || name.ends_with("_tests.rs")
}

/// Where `mod name;` in the file `path` is found, without `.rs` or `/mod.rs`.
pub(crate) fn module_file(path: &str, name: &str) -> String {
    let (dir, file) = path.rsplit_once('/').unwrap_or(("", path));
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{dir}/{name}"),
        _ => format!("{}/{name}", path.trim_end_matches(".rs")),
    }
}

struct Attribute {
    start: usize,
    end: usize,
    /// `#![..]`: of the file.
    inner: bool,
    text: String,
}

impl Attribute {
    fn at(chars: &[char], start: usize) -> Option<Self> {
        if chars.get(start) != Some(&'#') {
            return None;
        }
        let inner = chars.get(start + 1) == Some(&'!');
        let open = start + 1 + usize::from(inner);
        if chars.get(open) != Some(&'[') {
            return None;
        }
        let end = close(chars, open);
        let inside = &chars[open + 1..end.saturating_sub(1).max(open + 1)];
        let text = inside.iter().filter(|c| !c.is_whitespace()).collect();
        Some(Self { start, end, inner, text })
    }

    fn is_test(&self) -> bool {
        let condition = self.text.strip_prefix("cfg(").and_then(|text| text.strip_suffix(')'));
        self.text == "test" || condition.is_some_and(needs_test)
    }
}

/// Does the cfg condition hold in tests only? `any(..)` and `not(..)` never count.
fn needs_test(condition: &str) -> bool {
    let Some(all) = condition.strip_prefix("all(").and_then(|text| text.strip_suffix(')')) else {
        return condition == "test";
    };
    let mut depth = 0;
    let mut split = all.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    split.any(needs_test)
}

/// The end of the item that begins at `at`, and its name if it is `mod name;`.
fn item(chars: &[char], mut at: usize) -> (usize, Option<String>) {
    let mut words: Vec<String> = vec![String::new()];
    while let Some(c) = chars.get(at) {
        let has = |word: &str| words.iter().any(|known| known == word);
        match c {
            '#' if chars.get(at + 1) == Some(&'[') => at = close(chars, at + 1),
            '(' | '[' => at = close(chars, at),
            '{' => {
                at = close(chars, at);
                if !has("use") && !has("let") {
                    return (at, None);
                }
            }
            ';' => {
                let name = words.iter().rev().find(|word| !word.is_empty());
                return (at + 1, name.filter(|_| has("mod")).cloned());
            }
            ',' if !ITEMS.iter().any(|item| has(item)) => return (at + 1, None),
            // The end of what the item stands in.
            '}' | ')' | ']' => return (at, None),
            c if *c == '_' || c.is_alphanumeric() => {
                if let Some(word) = words.last_mut() {
                    word.push(*c);
                }
                at += 1;
            }
            _ => {
                words.push(String::new());
                at += 1;
            }
        }
    }
    (at, None)
}

/// Behind the bracket that closes the one at `open`.
fn close(chars: &[char], open: usize) -> usize {
    let mut depth = 0;
    for (at, c) in chars.iter().enumerate().skip(open) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    chars.len()
}

#[cfg(test)]
mod tests {
    use super::{TestCode, is_test_path, module_file};

    /// The lines (from 1) that are test code.
    fn lines(code: &str) -> Vec<usize> {
        let lines = TestCode::of(code).lines;
        lines.iter().enumerate().filter(|(_, test)| **test).map(|(at, _)| at + 1).collect()
    }

    #[test]
    fn a_test_item_ends_with_its_brace() {
        assert_eq!(
            lines("fn a() {}\n#[cfg(test)]\n#[rustfmt::skip]\nmod tests {\n  {}\n}\nfn b() {}"),
            [2, 3, 4, 5, 6]
        );
        assert_eq!(lines("#[test]\nfn a<T, U>() {\n}\nfn b() {}"), [1, 2, 3]);
        assert_eq!(lines("#[cfg(test)]\nuse a::{b,\n c};\nfn b() {}"), [1, 2, 3]);
    }

    #[test]
    fn a_test_field_ends_with_its_comma() {
        assert_eq!(lines("struct A {\n#[cfg(test)]\na: u8,\nb: u8,\n}"), [2, 3]);
        assert_eq!(lines("struct A {\n#[cfg(test)]\na: u8\n}\nfn b() {}"), [2, 3, 4]);
    }

    #[test]
    fn only_a_condition_that_needs_test_counts() {
        assert!(!lines("#[cfg(all(timer_loom, test))] fn a() {}").is_empty());
        assert!(lines("#[cfg(any(test, timer_loom))] fn a() {}").is_empty());
        assert!(lines("#[cfg(not(test))] fn a() {}").is_empty());
        assert!(lines("#[cfg(all(a, not(test)))] fn a() {}").is_empty());
        assert_eq!(lines("#![cfg(test)]\nfn a() {}"), [1, 2]);
    }

    #[test]
    fn test_modules_in_files_are_named() {
        let found = TestCode::of("#[cfg(test)]\nmod models;\n#[cfg(test)] pub(crate) mod more;\nmod wheel;");
        assert_eq!(found.modules, ["models", "more"]);
        assert_eq!(module_file("a/src/lib.rs", "models"), "a/src/models");
        assert_eq!(module_file("a/src/wheel.rs", "models"), "a/src/wheel/models");
    }

    #[test]
    fn test_folders_and_names_are_known() {
        assert!(is_test_path("a/tests/b.rs") && is_test_path("a/src/tests.rs") && is_test_path("a/src/b_tests.rs"));
        assert!(!is_test_path("a/src/test_code.rs") && !is_test_path("a/src/contests.rs"));
    }
}
