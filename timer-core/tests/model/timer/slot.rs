//! A timeout of the model with its states, and the rounding of deadlines.

use super::ops::{Kind, Spawn};
use std::collections::BTreeSet;
use timer_core::Timeout;

/// The time of the system's clock, in nanoseconds, from which on deadlines are rounded up to
/// multiples of `COARSE`, and the current time down.
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
    /// The executor has the task but has not begun it. The timeout is pending and may be moved.
    Handed,
    InRun,
    Expired,
    Cancelled,
    /// `stop` has handed the timeout back with its task.
    HandedBack,
    Rejected,
}

/// A timeout of the model.
pub(crate) struct Slot {
    pub(crate) state: State,
    pub(crate) spawn: Spawn,
    /// The deadline in nanoseconds of the system's clock.
    pub(crate) deadline: u128,
    /// Earlier deadlines, from before resets to later ones, which the wheel has not noticed.
    pub(crate) former: BTreeSet<u128>,
    /// The first of these that the wheel has not reached yet.
    pub(crate) linked: u128,
    /// Whether the timeout was reset since its run began, which decides the next run.
    pub(crate) moved: bool,
    pub(crate) runs_left: u32,
    pub(crate) handle: Option<Timeout>,
    /// Whether its captures were dropped.
    pub(crate) freed: bool,
    /// Whether its hook was called.
    pub(crate) hook_called: bool,
    /// Whether the call that cancels it catches a panic of its hook.
    pub(crate) contained: bool,
    /// Whether its run has panicked and the timer has not counted the panic yet.
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
    /// The number of hand-overs.
    pub(crate) runs: u64,
    pub(crate) panics: u64,
    pub(crate) executor_rejections: u64,
    /// The sum of the lags of all hand-overs in nanoseconds, and their number.
    pub(crate) lag: u64,
    pub(crate) lags: u64,
    /// The sum of the lags of all starts in nanoseconds, and their number.
    pub(crate) start_lag: u64,
    pub(crate) starts: u64,
}
