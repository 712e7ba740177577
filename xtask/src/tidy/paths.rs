//! The paths that a piece of code names, `use` trees written out: `std::{sync::Arc, time}` is two.

/// One path, where its first own word stands.
#[derive(Debug)]
pub(crate) struct Named {
    /// From 1.
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
    /// It stands in a `use` or `extern crate`: even a single word is a module or crate then.
    pub(crate) imported: bool,
}

impl Named {
    pub(crate) fn text(&self) -> String {
        self.segments.join("::")
    }

    /// Does it begin with `prefix`, a path? `core` and `alloc` count as `std`.
    pub(crate) fn begins_with(&self, prefix: &str) -> bool {
        let alike = |word: &str| {
            if matches!(word, "core" | "alloc") { "std".to_owned() } else { word.to_owned() }
        };
        let mut own = self.segments.iter().map(|word| alike(word));
        prefix.split("::").all(|word| own.next() == Some(alike(word)))
    }

    /// Is it a path into the crate or module `name`? A lone word may be a variable, unless it is imported.
    pub(crate) fn enters(&self, name: &str) -> bool {
        self.segments[0] == name && (self.segments.len() > 1 || self.imported)
    }
}

#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    Colons,
    Open,
    Close,
    Star,
    Semicolon,
    Other,
}

/// Every path in `code`, which must be free of comments and literals.
pub(crate) fn paths(code: &str) -> Vec<Named> {
    let mut parser = Parser { tokens: tokens(code), at: 0, imported: false, found: Vec::new() };
    while parser.at < parser.tokens.len() {
        match parser.token() {
            Some(Token::Word(word)) if word == "use" || word == "extern" => {
                parser.imported = word == "use" || parser.word_at(1) == Some("crate");
                parser.at += 1;
            }
            Some(Token::Word(_)) => parser.tree(&[]),
            Some(Token::Semicolon) => {
                parser.imported = false;
                parser.at += 1;
            }
            _ => parser.at += 1,
        }
    }
    parser.found
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    imported: bool,
    found: Vec<Named>,
}

impl Parser {
    fn token(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn word_at(&self, ahead: usize) -> Option<&str> {
        match self.tokens.get(self.at + ahead) {
            Some((_, Token::Word(word))) => Some(word),
            _ => None,
        }
    }

    /// One path that goes on from `prefix`, and all that its braces hold. Starts at a word.
    fn tree(&mut self, prefix: &[String]) {
        let mut segments = prefix.to_vec();
        let line = self.tokens[self.at].0;
        while let Some(word) = self.word_at(0) {
            segments.push(word.to_owned());
            self.at += 1;
            if self.token() != Some(&Token::Colons) {
                break;
            }
            self.at += 1;
            match self.token() {
                Some(Token::Open) => return self.group(&segments),
                Some(Token::Star) => {
                    segments.push("*".to_owned());
                    self.at += 1;
                    break;
                }
                _ => {}
            }
        }
        self.found.push(Named { line, segments, imported: self.imported });
    }

    /// What stands in the braces of a `use`.
    fn group(&mut self, prefix: &[String]) {
        self.at += 1;
        while let Some(token) = self.token() {
            match token {
                Token::Close => {
                    self.at += 1;
                    return;
                }
                // The new name after `as` is no path.
                Token::Word(word) if word == "as" => self.at += 2,
                Token::Word(_) => self.tree(prefix),
                Token::Star => {
                    let segments = [prefix, &["*".to_owned()]].concat();
                    self.found.push(Named { line: self.tokens[self.at].0, segments, imported: true });
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
    }
}

fn tokens(code: &str) -> Vec<(usize, Token)> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        let token = match c {
            '\n' => {
                line += 1;
                continue;
            }
            c if c.is_whitespace() => continue,
            ':' if chars.next_if_eq(&':').is_some() => Token::Colons,
            '{' => Token::Open,
            '}' => Token::Close,
            '*' => Token::Star,
            ';' => Token::Semicolon,
            c if c == '_' || c.is_alphanumeric() => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| *c == '_' || c.is_alphanumeric()) {
                    word.push(c);
                }
                Token::Word(word)
            }
            _ => Token::Other,
        };
        tokens.push((line, token));
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::{Named, paths};

    fn texts(code: &str) -> Vec<String> {
        paths(code).iter().map(Named::text).filter(|text| text.contains("::")).collect()
    }

    #[test]
    fn use_trees_are_written_out() {
        let code = "use std::{sync::{Arc, atomic::*}, time, *};\nuse ::loom::x as y;";
        let all = ["std::sync::Arc", "std::sync::atomic::*", "std::time", "std::*", "loom::x"];
        assert_eq!(texts(code), all);
        assert_eq!(texts("use a::{b as c, d::{self, e}};"), ["a::b", "a::d::self", "a::d::e"]);
    }

    #[test]
    fn paths_in_expressions_and_types_are_found() {
        let code = "let x: Vec<a::B> = c::d::<u8>(e, f::G { h: i::J });";
        assert_eq!(texts(code), ["a::B", "c::d", "f::G", "i::J"]);
    }

    #[test]
    fn a_lone_word_counts_only_where_it_is_imported() {
        let enters = |code: &str| paths(code).iter().any(|path| path.enters("loom"));
        assert!(enters("use loom;") && enters("extern crate loom;") && enters("use {a, loom as b};"));
        assert!(enters("loom::model(f)"));
        assert!(!enters("let loom = 1; use crate::loom;") && !enters("use a; fn loom() {}"));
    }

    #[test]
    fn core_and_alloc_count_as_std() {
        let begins = |code: &str| paths(code)[0].begins_with("std::sync");
        assert!(begins("core::sync::atomic::fence") && begins("alloc::sync::Arc") && begins("std::sync"));
        assert!(!begins("std::synchro::X") && !begins("sync::X"));
    }

    #[test]
    fn lines_are_those_of_each_leaf() {
        let lines: Vec<usize> = paths("use a::{\n    b,\n    c,\n};")[1..].iter().map(|path| path.line).collect();
        assert_eq!(lines, [3]);
    }
}
