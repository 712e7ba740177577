//! `cargo xtask docs`: the documentation, with and without private items, warnings denied.

use crate::args::Args;
use crate::cargo::{Cargo, Failure};

pub(crate) fn command(mut args: Args) -> Result<(), Failure> {
    let open = args.flag("--open");
    args.done()?;
    run(open)
}

/// The private pages are built first, for their links only; the public ones are then written over them and stay.
pub(crate) fn run(open: bool) -> Result<(), Failure> {
    let doc = || Cargo::new("doc --workspace --all-features --no-deps").rustdocflags("-D warnings");
    doc().arg("--document-private-items").run()?;
    if open { doc().arg("--open").run() } else { doc().run() }
}
