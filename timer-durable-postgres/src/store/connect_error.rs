//! Servers and databases that cannot be used.

use std::fmt;

/// A server or a database that cannot be used as a store.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL cannot be parsed.
    Url {
        /// The reason.
        why: String,
    },
    /// No server answers.
    Unreachable {
        /// The hosts and ports that were tried.
        server: String,
        /// The reason.
        why: String,
    },
    /// The server refuses the user, the password, the database or a second connection.
    Refused {
        /// The server.
        server: String,
        /// The server's reason.
        why: String,
    },
    /// The server is too old.
    ServerVersion {
        /// The server.
        server: String,
        /// The version of the server.
        found: String,
    },
    /// The server is a replica, or the database is read-only.
    ReadOnly {
        /// The server.
        server: String,
    },
    /// The database has no schema `timer`, and it has tables of other programs or was opened to
    /// read.
    NotInstalled {
        /// The server.
        server: String,
    },
    /// This program does not know the version of the schema.
    SchemaVersion {
        /// The server.
        server: String,
        /// The version of the schema.
        found: i32,
        /// The version that this program uses.
        expected: i32,
    },
    /// The user lacks a right.
    MissingRights {
        /// The server.
        server: String,
        /// The server's reason.
        why: String,
    },
    /// A setting has a value that is not allowed.
    Setting {
        /// The setting.
        name: &'static str,
        /// The value.
        given: String,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A statement has failed.
    Failed {
        /// The server.
        server: String,
        /// The reason.
        why: String,
    },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { why } => {
                write!(f, "the URL of the store cannot be read: {why}; allowed is postgres://USER@HOST:PORT/DATABASE")
            }
            Self::Unreachable { server, why } => write!(f, "{server} cannot be reached: {why}"),
            Self::Refused { server, why } => write!(f, "{server} refuses the connection: {why}"),
            Self::ServerVersion { server, found } => {
                write!(f, "{server} has version {found}; PostgreSQL 14 or newer is needed")
            }
            Self::ReadOnly { server } => write!(f, "{server} is a replica or read-only; name the primary server"),
            Self::NotInstalled { server } => write!(
                f,
                "{server} has no schema of the store; \
                 call PostgresStore::install or execute the script that PostgresStore::schema returns"
            ),
            Self::SchemaVersion { server, found, expected } => {
                write!(f, "{server} has version {found} of the schema; this program uses {expected}")
            }
            Self::MissingRights { server, why } => {
                write!(f, "{server} denies a right to the user: {why}; the book lists the rights that are needed")
            }
            Self::Setting { name, given, allowed } => {
                write!(f, "{name}: {given} was given; allowed is {allowed}")
            }
            Self::Failed { server, why } => write!(f, "{server} cannot be used: {why}"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl From<std::convert::Infallible> for ConnectError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl From<ConnectError> for timer_durable::Error {
    fn from(error: ConnectError) -> Self {
        Self::Open(Box::new(error))
    }
}
