//! The hashed wheel against the sorted map of `tests/model/wheel`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| timer_core_fuzz::wheel_hashed(data));
