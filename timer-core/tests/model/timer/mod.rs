//! The whole timer on virtual time compared with a model, a plain list of timeouts.
//!
//! After every operation, including those of tasks, all visible results are compared. These are the
//! tasks that ran, their order and instants, the state and deadline of every handle, every count,
//! and the next expiry. The model and the timer take the same steps; `world` describes the order of
//! the calls.
//!
//! Bytes become cases; see `bytes`. Proptest chooses them here, and `PROPTEST_CASES` sets the
//! number of cases. The fuzz target `timer_virtual` uses this module without the parts that need
//! proptest.

pub(crate) mod bytes;
#[cfg(test)]
mod cases;
mod compare;
mod edges;
mod executors;
mod guard;
mod model;
mod ops;
mod run;
mod slot;
#[cfg(test)]
mod sweeps;
mod time;
mod world;
