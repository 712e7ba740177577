//! The whole timer on virtual time, on both wheels, against the model of `tests/model/timer`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| timer_core_fuzz::timer_virtual(data));
