//! The stores that `--store` names.

use std::fs;
use std::path::{Path, PathBuf};
use timer_durable::{PostgresStore, SqliteStore, Store};

/// The value of `--store`.
#[derive(Debug, Clone)]
pub(crate) enum StoreName {
    /// A file.
    Sqlite(PathBuf),
    /// The URL of a database, or `None` for a server that the program starts.
    Postgres(Option<String>),
}

impl StoreName {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text == "postgres" {
            return Ok(Self::Postgres(None));
        }
        if text.starts_with("postgres://") {
            return Ok(Self::Postgres(Some(text.to_owned())));
        }
        let file = text.strip_prefix("sqlite:").filter(|file| !file.is_empty());
        let file = file.ok_or_else(|| format!("`{text}` is neither sqlite:FILE nor postgres[://URL]"))?;
        Ok(Self::Sqlite(file.into()))
    }

    /// Opens the store, or creates it.
    pub(crate) fn open(&self) -> Result<Box<dyn Store>, String> {
        match self {
            Self::Sqlite(file) => Ok(Box::new(SqliteStore::open(file).map_err(|error| error.to_string())?)),
            Self::Postgres(None) => Err("which database?".to_owned()),
            Self::Postgres(Some(url)) => Ok(Box::new(PostgresStore::connect(url).map_err(|error| error.to_string())?)),
        }
    }

    /// Returns the file, which also determines the disk of the floor and of the peers. For a server
    /// it is a file in the folder of temporary files, where a server of this program is, too.
    pub(crate) fn file(&self) -> PathBuf {
        match self {
            Self::Sqlite(file) => file.clone(),
            Self::Postgres(_) => std::env::temp_dir().join("timer-bench-durable.db"),
        }
    }

    /// Removes everything that is in a file. A server is given a new database instead.
    pub(crate) fn remove(&self) {
        if let Self::Sqlite(file) = self {
            remove(file);
        }
    }
}

/// Removes an SQLite file with its companions.
pub(crate) fn remove(file: &Path) {
    for companion in ["", "-wal", "-shm"] {
        let mut path = file.as_os_str().to_owned();
        path.push(companion);
        // There is none before the first case.
        let _removed = fs::remove_file(path);
    }
}
