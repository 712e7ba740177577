//! Timeouts in a store, which survive a restart of the process and the loss of a machine.
//!
//! The [book] describes the promises and the protocol. `tests/model` checks the protocol.

#![forbid(unsafe_code)]

pub mod book;
