//! The book describes the use of this crate, from the first timeout to monitoring. The chapters
//! build on each other.
//!
//! 1. [An overview](what_it_is), and four traps
//! 2. [Choosing](choosing) the wheel, the tick and the executor
//! 3. [The meaning of precision](precision)
//! 4. [Futures](futures) on any executor
//! 5. [Shutting down](shutting_down), also with pools
//! 6. [Testing](testing) on virtual time
//! 7. [Retries and periodic work](retries)
//! 8. [Monitoring](watching)
//! 9. [The promises](promises)
//! 10. [Limits and bounds](limits)
//! 11. [The checks](checks)
//! 12. [Coming from](coming_from) Netty, Kafka, Dubbo, Redisson, the JDK, Go or tokio
//!
//! The crate `timer-adapters` has a chapter for users of hyper, axum, tonic, quinn and other
//! libraries.

#[doc = include_str!("what_it_is.md")]
pub mod what_it_is {}

#[doc = include_str!("choosing.md")]
pub mod choosing {}

#[doc = include_str!("precision.md")]
pub mod precision {}

#[doc = include_str!("futures.md")]
pub mod futures {}

#[doc = include_str!("shutting_down.md")]
pub mod shutting_down {}

#[doc = include_str!("testing.md")]
pub mod testing {}

#[doc = include_str!("retries.md")]
pub mod retries {}

#[doc = include_str!("watching.md")]
pub mod watching {}

#[doc = include_str!("promises.md")]
pub mod promises {}

#[doc = include_str!("limits.md")]
pub mod limits {}

#[doc = include_str!("checks.md")]
pub mod checks {}

#[doc = include_str!("coming_from.md")]
pub mod coming_from {}
