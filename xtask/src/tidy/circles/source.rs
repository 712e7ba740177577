//! The modules of one crate as text shows them: their items, their imports and the paths they name.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::file::{File, code};

/// The modules of one crate. The key is a path such as `worker::batch`, and `""` for the root.
pub(super) type Source = BTreeMap<String, Module>;

/// One module. An inline module has its own and belongs to the file around it.
#[derive(Default)]
pub(super) struct Module {
    pub(super) file: String,
    /// The path of the module that the file is.
    pub(super) file_module: String,
    /// The names of the items that it defines.
    pub(super) items: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    /// The paths of two and more names outside of imports, with their lines.
    pub(super) paths: Vec<(usize, Vec<String>)>,
    /// The words outside of imports.
    pub(super) words: BTreeSet<String>,
}

/// One name that a `use` brings into a module.
pub(super) struct Import {
    pub(super) line: usize,
    pub(super) is_public: bool,
    pub(super) path: Vec<String>,
    /// The name in the module, or `*`.
    pub(super) name: String,
}

/// The words that define the name behind them.
const DEFINES: [&str; 9] = ["const", "enum", "fn", "macro_rules", "mod", "static", "struct", "trait", "type"];

/// Adds the module `path` of `file` and the inline modules in it.
pub(super) fn read(file: &File, path: &str, source: &mut Source) {
    let mut tokens = Tokens { all: tokens(file), at: 0 };
    // The inline modules around the token, each with its depth in braces.
    let mut open = vec![(path.to_owned(), 0)];
    let mut depth = 0_usize;
    while let Some(token) = tokens.next() {
        let (name, outside) = open.last().cloned().unwrap_or_default();
        let module = source.entry(name.clone()).or_default();
        module.file.clone_from(&file.path);
        path.clone_into(&mut module.file_module);
        match token.as_str() {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if depth < outside {
                    open.pop();
                }
            }
            // `use<'a>` captures a lifetime.
            "use" if tokens.peek() != "<" => {
                let is_public = ["pub", ")"].contains(&tokens.before(2));
                tokens.tree(Vec::new(), is_public, &mut module.imports);
            }
            _ if DEFINES.contains(&token.as_str()) && depth == outside => {
                let item = tokens.item();
                if token == "mod" && tokens.peek() == "{" {
                    open.push((joined(&name, &item), depth + 1));
                }
                if token != "mod" {
                    module.items.insert(item);
                }
            }
            _ if is_word(&token) => {
                // The name of a method is no use of an item.
                if !["fn", "."].contains(&tokens.before(2)) {
                    module.words.insert(token.clone());
                }
                let line = tokens.line();
                let is_visibility = [tokens.before(3), tokens.before(2)] == ["(", "in"];
                let named = tokens.path(token);
                if named.len() > 1 && !is_visibility {
                    module.paths.push((line, named));
                }
            }
            _ => {}
        }
    }
}

/// Returns the path of `name` in the module `path`.
pub(super) fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}::{name}") }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c == '_' || c.is_alphanumeric())
}

/// Splits the code of a file into words, `::` and other characters, each with its line.
fn tokens(file: &File) -> Vec<(usize, String)> {
    let mut tokens = Vec::new();
    for (line, text) in code(file) {
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let word = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
            let is_char = first == '\'' && rest.chars().nth(2) == Some('\'');
            let length = match word {
                0 if is_char => rest.char_indices().nth(3).map_or(rest.len(), |(at, _)| at),
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                word => word,
            };
            if !first.is_whitespace() && !is_char {
                tokens.push((line, rest[..length].to_owned()));
            }
            rest = &rest[length..];
        }
    }
    tokens
}

struct Tokens {
    all: Vec<(usize, String)>,
    at: usize,
}

impl Tokens {
    fn next(&mut self) -> Option<String> {
        self.at += 1;
        self.all.get(self.at - 1).map(|(_, token)| token.clone())
    }

    fn peek(&self) -> &str {
        self.all.get(self.at).map_or("", |(_, token)| token)
    }

    /// Returns the token that stands `count` before the one to come.
    fn before(&self, count: usize) -> &str {
        self.at.checked_sub(count).map_or("", |at| &self.all[at].1)
    }

    /// Returns the line of the last token.
    fn line(&self) -> usize {
        self.all.get(self.at - 1).map_or(0, |(line, _)| *line)
    }

    /// Takes the name of an item behind `fn`, `const fn`, `macro_rules!` and the like.
    fn item(&mut self) -> String {
        while DEFINES.contains(&self.peek()) || ["!", "unsafe", "extern", "async", "mut"].contains(&self.peek()) {
            self.at += 1;
        }
        self.next().unwrap_or_default()
    }

    /// Takes the rest of the path that begins with `first`.
    fn path(&mut self, first: String) -> Vec<String> {
        let mut path = vec![first];
        while self.peek() == "::" && self.all.get(self.at + 1).is_some_and(|(_, token)| is_word(token)) {
            path.push(self.all[self.at + 1].1.clone());
            self.at += 2;
        }
        path
    }

    /// Takes the rest of an import, whose path begins with `path`.
    fn tree(&mut self, mut path: Vec<String>, is_public: bool, imports: &mut Vec<Import>) {
        let mut name = String::new();
        while let Some(token) = self.next() {
            match token.as_str() {
                "{" => {
                    while !["}", ""].contains(&self.peek()) {
                        self.tree(path.clone(), is_public, imports);
                    }
                    self.at += 1;
                    return;
                }
                "::" => {}
                "as" => name = self.next().unwrap_or_default(),
                "self" if !path.is_empty() => name = path.last().cloned().unwrap_or_default(),
                "," | ";" => break,
                "}" => {
                    self.at -= 1;
                    break;
                }
                "*" => name = token,
                _ => {
                    name.clone_from(&token);
                    path.push(token);
                }
            }
        }
        if !path.is_empty() {
            let line = self.line();
            imports.push(Import { line, is_public, path, name });
        }
    }
}
