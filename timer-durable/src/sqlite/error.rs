//! The errors of opening a file.

use std::path::PathBuf;
use std::{error, fmt};

/// A reason why [`SqliteStore::open`](crate::SqliteStore::open) has refused a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another connection has the file open. A store owns its file.
    Locked {
        /// The file.
        path: PathBuf,
        /// The process that holds the lock, where the system tells it.
        process: Option<u32>,
    },
    /// The file is not an SQLite database.
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The database belongs to another program, because its `application_id` is not that of this crate.
    OtherOwner {
        /// The file.
        path: PathBuf,
        /// The `application_id` of the file.
        found: i32,
    },
    /// The schema has another version.
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The `user_version` of the file.
        found: i32,
        /// The version that this program reads and writes.
        supported: i32,
    },
    /// The file or its directory cannot be written. SQLite creates two more files beside the database.
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The content is damaged.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The complaint of SQLite.
        why: String,
    },
    /// The database does not sync each commit, or it has no write-ahead log, though it was told to.
    NotDurable {
        /// The file.
        path: PathBuf,
        /// The options that are in force.
        found: String,
    },
    /// Another error of SQLite.
    Sqlite(rusqlite::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { path, process } => {
                write!(f, "{} is locked by ", path.display())?;
                match process {
                    Some(id) if *id == std::process::id() => write!(f, "this process, which has opened it before")?,
                    Some(id) => write!(f, "process {id}")?,
                    None => write!(f, "another process")?,
                }
                write!(f, "; one open store owns a file")
            }
            Self::NotADatabase { path } => {
                write!(f, "{} is not an SQLite database; give an empty file or one of timer-durable", path.display())
            }
            Self::OtherOwner { path, found } => write!(
                f,
                "{} is a database of another program (application_id {found:#x}); timer-durable writes only into its own \
                 files (application_id {:#x}) and into empty ones",
                path.display(),
                super::schema::APPLICATION_ID
            ),
            Self::OtherVersion { path, found, supported } => {
                write!(f, "{} has version {found} of the schema; this program supports {supported}", path.display())
            }
            Self::ReadOnly { path } => {
                write!(f, "{} cannot be written; the file and its directory must be writable", path.display())
            }
            Self::Damaged { path, why } => write!(f, "{} is damaged: {why}", path.display()),
            Self::NotDurable { path, found } => {
                write!(f, "{} is open with {found}; journal_mode=wal and synchronous=2 are needed", path.display())
            }
            Self::Sqlite(error) => write!(f, "SQLite: {error}"),
        }
    }
}

impl error::Error for OpenError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Sqlite(error) => Some(error),
            _ => None,
        }
    }
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}
