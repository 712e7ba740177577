//! Benchmarks of the timer, by operation and side by side with its peers.
//!
//! The crate has these parts:
//!
//! - `benches/` has one criterion file per operation. They show changes of a few percent.
//! - The programs `workload`, `workload-mem`, `workload-mimalloc` and `workload-held` run one
//!   [workload](workloads) on one [peer](peers) in one process and print a line for each figure.
//! - The program `bench-report` runs them round after round, alternating over the peers, and turns
//!   their output into [tables, files and plots](report).
//! - The program `durable` measures [durable timeouts](durable), and `overload` prints the course
//!   of an overload while it runs.
//!
//! All peers get the same delays from one seeded [generator](random). Lower is better for every
//! figure of a workload. Peers from other crates need the feature `peers`, while those of the
//! standard library are always built in.
//!
//! No library depends on this crate, and it is not published.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod durable;
pub mod peers;
pub mod process;
pub mod random;
pub mod report;
pub mod row;
pub mod scheduling;
pub mod settings;
pub mod workloads;
