//! The whole timer on virtual time against a model: a list of timeouts that is searched from end to
//! end.
//!
//! After every operation, those of tasks included, all that can be seen of the timer is compared:
//! what has run and in which order, at which instant, the state and deadline of every handle, every
//! count, and when it says it is due next. The model and the timer take the same steps; see `world`
//! for who calls whom.
//!
//! `PROPTEST_CASES` sets the number of cases. The fuzz target `timer_virtual` makes its cases of
//! bytes instead; see `bytes`. It takes this module, without what needs proptest.

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
mod strategies;
#[cfg(test)]
mod sweeps;
mod time;
mod world;
