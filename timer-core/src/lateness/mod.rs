//! The lateness of runs by causes, for a timer of any kind.
//!
//! A kind of timer has a set of causes, which is an enum that [`late_causes!`](crate::late_causes)
//! defines from one list. Its worker records the cause of each moment on a [`Timeline`]. The
//! timeline splits the time by which a run was late into a [`Lateness`], which has one part for
//! each cause. [`WorstRuns`] keeps the worst runs of the last minute.
//!
//! All of these are plain values. The timer decides which thread writes them, and how a reader gets
//! a copy. This crate and `timer-durable` share the module. Programs use the types at the root of
//! each crate, such as [`LateCause`](crate::LateCause) and [`Lateness`](crate::Lateness).
//!
//! # Examples
//!
//! A program that explains why its replies are late:
//!
//! ```
//! use std::time::Duration;
//! use timer_core::lateness::Timeline;
//!
//! timer_core::late_causes! {
//!     /// A cause for which a reply is late.
//!     pub enum Cause {
//!         /// The program waited for the disk.
//!         Disk = "disk",
//!         /// The program was at work.
//!         Work = "work",
//!     }
//! }
//!
//! let mut timeline = Timeline::new(Cause::Disk, 16);
//! timeline.extend(3_000_000, Cause::Work, None);
//! timeline.extend(4_000_000, Cause::Disk, None);
//! let lateness = timeline.split(1_000_000, timeline.end());
//! assert_eq!(lateness.part(Cause::Work), Duration::from_millis(2));
//! assert_eq!(lateness.total(), Duration::from_millis(3));
//! ```

mod cause;
mod parts;
mod quota;
mod timeline;
mod worst;

pub use cause::Cause;
pub use parts::Lateness;
pub use quota::QuotaWatch;
#[cfg(all(test, not(timer_loom)))]
pub(crate) use quota::tests::Throttled;
#[cfg(all(test, not(timer_loom)))]
pub(crate) use timeline::SPLITS;
pub use timeline::Timeline;
pub(crate) use worst::MIN_LATENESS;
pub use worst::WorstRuns;
