//! The heap that a timer uses, counted to the byte by an allocator of the tests, and bounds at any
//! load.
//!
//! The heap must follow the pending timeouts, whatever traffic came before. An empty wheel may keep
//! its tables ([`heap::TABLES`]). The counter sees the whole process, so one test runs at a time.
//! Promise 16 is here for the same reason, because its tests have time limits.
//!
//! Sizes depend on the build, and `--release` uses the full ones.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod churn;
mod delay_queue;
mod futures;
mod heap;
mod kept;
mod leaks;
mod million;
mod p16_bounded;
mod spares;
