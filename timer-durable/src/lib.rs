//! Timeouts in a store, which survive a restart of the process and the loss of a machine.
//!
//! The [book] describes the promises and the protocol. `tests/model` checks the protocol. A [`Store`] keeps the timeouts;
//! [`SqliteStore`] is the default, and [`MemoryStore`] serves tests with virtual time and injected faults.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "sqlite"), allow(rustdoc::broken_intra_doc_links))]

pub mod book;
pub mod conformance;
mod row;
#[cfg(feature = "sqlite")]
mod sqlite;
pub mod store;

pub use row::{Attempt, Content, DeadLetter, Id, Micros, Place, Row};
#[cfg(feature = "sqlite")]
pub use sqlite::{OpenError, SqliteStore};
pub use store::{IfPending, MemoryStore, Store, StoreError, Target};
