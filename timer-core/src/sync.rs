//! The facade for threads, atomics and locks.
//!
//! All state that two threads share uses the types of this module. A model checker can therefore
//! replace all of them (`--cfg timer_loom`), and a reader finds every kind of sharing in one list.
//! No other module of this crate names `std::sync`, `std::thread` or `parking_lot`, because this
//! crate's `clippy.toml` forbids it.

#[allow(clippy::disallowed_types, reason = "no model checks it")]
mod cgroup;
#[cfg(all(feature = "__tests", not(timer_loom)))]
#[allow(clippy::disallowed_types, reason = "no model checks it")]
pub(crate) mod holds;
#[allow(unsafe_code, reason = "the lock: the module lists its invariants")]
mod lock;
#[cfg(all(test, timer_loom))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "tests only")]
mod model;
#[cfg(not(all(test, timer_loom)))]
#[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "this module is the facade for them")]
mod real;
#[cfg(not(all(test, timer_loom)))]
#[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "this module is the facade for them")]
mod system;

pub(crate) use cgroup::Cgroup;
#[cfg(all(test, not(timer_loom)))]
pub(crate) use cgroup::tests as cgroup_tests;
pub(crate) use lock::{Guard, Lock};
#[cfg(all(test, timer_loom))]
pub(crate) use model::*;
/// The box of a task in an error. It is never locked and only makes the error `Sync`.
#[allow(clippy::disallowed_types, reason = "no model checks it")]
pub(crate) type TaskBox<T> = parking_lot::Mutex<T>;
#[cfg(not(all(test, timer_loom)))]
pub(crate) use real::*;
#[cfg(not(all(test, timer_loom)))]
pub(crate) use system::*;
