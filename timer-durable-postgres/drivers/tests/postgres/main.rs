//! Timeouts in the user's own transaction with each driver of PostgreSQL.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure of a test")]

mod drivers;
#[path = "../../../tests/support/in_transaction.rs"]
mod in_transaction;
