//! `cargo xtask api`, which keeps the public API of each library as text under `docs/api`, so that
//! a change of it is seen in review.

use std::collections::HashSet;
use std::fs;

use xshell::{Shell, cmd};

use crate::crates::{LIBRARIES, features, metadata};
use crate::flags;
use crate::run::{Failure, Result, need, root, target_dir};

/// The folder of the kept texts.
const FOLDER: &str = "docs/api";

/// Compares the public API with the kept text, or replaces the text with `--bless`.
pub(crate) fn command(sh: &Shell, flags: &flags::Api) -> Result {
    need("cargo +nightly --version", "nightly toolchain (rustup toolchain install nightly --profile minimal)")?;
    need("cargo public-api --version", "cargo-public-api (cargo install cargo-public-api --locked)")?;
    let mut changed = Vec::new();
    for library in LIBRARIES {
        let path = root().join(FOLDER).join(format!("{library}.txt"));
        let now = public_api(sh, library)?;
        if flags.bless {
            sh.write_file(&path, now)?;
            continue;
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        changed.extend(differences(&kept, &now).map(|line| format!("{library}: {line}")));
    }
    if changed.is_empty() {
        return Ok(());
    }
    let changed = changed.join("\n");
    Err(Failure::new(format!(
        "the public API differs from {FOLDER}; run `cargo xtask api --bless` and review the change\n{changed}"
    )))
}

/// Lists the public items of a library with the everyday features, a line each.
fn public_api(sh: &Shell, library: &str) -> Result<String> {
    // A separate folder, because another compiler would rebuild everything in the usual one.
    let _folder = sh.push_env("CARGO_TARGET_DIR", target_dir().join("api"));
    let all = features(&metadata(sh)?);
    let own: Vec<&str> = all.split(',').filter_map(|feature| feature.strip_prefix(&format!("{library}/"))).collect();
    let own = own.join(",");
    // Omits derived, blanket and auto-trait implementations.
    let text = cmd!(sh, "cargo +nightly public-api -p {library} --features {own} -sss").ignore_stderr().read()?;
    Ok(without_repeats(&text))
}

/// Leaves out the functions of an implementation, which are those of its trait, and lines that
/// stood before. An implementation is listed with its trait and with its type.
fn without_repeats(text: &str) -> String {
    let mut kept = String::new();
    let mut seen = HashSet::new();
    let mut function_of_trait = None;
    for line in text.lines() {
        if line.starts_with("impl") {
            let implemented = line.split(" where ").next().and_then(|line| line.split_once(" for "));
            function_of_trait = implemented.map(|(_, of)| format!("pub fn {of}::"));
        }
        if function_of_trait.as_ref().is_none_or(|function| !line.starts_with(function)) && seen.insert(line) {
            kept.extend([line, "\n"]);
        }
    }
    kept
}

/// Returns the lines that only one of two texts has, marked with `-` or `+`.
fn differences<'a>(kept: &'a str, now: &'a str) -> impl Iterator<Item = String> {
    let only_in = |mark, one: &'a str, other: &'a str| {
        one.lines().filter(move |line| !other.lines().any(|it| it == *line)).map(move |line| format!("{mark} {line}"))
    };
    only_in('-', kept, now).chain(only_in('+', now, kept))
}

#[cfg(test)]
mod tests {
    #[test]
    fn differences_are_the_lines_of_one_side() {
        let found: Vec<_> = super::differences("a\nb\nc", "a\nc\nd").collect();
        assert_eq!(found, ["- b", "+ d"]);
    }

    #[test]
    fn an_implementation_stands_once_without_the_functions_of_its_trait() {
        let of_trait = "pub trait a::T\npub fn a::T::f()\n";
        let of_type = "impl a::T for a::S<P> where P: a::T\npub type a::S<P>::Output = ()\n";
        let text = format!("{of_trait}{of_type}pub fn a::S<P>::f()\npub struct a::S<P>\n{of_type}pub fn a::free()\n");
        assert_eq!(super::without_repeats(&text), format!("{of_trait}{of_type}pub struct a::S<P>\npub fn a::free()\n"));
    }
}
