//! The promises of every executor and of the pools. No test sleeps. Tasks block on channels, and a
//! wait of a minute means that a promise is broken.
// clippy.toml allows it in tests, but clippy does not count the helpers of tests as such.
#![allow(clippy::unwrap_used)]

mod batch;
#[cfg(feature = "threadpool")]
mod bound;
mod exactly_once;
#[cfg(feature = "threadpool")]
mod idle;
mod panics;
mod pools;
#[cfg(feature = "threadpool")]
mod refused;
#[cfg_attr(not(any(feature = "rayon", feature = "threadpool")), allow(dead_code))]
mod support;
mod task;
