//! The errors of statements, and their meaning for the store.

use std::fmt;
use std::time::Duration;
use timer_durable::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Returns the text of an error with its cause, which the client's errors leave out.
pub(super) fn reason(error: &Error) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// The classes of errors that the state of the server or of the session causes, whatever the rows
/// are. `TM` is the class of the error that `timer.join_as` raises.
const STATES: [&str; 14] = ["0A", "25", "26", "28", "2D", "3D", "40", "42", "53", "55", "57", "58", "F0", "TM"];

/// A call that PostgreSQL refused, or that was given up.
#[derive(Debug)]
pub(super) enum QueryError {
    /// The server or the client reports an error.
    Postgres(Error),
    /// The server has not answered within the limit.
    TimedOut(Duration),
    /// The system refuses the resources for a connection.
    Io(std::io::Error),
    /// A query that returns one row has returned none.
    NoRow,
    /// The server accepts no connection beside the first one.
    SecondConnection(String),
}

impl QueryError {
    /// Returns the code of an error that the server reports.
    pub(super) fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Postgres(error) => error.code(),
            Self::TimedOut(_) | Self::Io(_) | Self::NoRow | Self::SecondConnection(_) => None,
        }
    }

    /// Returns `true` if the session has lost a statement, which happens behind a pooler.
    pub(super) fn has_lost_session(&self) -> bool {
        let lost = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT];
        self.code().is_some_and(|code| lost.contains(code))
    }

    /// Returns `true` if the transaction would succeed if it were executed again.
    pub(super) fn is_transient(&self) -> bool {
        let transient =
            [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE, SqlState::UNIQUE_VIOLATION];
        self.code().is_some_and(|code| transient.contains(code))
    }

    /// Returns `true` if another transaction holds a lock that the statement needs.
    pub(super) fn is_locked(&self) -> bool {
        self.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// Returns `true` if the server may accept the transaction without some of its rows. The reason
    /// may be a constraint, an error with any code that a trigger raises, or a damaged value.
    pub(super) fn is_refusal(&self) -> bool {
        self.is_undone() && self.code().is_some_and(|code| !STATES.contains(&&code.code()[..2]))
    }

    /// Returns `true` if the server has undone the transaction and the connection can be used
    /// again.
    fn is_undone(&self) -> bool {
        // A connection that ends (57P, 08) may have ended after the commit. A server that became
        // read-only (25006) has been replaced by another one. Without a transaction (25P01) the
        // user's work has committed or rolled back by itself.
        self.code().is_some_and(|code| {
            !self.has_lost_session()
                && !code.code().starts_with("57P")
                && !code.code().starts_with("08")
                && ![SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::NO_ACTIVE_SQL_TRANSACTION].contains(code)
        })
    }
}

impl From<QueryError> for StoreError {
    fn from(error: QueryError) -> Self {
        if error.is_refusal() {
            Self::Refused(error.to_string())
        } else if error.is_undone() {
            Self::Failed(error.to_string())
        } else {
            Self::InDoubt(error.to_string())
        }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(error) => match error.as_db_error() {
                Some(report) => write!(f, "{} ({})", report.message(), report.code().code()),
                None => f.write_str(&reason(error)),
            },
            Self::TimedOut(limit) => write!(f, "the server has not answered for {limit:?}"),
            Self::Io(error) => write!(f, "the connection cannot be made: {error}"),
            Self::NoRow => f.write_str("the server has sent no row"),
            Self::SecondConnection(why) => {
                write!(f, "a second connection was refused; the store needs two: {why}")
            }
        }
    }
}

impl std::error::Error for QueryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Postgres(error) => Some(error),
            Self::Io(error) => Some(error),
            Self::TimedOut(_) | Self::NoRow | Self::SecondConnection(_) => None,
        }
    }
}

impl From<Error> for QueryError {
    fn from(error: Error) -> Self {
        Self::Postgres(error)
    }
}
