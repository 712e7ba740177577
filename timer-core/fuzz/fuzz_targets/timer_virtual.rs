//! The whole timer on virtual time, on both wheels, against the model of `tests/timer_model`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| timer_core_fuzz::timer_virtual(data));
