//! The store on redb, by the checks for stores and by those that all stores share.
#![allow(clippy::unwrap_used, reason = "tests")]

mod file;
mod shared;
