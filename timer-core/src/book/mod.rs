//! The book: how to use this crate, from the first timeout to the last. Text and examples only; read it top to bottom.
//!
//! 1. [What it is](what_it_is), and four traps
//! 2. [Choosing](choosing) wheel, tick and executor, with numbers
//! 3. [What precise means here](precision)
//! 4. [Futures](futures): async, on any executor
//! 5. [Shutting down](shutting_down), with pools too
//! 6. [Testing on virtual time](testing)
//! 7. [Retries and periodic work](retries)
//! 8. [Watching it](watching)
//! 9. [What it does not do, and its bounds](limits)
//! 10. [Coming from](coming_from) Netty, Kafka, the JDK, Go, tokio
//!
//! The crate `timer-adapters` has a chapter for users of hyper, axum, tonic, quinn and other libraries.

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

#[doc = include_str!("limits.md")]
pub mod limits {}

#[doc = include_str!("coming_from.md")]
pub mod coming_from {}
