//! The parts that the programs with durable timeouts share.

use std::path::PathBuf;

use timer_durable::SqliteStore;

use crate::cli::{Args, Refused, Stop};

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
    /// No value, or one of another form.
    pub fn from_args(args: &mut Args) -> Result<Self, Stop> {
        args.value("sqlite:FILE or postgres://URL", Self::parse)
    }

    fn parse(text: &str) -> Option<Self> {
        if text.starts_with("postgres://") {
            return Some(Self::Postgres(text.to_owned()));
        }
        let file = text.strip_prefix("sqlite:").filter(|file| !file.is_empty())?;
        Some(Self::Sqlite(file.into()))
    }

    /// Opens the store, or creates it.
    ///
    /// # Errors
    ///
    /// The file is no store or belongs to another process, or the store is on a server.
    pub fn open(&self) -> Result<SqliteStore, Refused> {
        match self {
            Self::Sqlite(file) => SqliteStore::open(file).map_err(|error| Refused(error.to_string())),
            Self::Postgres(url) => Err(Refused(format!(
                "--store: '{url}' given; allowed: sqlite:FILE, because this version has no PostgreSQL"
            ))),
        }
    }
}

/// Appends the usage text to a refusal.
pub fn with_usage(stop: Stop, usage: &str) -> Stop {
    match stop {
        Stop::Refused(Refused(text)) => Stop::Refused(Refused(format!("{text}\n\n{usage}"))),
        Stop::Help => Stop::Help,
    }
}

#[cfg(test)]
mod tests {
    use super::StoreName;

    #[test]
    fn a_store_is_a_file_or_a_server() {
        assert_eq!(StoreName::parse("sqlite:a b.db"), Some(StoreName::Sqlite("a b.db".into())));
        let url = "postgres://localhost/timers";
        assert_eq!(StoreName::parse(url), Some(StoreName::Postgres(url.to_owned())));
        for text in ["", "sqlite:", "a.db", "mysql://localhost"] {
            assert_eq!(StoreName::parse(text), None, "{text}");
        }
        assert!(StoreName::parse(url).unwrap().open().unwrap_err().to_string().contains("sqlite:FILE"));
    }
}
