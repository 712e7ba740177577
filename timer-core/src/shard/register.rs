//! The way in for futures, which hold nothing of the timer but the name of its shards.
//!
//! They come with an entry that is new, or that they have claimed after it has run ([`crate::entry::Claim`]). What [`super::Shard::schedule`]'s callers
//! do before it is done here with the shard's lock held, or that of its inbox: is it still the same timer, is there a permit. Then
//! the entry is released, and so waits, and is linked; stale requests of its former life harm nothing, since all go by
//! [`Shard::reconcile`](super::Shard).

use super::inbox::{For, Pushed, Request};
use super::{Core, Shard};
use crate::context::Context;
use crate::counters::Limit;
use crate::entry::Timeout;
use crate::error::RejectReason;
use crate::sync::{Arc, Guard};
use crate::time::{IMMEDIATE, NO_TICK, Nanos};

/// With what a future comes.
#[derive(Clone, Copy)]
pub(crate) enum Arrival {
    /// It waits, and no shard knows it.
    New,
    /// It has run before, and is claimed; or it may be new.
    Claimed,
}

impl Context {
    /// A permit for one timeout more.
    #[inline]
    pub(super) fn acquire_permit(&self) -> Result<(), RejectReason> {
        match &self.limit {
            None => Ok(()),
            Some(limit) => self.acquire_from(limit),
        }
    }

    #[cold]
    fn acquire_from(&self, limit: &Limit) -> Result<(), RejectReason> {
        if limit.try_acquire() {
            return Ok(());
        }
        if self.is_stopped() {
            return Err(RejectReason::Stopped);
        }
        self.counters.rejected.add_contended(1);
        Err(RejectReason::TooManyPending { max: limit.max() })
    }
}

impl Shard {
    /// Accepts a future's entry, `timeout` being the wheel's reference. `Err`: nothing was done; the entry is as it was.
    #[inline]
    pub(crate) fn register(&self, timeout: Timeout, now: Nanos, arrival: Arrival) -> Result<(), RejectReason> {
        match self.lock.try_lock() {
            Some(core) => self.register_in(core, timeout, now, arrival),
            None => self.register_by_request(timeout, now),
        }
    }

    #[inline]
    fn register_in(
        &self,
        mut core: Guard<'_, Core>,
        timeout: Timeout,
        now: Nanos,
        arrival: Arrival,
    ) -> Result<(), RejectReason> {
        let context = match &core.context {
            Some(context) if core.open && core.generation == timeout.shard_id().generation => context,
            _ => {
                self.unlock(core);
                return Err(RejectReason::Stopped);
            }
        };
        if let Err(reason) = context.acquire_permit() {
            self.unlock(core);
            return Err(reason);
        }
        let resolution = context.resolution;
        let tick = resolution.tick_from(timeout.state().deadline(), now);
        self.scheduled.add(1);
        let mut aside = Vec::new();
        core.wheel.fast_forward_if_empty(|| resolution.tick_at(now));
        let wake_before = match arrival {
            Arrival::New => self.link(&mut core, tick, timeout),
            Arrival::Claimed => {
                timeout.state().release();
                self.reconcile(&mut core, Request { timeout, tick }, &mut aside)
            }
        };
        if wake_before == NO_TICK {
            self.unlock(core);
            return Ok(());
        }
        let context = core.context.clone();
        self.unlock(core);
        wake(context, wake_before);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn register_by_request(&self, timeout: Timeout, now: Nanos) -> Result<(), RejectReason> {
        match self.request(Request { timeout, tick: IMMEDIATE }, For::Future) {
            Ok(()) | Err(Pushed::Accepted(_)) => Ok(()),
            Err(Pushed::Full(request)) => self.register_in(self.lock.lock(), request.timeout, now, Arrival::Claimed),
            Err(Pushed::Closed(_) | Pushed::Gone(_)) => Err(RejectReason::Stopped),
            Err(Pushed::Refused(_, reason)) => Err(reason),
        }
    }
}

/// Wakes the worker before `tick`.
#[cold]
#[inline(never)]
fn wake(context: Option<Arc<Context>>, tick: u64) {
    if let Some(context) = context {
        context.alarm.wake_before(tick);
    }
}
