//! What every executor promises, and what the pools promise beyond that. Nothing here sleeps: tasks
//! block on channels, and a wait that takes a minute means that the promise is broken.
#![allow(clippy::unwrap_used)] // clippy.toml allows it in tests, but does not see that helpers of tests are such

mod batch;
#[cfg(feature = "threadpool")]
mod bound;
mod exactly_once;
#[cfg(feature = "threadpool")]
mod idle;
mod panics;
mod pools;
#[cfg_attr(not(any(feature = "rayon", feature = "threadpool")), allow(dead_code))]
mod support;
mod task;
