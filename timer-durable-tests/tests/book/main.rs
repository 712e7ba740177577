//! The books of the durable crates against their code.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

mod book;
mod events;

use std::path::{Path, PathBuf};

/// The crates with a book.
const CRATES: [&str; 3] = ["timer-durable", "timer-durable-postgres", "timer-durable-sqlite"];

/// Returns the folder of a crate.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(name)
}
