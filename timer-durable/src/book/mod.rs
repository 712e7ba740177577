//! The book, which explains the promises of durable timeouts and how to live with them.
//!
//! 1. [The sixteen promises](promises), with meaning and cost
//! 2. [Exactly once](exactly_once)
//! 3. [Clocks](clocks)
//! 4. [Sizing](sizing) memory and disk
//! 5. [Upgrades](upgrades) of programs, payloads and the schema
//! 6. [Backup and restore](backup)
//! 7. [Faults](faults) and bad input, with the error of each
//! 8. [Events](events) that are reported by `tracing`
//! 9. [PostgreSQL](postgres), choosing a store and sharing it
//! 10. [Operating](operating) the store in PostgreSQL
//! 11. [Moving in](moving) from RabbitMQ, Redisson, pg-boss, apalis, Sidekiq, Quartz, Celery or
//!     underway
//! 12. [Reading](reading) timeouts back, and acting on many
//! 13. [In your own transaction](transactions), with the drivers of PostgreSQL or on SQLite
//! 14. [Handlers](handlers), their answers, time limits, and topics that delay no others
//! 15. [The protocol](protocol), and the model that checks it
//! 16. [Testing](testing) on virtual time
//! 17. [Traces](traces) with OpenTelemetry

#[doc = include_str!("promises.md")]
pub mod promises {}

#[doc = include_str!("exactly_once.md")]
pub mod exactly_once {}

#[doc = include_str!("transactions.md")]
pub mod transactions {}

#[doc = include_str!("clocks.md")]
pub mod clocks {}

#[doc = include_str!("sizing.md")]
pub mod sizing {}

#[doc = include_str!("upgrades.md")]
pub mod upgrades {}

#[doc = include_str!("backup.md")]
pub mod backup {}

#[doc = include_str!("faults.md")]
pub mod faults {}

#[doc = include_str!("events.md")]
pub mod events {}

#[doc = include_str!("postgres.md")]
pub mod postgres {}

#[doc = include_str!("operating.md")]
pub mod operating {}

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
