//! Tests of durable timeouts that are generic over the store, and what the tests of several crates
//! share.
//!
//! A crate with a store calls the functions here in tests of its own, each with the store that the
//! function asks for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::new_without_default, missing_docs, reason = "tests")]

pub mod explained;
pub mod folder;
pub mod never_early;
pub mod one_clock;
#[cfg(unix)]
pub mod postgres_server;
pub mod queued;
pub mod timetable;

/// Returns the topic of most tests, whose payload has the type that the handler takes.
pub const fn t<P>() -> timer_durable::Topic<P> {
    timer_durable::Topic::new("t")
}
