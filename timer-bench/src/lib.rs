//! Benchmarks of the timer side by side with its peers.
//!
//! - The programs `workload`, `workload-mem`, `workload-mimalloc` and `workload-held` run one
//!   workload on one peer in one process and print a line for each figure. They differ in their
//!   allocators, and the last one in its locks. [`registry`] lists peers and workloads.
//! - The program `bench-report` runs them round after round, alternating over the peers, and turns
//!   their output into [a table, files and plots](report).
//! - `benches/` has the benchmarks of single operations for criterion.
//!
//! All peers get the same delays from one seeded [generator](random). The files below another one
//! in this list import only from those above it: `random`, `row`, `settings`, `process`;
//! `cache_mixes`, `out`, `peer`; `caller`, `callgrind`; `peers`, `workloads`, `durable`;
//! `registry`; `report`.
//!
//! No library depends on this crate, and it is not published.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "tokio")]
mod cache_mixes;
mod caller;
mod callgrind;
pub mod durable;
pub mod out;
mod peer;
mod peers;
mod process;
pub mod random;
pub mod registry;
pub mod report;
pub mod row;
pub mod settings;
mod workloads;
