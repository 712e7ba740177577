//! Small real programs, each one use of the timer.
//!
//! The programs are in `src/bin`, and `README.md` lists them. This library contains the parts that
//! they share (`cli`, `durable`, `ledger`) and the parts of `sessions`, so that each can be tested
//! alone. It is not meant for other crates and may change at any time.

#![forbid(unsafe_code)]

pub mod cli;
#[cfg(feature = "durable")]
pub mod durable;
pub mod ledger;
#[cfg(feature = "sessions")]
pub mod sessions;

/// Compiles and runs the programs in the repository's README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
