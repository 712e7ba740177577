//! Benchmarks of the timer, operation by operation and side by side with its peers.
//!
//! Three things live here:
//!
//! - `benches/`: one criterion file per operation, to see what a change of a few percent did;
//! - the programs `workload`, `workload-mem` and `workload-mimalloc`: one [workload](workloads) on one [peer](peers) in one
//!   process, a line for each figure;
//! - the program `bench-report`: runs them alternating over the peers, round after round, and makes [tables, files and
//!   plots](report) of what they print.
//!
//! All peers get the same delays, from one seeded [generator](random). Lower is better for every figure. Peers from other
//! crates need the feature `peers`; those of the standard library are always there.
//!
//! Absent here: anything that the libraries need. Nothing depends on this crate, and it is not published.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod peers;
pub mod process;
pub mod random;
pub mod report;
pub mod row;
pub mod scheduling;
pub mod settings;
pub mod workloads;
