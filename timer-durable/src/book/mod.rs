//! The book, which explains the promises of durable timeouts and how to live with them.
//!
//! 1. [The sixteen promises](promises), with meaning and cost
//! 2. [Exactly once](exactly_once)
//! 3. [Clocks](clocks)
//! 4. [Sizing](sizing) memory and disk
//! 5. [Upgrades](upgrades) of programs, payloads and the schema
//! 6. [Faults](faults) and bad input, with the error of each
//! 7. [Events](events) that are reported by `tracing`
//! 8. [Moving in](moving) from RabbitMQ, Redisson, pg-boss, apalis, Sidekiq, Quartz, Celery or
//!    underway
//! 9. [Reading](reading) timeouts back, and acting on many
//! 10. [Handlers](handlers), their answers, time limits, and topics that delay no others
//! 11. [The protocol](protocol), and the model that checks it
//! 12. [Testing](testing) on virtual time
//! 13. [Traces](traces) with OpenTelemetry
//! 14. [Write a store](write_a_store) of your own
//!
//! The book of `timer-durable-sqlite` has a chapter on backup and restore. That of
//! `timer-durable-postgres` has chapters on choosing a store and sharing it, on operating it, and
//! on timeouts in your own transaction.

#[doc = include_str!("promises.md")]
pub mod promises {}

#[doc = include_str!("exactly_once.md")]
pub mod exactly_once {}

#[doc = include_str!("clocks.md")]
pub mod clocks {}

#[doc = include_str!("sizing.md")]
pub mod sizing {}

#[doc = include_str!("upgrades.md")]
pub mod upgrades {}

#[doc = include_str!("faults.md")]
pub mod faults {}

#[doc = include_str!("events.md")]
pub mod events {}

#[doc = include_str!("moving.md")]
pub mod moving {}

#[doc = include_str!("reading.md")]
pub mod reading {}

#[doc = include_str!("handlers.md")]
pub mod handlers {}

#[doc = include_str!("protocol.md")]
pub mod protocol {}

#[doc = include_str!("testing.md")]
pub mod testing {}

#[doc = include_str!("traces.md")]
pub mod traces {}

#[doc = include_str!("write_a_store.md")]
pub mod write_a_store {}
