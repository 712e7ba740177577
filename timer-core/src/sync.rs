//! The one door to threads, atomics, locks and queues.
//!
//! Everything two threads can see at once goes through here, so that a model checker can stand in for all of it
//! (`--cfg timer_loom`) and a reader finds every kind of sharing in one list. No other module of this crate names
//! `std::sync`, `std::thread`, `crossbeam` or `parking_lot`.

#[allow(unsafe_code, reason = "the lock: the module lists its invariants")]
mod lock;
#[cfg(all(test, timer_loom))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "tests only")]
mod model;
#[cfg(not(all(test, timer_loom)))]
mod real;
#[cfg(not(all(test, timer_loom)))]
mod system;

pub(crate) use lock::{Guard, Lock, Owed};
#[cfg(all(test, timer_loom))]
pub(crate) use model::*;
/// What an error carries a task in: never locked, it only makes the error `Sync`.
pub(crate) use parking_lot::Mutex as TaskBox;
#[cfg(not(all(test, timer_loom)))]
pub(crate) use real::*;
#[cfg(not(all(test, timer_loom)))]
pub(crate) use system::*;
