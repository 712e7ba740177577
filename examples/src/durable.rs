//! The parts that the programs with durable timeouts share.

use std::path::PathBuf;
use std::time::Duration;

use timer_durable::store::Store;
use timer_durable_postgres::PostgresStore;
use timer_durable_sqlite::{SqliteHandle, SqliteStore};

use crate::cli::{Args, Refused, Stop};

/// The allowed values of `--store`.
const ALLOWED: &str = "sqlite:FILE, postgres://URL";

/// The value of `--store`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreName {
    /// A file.
    Sqlite(PathBuf),
    /// The URL of a server.
    Postgres(String),
}

impl StoreName {
    /// Reads the value of the option that was just read.
    ///
    /// # Errors
    ///
    /// Fails if there is no value, or if it has another form.
    pub fn from_args(args: &mut Args) -> Result<Self, Stop> {
        args.value(ALLOWED, Self::parse)
    }

    /// Reads a value. Returns `None` if it has another form.
    pub fn parse(text: &str) -> Option<Self> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Some(Self::Postgres(text.to_owned()));
        }
        let file = text.strip_prefix("sqlite:").filter(|file| !file.is_empty())?;
        Some(Self::Sqlite(file.into()))
    }

    /// Opens the store, or creates it. A store that nodes share gets the name and the lease of this
    /// node. A file has a handle for transactions in it.
    ///
    /// # Errors
    ///
    /// The file is no store or belongs to another process, or the server cannot be used.
    pub fn open(&self, node: Option<&str>, lease: Duration) -> Result<(Box<dyn Store>, Option<SqliteHandle>), Refused> {
        let refused = |error: &dyn std::error::Error| Refused(error.to_string());
        match self {
            Self::Sqlite(file) => {
                let store = SqliteStore::open(file).map_err(|error| refused(&error))?;
                let sqlite = store.handle();
                Ok((Box::new(store), Some(sqlite)))
            }
            Self::Postgres(url) => {
                let mut store = PostgresStore::new(url).map_err(|error| refused(&error))?.lease(lease);
                if let Some(name) = node {
                    store = store.node(name);
                }
                Ok((Box::new(store), None))
            }
        }
    }
}

/// The lease unless `--ttl` gives another one.
pub const LEASE: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::{LEASE, StoreName};

    #[test]
    fn a_store_is_a_file_or_a_server() {
        assert_eq!(StoreName::parse("sqlite:a b.db"), Some(StoreName::Sqlite("a b.db".into())));
        let url = "postgres://localhost/timers";
        assert_eq!(StoreName::parse(url), Some(StoreName::Postgres(url.to_owned())));
        for text in ["", "sqlite:", "a.db", "mysql://localhost"] {
            assert_eq!(StoreName::parse(text), None, "{text}");
        }
        let refused = StoreName::parse("postgres://u@h:notaport/d").unwrap().open(None, LEASE);
        assert!(refused.err().unwrap().to_string().contains("postgres://USER@HOST:PORT/DATABASE"));
    }
}
