//! The code of the fuzz targets, which runs the models of timer-core's tests on cases made of
//! bytes.
//!
//! The models and the decoding of bytes belong to the tests, where proptest chooses the bytes on a
//! stable toolchain.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

#[path = "../../tests/model/timer/mod.rs"]
mod timer;
#[path = "../../tests/model/wheel/mod.rs"]
mod wheel;

/// Tests the whole timer on virtual time.
pub fn timer_virtual(data: &[u8]) {
    if let Ok(case) = timer::bytes::Case::new(data) {
        case.run();
    }
}

/// Tests the hashed wheel.
pub fn wheel_hashed(data: &[u8]) {
    if let Ok(case) = wheel::bytes::Case::hashed(data) {
        case.run_hashed();
    }
}

/// Tests the hierarchical wheel.
pub fn wheel_hierarchical(data: &[u8]) {
    if let Ok(case) = wheel::bytes::Case::hierarchical(data) {
        case.run_hierarchical();
    }
}
