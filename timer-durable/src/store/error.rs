//! The failures of a store.

#[cfg(doc)]
use crate::transaction::Outcome;
use std::error::Error;
use std::fmt;

/// A failure of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// Nothing was written.
    Failed(String),
    /// Nothing was written, because a check or a trigger of the user refuses a row. A store returns
    /// [`Outcome::Refused`] for the operation of that row instead, which a
    /// [`Divider`](super::Divider) finds.
    Refused(String),
    /// Another transaction has locked the timeout for longer than a call waits. Nothing was
    /// written. A store returns [`Outcome::Locked`] instead.
    Locked,
    /// Another program has locked the whole store for longer than the store waits. Nothing was
    /// written. The keeper tries again, and a call fails once it has waited for five seconds.
    Busy,
    /// The outcome is unknown, because the connection or a sync failed during the commit.
    InDoubt(String),
    /// Nothing was written, because there is no connection. The keeper joins again.
    Disconnected(String),
    /// Another instance has taken over. Nothing was written.
    Fenced,
    /// The store does not support the operation.
    Unsupported(&'static str),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => write!(f, "the store failed and wrote nothing: {why}"),
            Self::Refused(why) => write!(f, "the store refuses this and wrote nothing: {why}"),
            Self::Locked => f.write_str("another transaction has locked the timeout; the store wrote nothing"),
            Self::Busy => f.write_str("another program has locked the store, which wrote nothing"),
            Self::InDoubt(why) => write!(f, "the store failed during a commit, whose outcome is unknown: {why}"),
            Self::Disconnected(why) => write!(f, "the store cannot be reached, and nothing was written: {why}"),
            Self::Fenced => f.write_str("another instance has taken over the shards of this one"),
            Self::Unsupported(what) => write!(f, "this store does not support {what}"),
        }
    }
}

impl Error for StoreError {}
