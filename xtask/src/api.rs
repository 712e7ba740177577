//! `cargo xtask api`, which keeps the public API of each library as text under `docs/api`, so that
//! a change of it is seen in review.

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
    let text = cmd!(sh, "cargo +nightly public-api -p {library} --features {own} -sss");
    let mut text = text.ignore_stderr().read()?;
    text.push('\n');
    Ok(text)
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
}
