//! Wheels and whole timers against models, on random operations and at every boundary.
//!
//! `wheel` and `timer` are models that the fuzz targets run as well; `fuzz_inputs` does on a stable
//! toolchain what they do.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod delay_queue;
mod fuzz_inputs;
mod next_expiry;
mod ten_years;
mod timer;
mod wheel;
mod wheel_faults;
mod wheel_keys;
