//! A statement that a batch may not need.

use rusqlite::{CachedStatement, Connection, Result};

/// A frequent statement. A batch looks it up once, when it first needs it. A look-up takes about as
/// long as a search in an index.
pub(super) struct LazyStatement<'c> {
    db: &'c Connection,
    sql: &'static str,
    found: Option<CachedStatement<'c>>,
}

impl<'c> LazyStatement<'c> {
    pub(super) fn new(db: &'c Connection, sql: &'static str) -> Self {
        Self { db, sql, found: None }
    }

    pub(super) fn get(&mut self) -> Result<&mut CachedStatement<'c>> {
        let found = match self.found.take() {
            Some(found) => found,
            None => self.db.prepare_cached(self.sql)?,
        };
        Ok(self.found.insert(found))
    }
}
