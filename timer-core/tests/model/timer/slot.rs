//! One timeout of the model, what it may be, and how deadlines are rounded.

use super::ops::{Kind, Spawn};
use std::collections::BTreeSet;
use timer_core::Timeout;

/// From here on deadlines are rounded up, and the present down, to multiples of `COARSE`:
/// nanoseconds of the system's clock.
const EXACT: u128 = 1 << 59;
const COARSE: u128 = 32;
/// A deadline that never comes, and the last instant before it.
pub(crate) const NEVER: u128 = u64::MAX as u128;
pub(crate) const END_OF_TIME: u128 = NEVER - 1;

pub(crate) fn up(nanos: u128) -> u128 {
    let rounded = if nanos < EXACT { nanos } else { nanos.div_ceil(COARSE) * COARSE };
    rounded.min(NEVER)
}

pub(crate) fn down(nanos: u128) -> u128 {
    if nanos < EXACT { nanos } else { nanos.min(END_OF_TIME) / COARSE * COARSE }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Waiting,
    /// Given to the executor, not yet begun: pending, and its deadline may be moved.
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
    /// In nanoseconds of the system's clock.
    pub(crate) deadline: u128,
    /// Deadlines that it had before it was reset to a later one, of which the wheel was not told.
    pub(crate) former: BTreeSet<u128>,
    /// The first of these, as far as the wheel has not come to it.
    pub(crate) linked: u128,
    /// Reset since its run began: that decides the next run.
    pub(crate) moved: bool,
    pub(crate) runs_left: u32,
    pub(crate) handle: Option<Timeout>,
    /// Its captures were dropped.
    pub(crate) freed: bool,
    /// Its hook was called.
    pub(crate) told: bool,
    /// A panic of its hook is caught by the call that cancels it.
    pub(crate) contained: bool,
    /// Its run has panicked, and the timer has not counted it yet.
    pub(crate) uncounted: bool,
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
    /// Hand-overs.
    pub(crate) runs: u64,
    pub(crate) panics: u64,
    pub(crate) executor_rejections: u64,
    /// Of all hand-overs together, in nanoseconds; and how many there were.
    pub(crate) lag: u64,
    pub(crate) lags: u64,
    /// The same of the starts.
    pub(crate) start_lag: u64,
    pub(crate) starts: u64,
}
