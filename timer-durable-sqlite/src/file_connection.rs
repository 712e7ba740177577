//! A connection that knows its file.

use super::owner::KnownFile;
use rusqlite::Connection;
use std::ops::{Deref, DerefMut};

/// The connection of a store, with the file that it has opened.
#[derive(Debug)]
pub(super) struct FileConnection {
    pub(super) connection: Connection,
    pub(super) file: KnownFile,
}

impl Deref for FileConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for FileConnection {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}
