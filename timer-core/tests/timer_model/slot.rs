//! One timeout of the model, what it may be, and how deadlines are rounded.

use crate::ops::{Kind, Spawn};
use std::collections::BTreeSet;
use timer_core::Timeout;

/// From here on deadlines are rounded up, and the present down, to multiples of `COARSE`.
const EXACT: u128 = 1 << 59;
pub(crate) const COARSE: u128 = 1 << 20;
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
    pub state: State,
    pub spawn: Spawn,
    /// In nanoseconds since the timer's epoch.
    pub deadline: u128,
    /// Deadlines that it had before it was reset to a later one, of which the wheel was not told.
    pub former: BTreeSet<u128>,
    /// The first of these, as far as the wheel has not come to it.
    linked: u128,
    /// Reset since it was handed over: that decides the next run.
    moved: bool,
    pub runs_left: u32,
    pub handle: Option<Timeout>,
    /// Its captures were dropped.
    pub freed: bool,
    /// Its hook was called.
    pub told: bool,
    /// Its run has panicked, and nobody but the model knows that the accounts come next.
    pub unsettled: bool,
}

impl Slot {
    pub(crate) fn is_periodic(&self) -> bool {
        matches!(self.spawn.kind, Kind::Rate(_) | Kind::Delay(_))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub scheduled: u64,
    pub expired: u64,
    pub cancelled: u64,
    pub rejected: u64,
    pub runs: u64,
    pub panics: u64,
    pub executor_rejections: u64,
    pub lag: u64,
}
