//! The folder of a store.

use std::path::{Path, PathBuf};

/// A folder of this process, because others may run the same tests from the same `target`. It is
/// removed at the end of a test that has passed.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates the empty folder of the test `name`.
    pub(crate) fn new(name: &str) -> Self {
        let folder = format!("ledger-{}-{name}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the folder of the tests");
        Self(path)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.0.join("timeouts.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
