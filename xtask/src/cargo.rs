//! Running cargo: the line is printed first, and a failure keeps the child's exit code.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The exit code of a command line that is wrong.
pub(crate) const USAGE: u8 = 2;

/// Why a command failed, and what to exit with.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) what: String,
}

impl Failure {
    /// A failure found here, not in a child.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { code: 1, what: what.into() }
    }
}

/// The workspace: where this was built, or the current directory if that is gone (a copied binary).
pub(crate) fn root() -> PathBuf {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    match built_in.filter(|root| root.join("Cargo.toml").is_file()) {
        Some(root) => root.to_owned(),
        None => PathBuf::from("."),
    }
}

/// Where cargo builds.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// One cargo command line, to be run from the root.
#[derive(Debug)]
pub(crate) struct Cargo {
    args: Vec<OsString>,
    env: Vec<(&'static str, String)>,
}

impl Cargo {
    /// `line` is split at blanks.
    pub(crate) fn new(line: &str) -> Self {
        let args = line.split_whitespace().map(OsString::from).collect();
        Self { args, env: Vec::new() }
    }

    pub(crate) fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Hands `rest` to the program that cargo starts.
    pub(crate) fn rest(mut self, rest: &[String]) -> Self {
        if !rest.is_empty() {
            self.args.push("--".into());
            self.args.extend(rest.iter().map(OsString::from));
        }
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// Adds `flags` to those that the environment has for rustc.
    pub(crate) fn rustflags(self, flags: &str) -> Self {
        self.append("CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", flags)
    }

    /// Adds `flags` to those that the environment has for rustdoc.
    pub(crate) fn rustdocflags(self, flags: &str) -> Self {
        self.append("CARGO_ENCODED_RUSTDOCFLAGS", "RUSTDOCFLAGS", flags)
    }

    /// The encoded variable wins over the plain one in cargo, so it is the one to extend when it is set.
    fn append(self, encoded: &'static str, plain: &'static str, flags: &str) -> Self {
        match std::env::var(encoded) {
            Ok(old) => self.env(encoded, join(&old, '\u{1f}', flags)),
            Err(_) => self.env(plain, join(&std::env::var(plain).unwrap_or_default(), ' ', flags)),
        }
    }

    /// Runs it; what it prints goes where ours goes.
    pub(crate) fn run(self) -> Result<(), Failure> {
        eprintln!("$ {}", self.line());
        let status = self.command().status();
        self.check(status)
    }

    /// Runs it, shows its standard output line by line, and returns it.
    pub(crate) fn output(self) -> Result<String, Failure> {
        eprintln!("$ {}", self.line());
        let mut output = String::new();
        let status = self.command().stdout(Stdio::piped()).spawn().and_then(|mut child| {
            if let Some(pipe) = child.stdout.take() {
                for line in BufReader::new(pipe).lines() {
                    let line = line?;
                    println!("{line}");
                    output += &line;
                    output.push('\n');
                }
            }
            child.wait()
        });
        self.check(status).map(|()| output)
    }

    /// Runs it and gives its standard output to `line`, line by line. Its standard error is shown only if it fails.
    pub(crate) fn quietly(self, mut line: impl FnMut(&str)) -> Result<(), Failure> {
        eprintln!("$ {}", self.line());
        let child = self.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut errors = String::new();
        let status = child.and_then(|mut child| {
            let (out, err) = (child.stdout.take(), child.stderr.take());
            // Both pipes are read at once: a child that fills one would wait for ever.
            std::thread::scope(|scope| {
                let collect = scope.spawn(|| {
                    let mut bytes = Vec::new();
                    err.map(|mut pipe| pipe.read_to_end(&mut bytes)).transpose().map(|_| bytes)
                });
                for text in out.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
                    line(&text?);
                }
                let bytes = collect.join().unwrap_or_else(|_| Ok(Vec::new()))?;
                errors = String::from_utf8_lossy(&bytes).into_owned();
                Ok::<(), std::io::Error>(())
            })?;
            child.wait()
        });
        let checked = self.check(status);
        if checked.is_err() {
            eprint!("{errors}");
        }
        checked
    }

    fn command(&self) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.current_dir(root());
        command
    }

    fn check(&self, status: std::io::Result<ExitStatus>) -> Result<(), Failure> {
        let status = status.map_err(|error| Failure::new(format!("cannot run `{}`: {error}", self.line())))?;
        if status.success() {
            return Ok(());
        }
        // A child that a signal ended has no code.
        let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
        Err(Failure { code, what: format!("`{}` failed ({status})", self.line()) })
    }

    /// The line as one could type it.
    fn line(&self) -> String {
        let mut line = String::new();
        for (name, value) in &self.env {
            line += &format!("{name}={} ", quoted(value));
        }
        line += "cargo";
        for arg in &self.args {
            line.push(' ');
            line += &quoted(&arg.to_string_lossy());
        }
        line
    }
}

fn join(old: &str, separator: char, flags: &str) -> String {
    let old = old.split(separator).filter(|flag| !flag.is_empty());
    let all: Vec<&str> = old.chain(flags.split_whitespace()).collect();
    all.join(&separator.to_string())
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Cargo, join, root};

    #[test]
    fn flags_are_appended_not_replaced() {
        assert_eq!(join("", ' ', "--cfg timer_loom"), "--cfg timer_loom");
        assert_eq!(join("-C target-cpu=native", ' ', "--cfg timer_loom"), "-C target-cpu=native --cfg timer_loom");
        assert_eq!(join("-C\u{1f}x", '\u{1f}', "-D warnings"), "-C\u{1f}x\u{1f}-D\u{1f}warnings");
    }

    #[test]
    fn the_printed_line_can_be_typed() {
        let cargo = Cargo::new("test --lib").env("RUSTFLAGS", "--cfg x").rest(&["it's".to_owned()]);
        assert_eq!(cargo.line(), "RUSTFLAGS='--cfg x' cargo test --lib -- 'it'\\''s'");
    }

    #[test]
    fn the_exit_code_is_the_childs() {
        let failure = Cargo::new("no-such-command-of-cargo").run().unwrap_err();
        assert_eq!(failure.code, 101);
        assert!(failure.what.contains("no-such-command-of-cargo"));
    }

    #[test]
    fn the_root_is_the_workspace() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }
}
