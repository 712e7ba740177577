//! The promises of durable timeouts in a real file.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

mod auto_traits;
mod file;
#[cfg(unix)]
mod full_disk;
mod handle;
mod handlers;
mod isolation;
mod ledger;
mod locked;
mod names;
mod one_clock;
#[cfg(unix)]
mod owner;
mod processes;
#[cfg(unix)]
mod queued;
mod reading;
mod schema;
mod tally;
mod timetable;
mod tombstones;
mod transactions;
mod unreadable;
