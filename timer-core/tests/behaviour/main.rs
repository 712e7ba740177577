//! Tests of the timer's promises that the model of whole timers in `tests/model` cannot make: on
//! threads, on the real clock, and with user code that panics or calls back. Promises 5, 9 and 14
//! have no module, because the model proves them. Further modules test handles, the queues of
//! executors, futures and the worker's thread.
//!
//! The tests run on virtual time where they can. Tests on the real clock wait on channels and
//! compare `Instant`s, and none sleeps to be right. Promise 16 limits the whole process, so its
//! tests are in the binary `memory`, which runs one test at a time.

#![deny(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod delay_maps;
mod delay_queues;
mod drain;
mod futures;
mod handles;
mod p01_never_early;
mod p02_due_now;
mod p03_exactly_one_end;
mod p04_exact_count;
mod p06_no_user_code_under_a_lock;
mod p07_idle;
mod p08_any_delay;
mod p10_panics;
mod p11_slow_task;
mod p12_rejecting_executor;
mod p13_end_of_life;
mod p15_build_errors;
mod p17_panics_of_the_user;
mod queued;
mod timetable;
mod worker_options;
#[cfg(target_os = "linux")]
mod worker_thread;
