//! Reads as much of a `Cargo.toml` as the rules need: tables, keys, and values as text.

/// One `key = value`.
#[derive(Debug)]
struct Entry {
    table: String,
    key: String,
    value: String,
    line: usize,
}

/// A manifest, entry by entry.
#[derive(Debug)]
pub(crate) struct Manifest {
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Normal,
    Dev,
    Build,
}

/// One dependency, for whatever target.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// What it says, blanks taken out: `{workspace=true,optional=true}`.
    pub(crate) spec: String,
    pub(crate) line: usize,
}

impl Manifest {
    pub(crate) fn parse(text: &str) -> Self {
        let mut manifest = Self { entries: Vec::new() };
        let mut table = String::new();
        let mut open = 0;
        for (at, line) in text.lines().enumerate() {
            let line = without_comment(line).trim();
            if open > 0 {
                // An array that goes on.
                if let Some(entry) = manifest.entries.last_mut() {
                    entry.value += line;
                }
                open += balance(line);
            } else if let Some(name) = line.strip_prefix('[') {
                table = name.trim_start_matches('[').trim_end_matches(']').trim().to_owned();
            } else if let Some((key, value)) = split_outside_quotes(line, '=') {
                let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
                open = balance(&value);
                manifest.entries.push(Entry { table: table.clone(), key, value, line: at + 1 });
            }
        }
        manifest
    }

    /// The value of `key` in `table`, quotes taken off.
    pub(crate) fn get(&self, table: &str, key: &str) -> Option<&str> {
        let entry = self.entries.iter().find(|entry| entry.table == table && entry.key == key)?;
        Some(entry.value.trim_matches('"'))
    }

    /// The strings of an array.
    pub(crate) fn strings(&self, table: &str, key: &str) -> Vec<&str> {
        let array = self.get(table, key).unwrap_or_default();
        array.split('"').skip(1).step_by(2).collect()
    }

    pub(crate) fn dependencies(&self) -> Vec<Dependency> {
        let mut found: Vec<Dependency> = Vec::new();
        for entry in &self.entries {
            let parts = parts(&entry.table);
            let Some(at) = parts.iter().position(|part| kind(part).is_some()) else {
                continue;
            };
            let Some(kind) = kind(parts[at]) else {
                continue;
            };
            // What cargo calls `workspace.dependencies` is no dependency yet.
            if parts[0] == "workspace" {
                continue;
            }
            let (name, spec) = match (parts.get(at + 1), entry.key.split_once('.')) {
                (Some(name), _) => (*name, format!("{}={}", entry.key, entry.value)),
                (None, Some((name, rest))) => (name, format!("{rest}={}", entry.value)),
                (None, None) => (entry.key.as_str(), entry.value.clone()),
            };
            let spec: String = spec.chars().filter(|c| !c.is_whitespace()).collect();
            let name = name.trim_matches(|c| c == '"' || c == '\'').to_owned();
            match found.iter_mut().find(|old| parts.len() > at + 1 && old.kind == kind && old.name == name) {
                Some(old) => old.spec += &format!(",{spec}"),
                None => found.push(Dependency { kind, name, spec, line: entry.line }),
            }
        }
        for dependency in &mut found {
            if let Some((_, renamed)) = dependency.spec.split_once("package=\"") {
                dependency.name = renamed.split('"').next().unwrap_or_default().to_owned();
            }
        }
        found
    }
}

fn kind(table: &str) -> Option<Kind> {
    match table {
        "dependencies" => Some(Kind::Normal),
        "dev-dependencies" => Some(Kind::Dev),
        "build-dependencies" => Some(Kind::Build),
        _ => None,
    }
}

/// `a.'b.c'.d` is three parts.
fn parts(table: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = table;
    while let Some((part, more)) = split_outside_quotes(rest, '.') {
        parts.push(part.trim());
        rest = more;
    }
    parts.push(rest.trim());
    parts
}

fn without_comment(line: &str) -> &str {
    split_outside_quotes(line, '#').map_or(line, |(before, _)| before)
}

fn split_outside_quotes(text: &str, separator: char) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == separator => return Some((&text[..at], &text[at + c.len_utf8()..])),
            None if c == '"' || c == '\'' => quote = Some(c),
            None => {}
        }
    }
    None
}

fn balance(text: &str) -> i32 {
    let opens = text.chars().filter(|c| "[{".contains(*c)).count();
    let closes = text.chars().filter(|c| "]}".contains(*c)).count();
    opens as i32 - closes as i32
}

#[cfg(test)]
mod tests {
    use super::{Kind, Manifest};

    const SAMPLE: &str = r#"
[package] # the name
name = "a"

[workspace]
members = [
    "a", # first
    "b",
]

[workspace.dependencies]
no = "1"

[dependencies]
b = { workspace = true, features = ["x"] }
c.workspace = true
"d" = "1"

[dev-dependencies]
e = { package = "f", version = "1" }

[target.'cfg(any(unix, x = "1.2"))'.dependencies]
g = { workspace = true }

[build-dependencies.h]
version = "1"
workspace = true

[features]
dependencies = []
"#;

    #[test]
    fn every_form_of_a_dependency_is_read() {
        let dependencies = Manifest::parse(SAMPLE).dependencies();
        let found: Vec<_> = dependencies.iter().map(|d| (d.kind, d.name.as_str(), d.spec.as_str())).collect();
        let expected = [
            (Kind::Normal, "b", r#"{workspace=true,features=["x"]}"#),
            (Kind::Normal, "c", "workspace=true"),
            (Kind::Normal, "d", r#""1""#),
            (Kind::Dev, "f", r#"{package="f",version="1"}"#),
            (Kind::Normal, "g", "{workspace=true}"),
            (Kind::Build, "h", r#"version="1",workspace=true"#),
        ];
        assert_eq!(found, expected);
        assert_eq!(dependencies[0].line, 15);
    }

    #[test]
    fn values_and_arrays_are_read() {
        let manifest = Manifest::parse(SAMPLE);
        assert_eq!(manifest.get("package", "name"), Some("a"));
        assert_eq!(manifest.strings("workspace", "members"), ["a", "b"]);
        assert_eq!(manifest.get("package", "edition"), None);
    }
}
