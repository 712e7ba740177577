//! Writes of other programs.
//!
//! Other programs should only read the file, and nothing announces their writes. The store notices
//! them with its next transaction, and lets the keeper load its memory anew.

use rusqlite::{Connection, Result};

/// A look for writes of other connections.
#[derive(Debug, Default)]
pub(super) struct ForeignWrites {
    /// The number that SQLite changes with each commit of another connection.
    version: Option<i64>,
    pub(super) are_found: bool,
}

impl ForeignWrites {
    /// Looks for writes since the last look.
    pub(super) fn look(&mut self, db: &Connection) -> Result<()> {
        let version = db.prepare_cached("pragma data_version")?.query_row([], |row| row.get(0))?;
        let before = self.version.replace(version);
        if before.is_some_and(|before| before != version) {
            self.are_found = true;
            tracing::warn!("another program has written the file; its timeouts are loaded anew");
        }
        Ok(())
    }
}
