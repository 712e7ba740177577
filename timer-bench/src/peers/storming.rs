//! The traits that storms and the count of instructions need beyond [`Peer`].

use super::{Job, Peer};
use std::time::Duration;

/// A timer that callers use at full speed, even after its end.
pub(crate) trait Storming: Peer {
    /// The reason why it cannot be stopped while callers continue, if it cannot.
    const NO_STOP: Option<&'static str> = None;

    /// Set if dropping a handle cancels.
    const DROP_CANCELS: bool = false;

    /// Set if the timer runs jobs at all.
    const FIRES: bool = true;

    /// The timers that [`stop_beside_callers`](Self::stop_beside_callers) returns because they did
    /// not run.
    type Back: Send;

    /// Schedules one run of `work` in `delay`. Returns `None` if the timer was stopped.
    fn try_schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> Option<Self::Handle>;

    /// Cancels, and returns `true` if the job has not run. Returns `None` if the timer does not
    /// report it.
    fn try_cancel(&mut self, handle: Self::Handle) -> Option<bool>;

    /// Stops the timer while others call it. Not called if [`NO_STOP`](Self::NO_STOP) has a reason.
    fn stop_beside_callers(&self) -> Self::Back;

    /// Runs the timers that the stop returned, so that they end like the rest.
    fn run_back(back: Self::Back);
}

/// The treatment of timers after they were scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    Run,
    Drop,
}

/// A timer that can run due jobs on the calling thread, where their instructions can be counted.
pub(crate) trait Expiring: Peer {
    /// Schedules `count` timers and gives them this treatment. Returns `false` if the peer cannot
    /// do so.
    fn expire<J: Job>(_count: usize, _work: &Self::Work<J>, _treatment: Treatment) -> bool {
        false
    }
}
