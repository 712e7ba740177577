//! Builds the library that simulates power cuts, kills at chosen calls, and steps of the clock.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Returns the path of the library, or `None` if there is no C compiler or no preloading here.
///
/// # Panics
///
/// If `CI` is set and the library cannot be built, because a test that is skipped proves nothing.
pub(crate) fn library() -> Option<PathBuf> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let library = LIBRARY.get_or_init(build);
    if library.is_none() {
        assert!(std::env::var_os("CI").is_none(), "the shim needs Linux and a C compiler called cc");
        println!("skipped: the shim needs Linux and a C compiler called cc");
    }
    library.clone()
}

fn build() -> Option<PathBuf> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    // Renamed when it is complete, because another process may build it or load it.
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join("shim.so");
    let part = folder.join(format!("shim-{}.so", std::process::id()));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ledger/shim.c");
    let arguments = ["-shared", "-fPIC", "-O1", "-o"];
    let built = Command::new("cc").args(arguments).arg(&part).arg(source).arg("-ldl").status();
    let is_built = built.is_ok_and(|status| status.success()) && std::fs::rename(part, &library).is_ok();
    is_built.then_some(library)
}
