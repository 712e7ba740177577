//! The hashed wheel against the sorted map of `tests/wheel_model`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| timer_core_fuzz::wheel_hashed(data));
