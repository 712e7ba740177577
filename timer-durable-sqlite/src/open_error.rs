//! The error of a file that cannot be opened.

use rusqlite::ErrorCode;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file that cannot be opened as a store.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is not an SQLite database.
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a database without timeouts, or has another table by a name of the store.
    NotTimeouts {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// This program does not know the version of the schema.
    Version {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: i64,
        /// The version that this program uses.
        expected: i64,
    },
    /// The program was linked with an old version of SQLite.
    OldSqlite {
        /// The version of SQLite.
        found: String,
        /// The oldest version that the store accepts.
        needed: &'static str,
    },
    /// Another process has the file open.
    InUse {
        /// The file.
        path: PathBuf,
        /// The id of the process, where it can be found.
        owner: Option<u32>,
    },
    /// The file has other names, or may have them, because it alone is mounted. Its log and its
    /// lock are beside one name only.
    OtherNames {
        /// The file.
        path: PathBuf,
        /// The names and the remedy.
        names: String,
    },
    /// The file is damaged.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first findings of the check.
        findings: String,
    },
    /// The file or its folder cannot be written or read.
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system or of SQLite.
        why: String,
    },
    /// The file cannot be synced with each commit, for example because the file system does not
    /// support that.
    NotDurable {
        /// The file.
        path: PathBuf,
        /// The setting that did not take effect.
        setting: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotADatabase { path } => write!(f, "{} is not an SQLite database", path.display()),
            Self::NotTimeouts { path, why } => write!(f, "{} is not a file of timeouts: {why}", path.display()),
            Self::Version { path, found, expected } => {
                write!(f, "{} has version {found} of the schema; this program uses {expected}", path.display())
            }
            Self::OldSqlite { found, needed } => {
                write!(f, "the program has SQLite {found}; the store needs {needed} or a later one")
            }
            Self::InUse { path, owner: Some(owner) } => {
                write!(f, "{} is in use by process {owner}; one process at a time may open it", path.display())
            }
            Self::InUse { path, owner: None } => {
                write!(f, "{} is in use by another process; one process at a time may open it", path.display())
            }
            Self::OtherNames { path, names } => {
                write!(f, "{} may be open by another name: {names}", path.display())
            }
            Self::Damaged { path, findings } => {
                write!(f, "{} is damaged: {findings}; restore a backup", path.display())
            }
            Self::Io { path, why } => {
                write!(
                    f,
                    "{} cannot be opened: {why}; the file and its folder must be readable and writable",
                    path.display()
                )
            }
            Self::NotDurable { path, setting } => {
                write!(f, "{} cannot be used durably: {setting} did not take effect", path.display())
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        let kind = match &error {
            OpenError::InUse { .. } => io::ErrorKind::ResourceBusy,
            OpenError::NotADatabase { .. } | OpenError::NotTimeouts { .. } | OpenError::Damaged { .. } => {
                io::ErrorKind::InvalidData
            }
            OpenError::Version { .. }
            | OpenError::NotDurable { .. }
            | OpenError::OldSqlite { .. }
            | OpenError::OtherNames { .. } => io::ErrorKind::Unsupported,
            OpenError::Io { .. } => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Returns the error of a file for an error of SQLite.
pub(super) fn explain(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::InUse { path, owner: None },
        Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged { path, findings: error.to_string() },
        _ => OpenError::Io { path, why: error.to_string() },
    }
}
