//! What a peer must have beyond [`Peer`] to be measured in storms, and to have its instructions counted.

use super::{Job, Peer};
use std::time::Duration;

/// A timer that callers use at full speed, beyond the end of it.
pub(crate) trait Storming: Peer {
    /// Why it cannot be stopped while callers go on, if it cannot.
    const NO_STOP: Option<&'static str> = None;

    /// Whether dropping a handle cancels.
    const DROP_CANCELS: bool = false;

    /// Whether anything ever runs.
    const FIRES: bool = true;

    /// What [`stop_beside_callers`](Self::stop_beside_callers) hands back: timers that did not run.
    type Back: Send;

    /// Does `work` once, `delay` from now; `None` if the timer was stopped.
    fn try_schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> Option<Self::Handle>;

    /// Cancels, and says whether that came before the run; `None` if the timer does not tell.
    fn has_cancelled(&mut self, handle: Self::Handle) -> Option<bool>;

    /// Ends the timer while others call it. Never called if there is a reason in [`NO_STOP`](Self::NO_STOP).
    fn stop_beside_callers(&self) -> Self::Back;

    /// Runs what was handed back, so that it has ended like the rest.
    fn run_back(back: Self::Back);
}

/// What is done with timers that were scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Run,
    Drop,
}

/// A timer whose runs can be made on the calling thread, where they can be counted.
pub(crate) trait Expiring: Peer {
    /// Schedules so many, and does that with them, here; `false` if it cannot.
    fn expire<J: Job>(_count: usize, _work: &Self::Work<J>, _then: Then) -> bool {
        false
    }
}
