//! The way of one timeout through its shard: cancel and reset, after the state word has decided.

use super::{Shard, shard_of};
use crate::clock;
use crate::context::Context;
use crate::entry::Timeout;
use crate::entry::state::{Cancel, Reset};
use crate::error::RejectReason;
use crate::sync::Arc;
use crate::time::{Deadline, IMMEDIATE, Nanos};

impl Timeout {
    /// Returns the shard in whose wheel the entry waits or has waited.
    #[inline]
    pub(crate) fn shard(&self) -> &'static Shard {
        shard_of(self.shard_id())
    }

    /// Returns the timer's context. Returns `None` once the timer is gone.
    pub(crate) fn context(&self) -> Option<Arc<Context>> {
        self.shard().context(self.shard_id())
    }

    /// Returns the present of the timer. Once the timer is gone, that is the present of the system.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.shard().now_of(self.shard_id()).unwrap_or_else(clock::now)
    }

    /// Counts a cancel that the state word has decided, and unlinks the entry. Returns `false` if the cancel
    /// was lost. Call it before user code.
    #[inline]
    pub(crate) fn finish_cancel(&self, cancel: Cancel) -> bool {
        match cancel {
            Cancel::Waiting => self.shard().unlink_cancelled(self),
            Cancel::Queued | Cancel::Running => self.count_cancelled(cancel),
            Cancel::Lost => return false,
        }
        true
    }

    /// Counts the cancel of an entry that is in no wheel, but in an executor's queue or in a run.
    #[cold]
    fn count_cancelled(&self, cancel: Cancel) {
        // A timer that is gone has no counters.
        if let Some(context) = self.context() {
            context.counters.cancelled_elsewhere.add_contended(1);
            context.release_permit();
            if cancel == Cancel::Queued {
                context.counters.in_flight.unqueue();
            }
        }
    }

    /// Moves the timeout to `deadline`, which was computed at `now`. Returns `false` if it has ended.
    ///
    /// `is_due` asks for a link although the deadline may not be earlier: a timeout that is due now must not
    /// wait for the tick under which it is linked.
    #[inline]
    pub(crate) fn reset_to(&self, deadline: Deadline, now: Nanos, is_due: bool) -> bool {
        match self.state().reset(deadline, is_due) {
            Reset::MustLink => {
                self.link_earlier(deadline, now);
                true
            }
            Reset::Done => true,
            Reset::Lost => false,
        }
    }

    /// Moves the timeout to the present. Returns `false` if it is due already or has ended.
    pub(crate) fn bring_forward(&self) -> bool {
        let now = Deadline::down(self.now());
        match self.state().bring_forward(now) {
            Reset::MustLink => {
                let _ = self.link(now, IMMEDIATE);
                true
            }
            Reset::Done => true,
            Reset::Lost => false,
        }
    }

    #[cold]
    #[inline(never)]
    fn link_earlier(&self, deadline: Deadline, now: Nanos) {
        // If the timer is gone, the timeout has ended. A closed shard has given the entry out already.
        if let Some(context) = self.context() {
            let _ = self.link(deadline, context.resolution.tick_from(deadline, now));
        }
    }

    /// Links the entry under `tick`, which is that of `deadline`, unless it has ended or is linked earlier.
    ///
    /// # Errors
    ///
    /// [`RejectReason::Stopped`] if the shard is closed.
    pub(crate) fn link(&self, deadline: Deadline, tick: u64) -> Result<(), RejectReason> {
        self.shard().submit(self.clone(), tick)?;
        self.state().set_linked(deadline);
        Ok(())
    }
}
