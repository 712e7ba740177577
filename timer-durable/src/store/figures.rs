//! Figures of a store.

use std::time::{Duration, Instant};

/// The numbers of timeouts in a store, which fills the fields of the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Counts {
    /// Timeouts that are pending or running, of all instances.
    pub pending: u64,
    /// Dead letters.
    pub dead: u64,
}

/// The number of parts into which the timeouts of a shared store are divided. The instance that
/// writes a due time chooses the part.
pub const SHARDS: u32 = 64;

/// The place of an instance among the others that share a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Membership {
    /// The name of the node, if it was given one.
    pub name: Option<String>,
    /// The number of this instance.
    pub instance: u32,
    /// The shards that this instance owns, of [`SHARDS`].
    pub shards: u32,
    /// The instances whose lease holds, with this one.
    pub nodes: u32,
    /// The shards that this process has taken over from dead instances.
    pub taken_over: u64,
    /// The timeouts that others have written into the shards of this process.
    pub foreign: u64,
    /// The number of times that this process has tried to connect again.
    pub reconnects: u64,
    /// The time at which the last renewal was sent that succeeded.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub renewed: Option<Instant>,
    /// The age of the oldest transaction that keeps dead rows of the store, of those that this role
    /// may see. It may be a minute old.
    pub oldest_transaction: Duration,
}
