//! The one door to threads, atomics, locks and queues.
//!
//! Everything two threads can see at once goes through here, so that a model checker can stand in for all of it
//! (`--cfg timer_loom`) and a reader finds every kind of sharing in one list. No other module of this crate names
//! `std::sync`, `std::thread`, `crossbeam` or `parking_lot`; this crate's `clippy.toml` forbids it.

#[allow(unsafe_code, reason = "the lock: the module lists its invariants")]
mod lock;
#[cfg(all(test, timer_loom))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "tests only")]
mod model;
#[cfg(not(all(test, timer_loom)))]
#[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "this is the one door to them")]
mod real;
#[cfg(not(all(test, timer_loom)))]
#[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "this is the one door to them")]
mod system;

#[allow(clippy::disallowed_types, reason = "this is the one door to them")]
mod scope;

pub(crate) use lock::{Guard, Lock, Owed};
#[cfg(all(test, timer_loom))]
pub(crate) use model::*;
/// What an error carries a task in: never locked, it only makes the error `Sync`.
#[allow(clippy::disallowed_types, reason = "not what a model checks")]
pub(crate) type TaskBox<T> = parking_lot::Mutex<T>;
#[cfg(not(all(test, timer_loom)))]
pub(crate) use real::*;
pub(crate) use scope::{swap_thread_value, thread_value};
#[cfg(not(all(test, timer_loom)))]
pub(crate) use system::*;
