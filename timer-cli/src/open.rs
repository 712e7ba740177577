//! Opening a store to read or to change it.

use std::error::Error;
use std::path::Path;

use timer_durable::store::{Reader, Store};
use timer_durable_postgres::{PostgresReader, PostgresStore};
use timer_durable_sqlite::{SqliteReader, SqliteStore};

/// Returns the file of a store, or `None` if it is the URL of a server.
fn file(store: &str) -> Option<&str> {
    let is_url = store.starts_with("postgres://") || store.starts_with("postgresql://");
    let file = store.strip_prefix("sqlite://").or_else(|| store.strip_prefix("sqlite:"));
    (!is_url).then(|| file.unwrap_or(store))
}

fn read_file(file: &str) -> Result<SqliteReader, Box<dyn Error>> {
    // SQLite would report a disk I/O error.
    if Path::new(file).is_dir() {
        return Err(format!("{file} is a folder; allowed: a file").into());
    }
    Ok(SqliteReader::open(file)?)
}

pub(crate) fn to_read(store: &str) -> Result<Box<dyn Reader>, Box<dyn Error>> {
    Ok(match file(store) {
        Some(file) => Box::new(read_file(file)?),
        None => Box::new(PostgresReader::connect(store)?),
    })
}

/// Calls a function with a store that it may change.
pub(crate) fn to_change<R>(
    store: &str,
    change: impl FnOnce(&mut dyn Store) -> Result<R, Box<dyn Error>>,
) -> Result<R, Box<dyn Error>> {
    let mut store: Box<dyn Store> = match file(store) {
        Some(file) => Box::new(open_file(file)?),
        None => {
            // A store installs the schema when it connects.
            PostgresReader::connect(store)?;
            Box::new(PostgresStore::new(store)?)
        }
    };
    // Only a member of the store may write.
    store.rejoin()?;
    let result = change(&mut *store);
    store.leave()?;
    result
}

/// Adds the missing parts to the schema of a store.
pub(crate) fn upgrade(store: &str) -> Result<(), Box<dyn Error>> {
    match file(store) {
        Some(file) => open_file(file)?.upgrade()?,
        None => PostgresStore::upgrade(store).wait()?,
    }
    Ok(())
}

fn open_file(file: &str) -> Result<SqliteStore, Box<dyn Error>> {
    // `SqliteStore::open` would make a new file.
    read_file(file)?;
    Ok(SqliteStore::open(file)?)
}
