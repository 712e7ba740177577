//! The errors of stores.

use std::fmt;

/// An error of a store. It tells whether the change is known to be absent.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// Another instance has taken the shards over. Nothing was written. The instance must rejoin.
    Fenced,
    /// The outcome is unknown, because the store failed during the commit. After a rejoin it is decided.
    InDoubt(String),
    /// Nothing was written, and the instance is intact. A full disk and a value over a limit are examples.
    Failed(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fenced => f.write_str("another instance has taken over the shards of this one; nothing was written"),
            Self::InDoubt(why) => write!(f, "it is unknown whether the change was written: {why}"),
            Self::Failed(why) => write!(f, "nothing was written: {why}"),
        }
    }
}

impl std::error::Error for StoreError {}
