//! Faults that other timers have had, each as a test of the whole timer.
//!
//! Those of wheels alone are in `wheel_faults.rs` and beside the wheels; what is promised outright is in `promises`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod clock;
mod counts;
mod early;
mod faults_table;
mod handover;
mod model;
mod never_fired;
mod panics_and_life_cycle;
mod races;
#[cfg(target_os = "linux")]
mod threads;
