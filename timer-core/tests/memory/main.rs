//! How much memory a timer holds on to, counted to the byte by an allocator of the test's own, and
//! what is bounded at any load.
//!
//! What is asserted: the heap follows the timeouts that are pending, whatever came and went before.
//! What a wheel keeps once it is empty is its tables ([`heap::TABLES`]). The counter sees the whole
//! process, so one test runs at a time; promise 16, whose storms have limits of time, is here for
//! that.
//!
//! Everyday sizes depend on the build; `--release` runs them in full. A minute of real time per
//! case is kept for `cargo test --release -p timer-core --test memory -- --ignored --nocapture`.

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
mod storm;
