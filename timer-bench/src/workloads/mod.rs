//! The workloads, a file for each, whose head describes the work and its figures.
//! `crate::registry` lists them.

pub(crate) mod busy;
pub(crate) mod cancel;
pub(crate) mod crowd;
#[cfg(feature = "tokio")]
pub(crate) mod futures;
pub(crate) mod growth;
#[cfg(feature = "held")]
pub(crate) mod held;
pub(crate) mod idle;
pub(crate) mod instructions;
pub(crate) mod lateness;
pub(crate) mod memory;
pub(crate) mod overload;
pub(crate) mod pair;
#[cfg(feature = "tokio")]
pub(crate) mod queue;
pub(crate) mod reset;
pub(crate) mod schedule;
#[cfg(feature = "tokio")]
pub(crate) mod sleepers;
pub(crate) mod timetable;
#[cfg(feature = "tokio")]
pub(crate) mod ttl;
