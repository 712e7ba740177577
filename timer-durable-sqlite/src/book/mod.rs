//! The book of the store in a file. The book of `timer-durable` has the promises.
//!
//! 1. [Backup and restore](backup), containers, and other programs beside the file
//! 2. [Sharing](sharing) a file with tables of the program, its migrations and other connections
//! 3. [Faults](faults) of a file, with the error of each

#[doc = include_str!("backup.md")]
pub mod backup {}

#[doc = include_str!("sharing.md")]
pub mod sharing {}

#[doc = include_str!("faults.md")]
pub mod faults {}
