//! One timeout of the model, what it may be, and how deadlines are rounded.

use super::ops::{Kind, Spawn};
use std::collections::BTreeSet;
use timer_core::Timeout;

/// From here on deadlines are rounded up, and the present down, to multiples of `COARSE`.
const EXACT: u128 = 1 << 59;
const COARSE: u128 = 1 << 20;
/// A deadline that never comes, and the last instant before it.
pub(crate) const NEVER: u128 = ((1 << 59) - 1) << 20;
pub(crate) const END_OF_TIME: u128 = ((1 << 59) - 2) << 20;

pub(crate) fn up(nanos: u128) -> u128 {
    let rounded = if nanos < EXACT { nanos } else { nanos.min(NEVER).div_ceil(COARSE) * COARSE };
    assert!(rounded == NEVER || (nanos..nanos + COARSE).contains(&rounded), "at most 2^20 ns late");
    rounded
}

pub(crate) fn down(nanos: u128) -> u128 {
    if nanos < EXACT { nanos } else { (nanos / COARSE * COARSE).min(END_OF_TIME) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Waiting,
    /// Given to the executor, not yet begun.
    Handed,
    InRun,
    Expired,
    Cancelled,
    /// By `stop`, with its task.
    HandedBack,
    Rejected,
}

/// One timeout.
pub(crate) struct Slot {
    pub(crate) state: State,
    pub(crate) spawn: Spawn,
    /// In nanoseconds since the timer's epoch.
    pub(crate) deadline: u128,
    /// Deadlines that it had before it was reset to a later one, of which the wheel was not told.
    pub(crate) former: BTreeSet<u128>,
    /// The first of these, as far as the wheel has not come to it.
    pub(crate) linked: u128,
    /// Reset since it was handed over: that decides the next run.
    pub(crate) moved: bool,
    pub(crate) runs_left: u32,
    pub(crate) handle: Option<Timeout>,
    /// Its captures were dropped.
    pub(crate) freed: bool,
    /// Its hook was called.
    pub(crate) told: bool,
    /// Its run has panicked, and nobody but the model knows that the accounts come next.
    pub(crate) unsettled: bool,
}

impl Slot {
    pub(crate) fn is_periodic(&self) -> bool {
        matches!(self.spawn.kind, Kind::Rate(_) | Kind::Delay(_))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) scheduled: u64,
    pub(crate) expired: u64,
    pub(crate) cancelled: u64,
    pub(crate) rejected: u64,
    pub(crate) runs: u64,
    pub(crate) panics: u64,
    pub(crate) executor_rejections: u64,
    pub(crate) lag: u64,
}
