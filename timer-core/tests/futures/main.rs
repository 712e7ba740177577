//! Futures: what they promise ([`timer_core::future`]), on virtual time where that can be, and on real executors.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod bound;
mod end_of_life;
mod executors;
mod global_names;
mod interval;
mod kit;
mod sleep;
mod storm;
mod timeout;
mod wakers;
