//! The words after the command. What stands after `--` belongs to the program that the command starts.

use crate::cargo::{Failure, USAGE};

/// The words not yet taken, and those after `--`.
#[derive(Debug)]
pub(crate) struct Args {
    words: Vec<String>,
    rest: Vec<String>,
}

impl Args {
    pub(crate) fn new(words: impl Iterator<Item = String>) -> Self {
        let mut words: Vec<String> = words.collect();
        let rest = match words.iter().position(|word| word == "--") {
            Some(at) => words.drain(at..).skip(1).collect(),
            None => Vec::new(),
        };
        Self { words, rest }
    }

    /// Takes the flag `name`: was it given?
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() < before
    }

    /// Takes `name VALUE` or `name=VALUE`, the first of them.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let is_it = |word: &String| word.strip_prefix(name).is_some_and(|end| end.is_empty() || end.starts_with('='));
        let Some(at) = self.words.iter().position(is_it) else {
            return Ok(None);
        };
        let word = self.words.remove(at);
        if let Some((_, value)) = word.split_once('=') {
            return Ok(Some(value.to_owned()));
        }
        if at < self.words.len() && !self.words[at].starts_with("--") {
            return Ok(Some(self.words.remove(at)));
        }
        Err(usage(format!("`{name}` needs a value")))
    }

    /// Takes the first word that is no flag. Take the flags and values before it.
    pub(crate) fn positional(&mut self) -> Option<String> {
        let at = self.words.iter().position(|word| !word.starts_with('-'))?;
        Some(self.words.remove(at))
    }

    /// Nothing may be left, neither before nor after `--`.
    pub(crate) fn done(self) -> Result<(), Failure> {
        let rest = self.done_with_rest()?;
        match rest.first() {
            None => Ok(()),
            Some(word) => Err(usage(format!("unexpected `{word}`: nothing is handed on by this command"))),
        }
    }

    /// Nothing may be left before `--`; returns what stands after it.
    pub(crate) fn done_with_rest(self) -> Result<Vec<String>, Failure> {
        match self.words.first() {
            None => Ok(self.rest),
            Some(word) => Err(usage(format!("unexpected `{word}`"))),
        }
    }
}

/// A failure of whoever typed the command line.
pub(crate) fn usage(what: String) -> Failure {
    let what = format!("{what}; see `cargo xtask help`");
    Failure { code: USAGE, what }
}

#[cfg(test)]
mod tests {
    use super::Args;

    fn args(line: &str) -> Args {
        Args::new(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_values_and_words_come_in_any_order() {
        let mut args = args("--preemptions 3 inbox --compile-only -- --nocapture -- x");
        assert!(args.flag("--compile-only"));
        assert_eq!(args.value("--preemptions").unwrap().as_deref(), Some("3"));
        assert_eq!(args.positional().as_deref(), Some("inbox"));
        assert_eq!(args.done_with_rest().unwrap(), ["--nocapture", "--", "x"]);
    }

    #[test]
    fn a_value_may_follow_an_equals_sign() {
        let mut args = args("--step=fmt --step tidy --steps");
        assert_eq!(args.value("--step").unwrap().as_deref(), Some("fmt"));
        assert_eq!(args.value("--step").unwrap().as_deref(), Some("tidy"));
        assert_eq!(args.value("--step").unwrap(), None);
        assert!(args.done().unwrap_err().what.contains("`--steps`"));
    }

    #[test]
    fn a_missing_value_is_an_error_not_the_next_flag() {
        let failure = args("--step --keep-going").value("--step").unwrap_err();
        assert_eq!(failure.code, 2);
        assert!(failure.what.contains("`--step` needs a value"));
    }

    #[test]
    fn what_is_not_taken_is_an_error() {
        assert!(args("--loud").done().is_err());
        assert!(args("-- x").done().is_err());
        assert!(!args("-- --loud").flag("--loud"));
    }
}
