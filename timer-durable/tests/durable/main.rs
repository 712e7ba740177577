//! The promises of durable timeouts on one machine, on virtual time and with a real file.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

mod engine;
#[cfg(feature = "sqlite")]
mod file;
#[cfg(feature = "sqlite")]
mod folder;
#[cfg(feature = "sqlite")]
mod processes;
#[cfg(feature = "sqlite")]
mod schema;
