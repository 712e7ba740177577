//! The book of the store in PostgreSQL. The book of `timer-durable` has the promises.
//!
//! 1. [PostgreSQL](postgres), choosing a store and sharing it
//! 2. [Operating](operating) the store
//! 3. [In your own transaction](transactions), with the drivers

#[doc = include_str!("postgres.md")]
pub mod postgres {}

#[doc = include_str!("operating.md")]
pub mod operating {}

#[doc = include_str!("transactions.md")]
pub mod transactions {}
