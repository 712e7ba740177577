//! The one door to threads, atomics, locks and queues.
//!
//! Everything two threads can see at once goes through here, so that a model checker can stand in for all of it
//! (`--cfg timer_loom`) and a reader finds every kind of sharing in one list. No other module of this crate names
//! `std::sync`, `std::thread`, `crossbeam` or `parking_lot`; `cargo xtask tidy` checks it.

#[allow(unsafe_code)]
mod held;
#[cfg(all(test, timer_loom))]
mod model;
#[cfg(not(all(test, timer_loom)))]
mod real;

pub(crate) use held::{HELD, Held, HeldWord, Hold};
#[cfg(all(test, timer_loom))]
pub(crate) use model::*;
#[cfg(not(all(test, timer_loom)))]
pub(crate) use real::*;
