//! Wheels and whole timers compared with models, on random operations and at every boundary.
//!
//! The fuzz targets also run the models `wheel` and `timer`, on the same cases made of bytes.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod delay_queue;
mod fuzz_inputs;
mod timer;
mod wheel;
mod wheel_faults;
mod wheel_keys;
