//! Durable timeouts in a PostgreSQL database, which many machines share.
//!
//! `PostgresStore` is a store for a [`DurableTimer`](timer_durable::DurableTimer). The [`prelude`] has
//! the calls that schedule and end timeouts in the user's own transaction of a driver. The [book]
//! tells how to share the store and operate it. The book of `timer-durable` has the promises.
//!
//! | feature | adds |
//! |---|---|
//! | `store` (default) | `PostgresStore`, `PostgresReader`, `PostgresOptions` |
//! | `tls` | encrypted connections, for URLs with `sslmode=verify-full` |
//! | `tokio-postgres`, `sqlx`, `diesel`, `diesel-async`, `sea-orm` | timeouts in the user's own transaction, see `PostgresTransaction` |
//! | `sqlx-0-8`, `sea-orm-1` | the same for sqlx 0.8 and sea-orm 1.1 |
//!
//! A program that only schedules takes a driver without the store, by `default-features = false`.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_docs)]

pub mod book;
#[cfg(feature = "__drivers")]
mod drivers;
#[cfg(feature = "store")]
mod store;

#[cfg(feature = "__drivers")]
pub use drivers::{DueExt, InSchema, PostgresTransaction, TopicExt};
#[cfg(feature = "store")]
pub use store::{ConnectError, PostgresOptions, PostgresReader, PostgresStore};
/// The crate of the settings of `PostgresOptions`.
#[cfg(feature = "tokio-postgres")]
#[doc(no_inline)]
pub use tokio_postgres;

/// The extension traits, which add calls in the user's own transaction to topics and handlers.
#[cfg(feature = "__drivers")]
pub mod prelude {
    pub use crate::{DueExt, TopicExt};
}

/// Compiles and runs the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
