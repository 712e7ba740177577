//! What callers do with a shard: link new entries, link others earlier, unlink what they have cancelled. Each call holds the lock for
//! its own work, or leaves a request; beyond the quota of requests it waits at the gate.

use super::inbox::{For, Pushed, Request};
use super::{Closed, Core, Shard};
use crate::context::Context;
use crate::entry::Timeout;
use crate::time::{NO_TICK, Nanos};

impl Shard {
    /// Links a new entry: its user has a reference already. The caller has acquired a permit.
    #[inline]
    pub(crate) fn schedule(&self, timeout: Timeout, tick: u64, now: Nanos, context: &Context) -> Result<(), Closed> {
        let Some(mut core) = self.lock.try_lock() else { return self.schedule_by_request(timeout, tick, now, context) };
        if !core.open {
            self.unlock(core);
            return Err(Closed(timeout));
        }
        self.scheduled.add(1);
        let wake_before = self.link_new(&mut core, tick, timeout, now, context);
        self.unlock(core);
        if wake_before != NO_TICK {
            context.alarm.wake_before(wake_before);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn schedule_by_request(&self, timeout: Timeout, tick: u64, now: Nanos, context: &Context) -> Result<(), Closed> {
        let request = match self.request(Request { timeout, tick }, For::New) {
            Ok(()) => return Ok(()),
            Err(Pushed::Full(request)) => request,
            Err(Pushed::Closed(request) | Pushed::Gone(request) | Pushed::Refused(request, _)) => {
                return Err(Closed(request.timeout));
            }
            Err(Pushed::Accepted(_)) => return Ok(()),
        };
        let mut core = self.lock.lock();
        if !core.open {
            self.unlock(core);
            return Err(Closed(request.timeout));
        }
        self.scheduled.add(1);
        let wake_before = self.link_new(&mut core, tick, request.timeout, now, context);
        self.unlock(core);
        context.alarm.wake_before(wake_before);
        Ok(())
    }

    /// Links new entries, [`MAX_PER_LOCK`](super::MAX_PER_LOCK) at the most, under one lock. `false` if the lock is taken, or the shard shut: then
    /// nothing was done.
    pub(crate) fn try_schedule_all(&self, timeouts: &mut Vec<(Timeout, u64)>, now: Nanos, context: &Context) -> bool {
        let Some(mut core) = self.lock.try_lock() else { return false };
        if !core.open {
            self.unlock(core);
            return false;
        }
        self.scheduled.add(timeouts.len() as u64);
        let mut wake_before = NO_TICK;
        for (timeout, tick) in timeouts.drain(..) {
            wake_before = wake_before.min(self.link_new(&mut core, tick, timeout, now, context));
        }
        self.unlock(core);
        if wake_before != NO_TICK {
            context.alarm.wake_before(wake_before);
        }
        true
    }

    /// Links an entry that waits again, or has to be linked earlier; does nothing for one that has ended. `Err`: the shard takes no
    /// more, or serves another timer.
    pub(crate) fn submit(&self, timeout: Timeout, tick: u64) -> Result<(), Closed> {
        let request = Request { timeout, tick };
        let (mut core, request) = match self.lock.try_lock() {
            Some(core) => (core, request),
            None => match self.request(request, For::Moved) {
                Ok(()) | Err(Pushed::Accepted(_)) => return Ok(()),
                Err(Pushed::Full(request)) => (self.lock.lock(), request),
                Err(Pushed::Closed(request) | Pushed::Gone(request) | Pushed::Refused(request, _)) => {
                    return Err(Closed(request.timeout));
                }
            },
        };
        if !core.open || core.generation != request.timeout.shard_id().generation {
            self.unlock(core);
            return Err(Closed(request.timeout));
        }
        let mut aside = Vec::new();
        let wake_before = self.reconcile(&mut core, request, &mut aside);
        let context = core.context.clone().filter(|_| wake_before != NO_TICK);
        self.unlock(core);
        if let Some(context) = context {
            context.alarm.wake_before(wake_before);
        }
        Ok(())
    }

    /// Counts a timeout that its caller has cancelled while it waited, and takes it out of the wheel.
    #[inline]
    pub(crate) fn unlink_cancelled(&self, timeout: &Timeout) {
        let Some(mut core) = self.lock.try_lock() else { return self.unlink_by_request(timeout) };
        self.cancel_in(&mut core, timeout);
        self.unlock(core);
    }

    /// The same for several, under one lock; `false` if it is taken: then nothing was done. At most [`MAX_PER_LOCK`](super::MAX_PER_LOCK).
    pub(crate) fn try_unlink_all(&self, timeouts: &[&Timeout]) -> bool {
        let Some(mut core) = self.lock.try_lock() else { return false };
        // Reads that depend on nothing wait for the memory together.
        for timeout in timeouts {
            std::hint::black_box(core.wheel.linked(timeout));
        }
        timeouts.iter().for_each(|timeout| self.cancel_in(&mut core, timeout));
        self.unlock(core);
        true
    }

    #[inline]
    fn cancel_in(&self, core: &mut Core, timeout: &Timeout) {
        // A timeout of an earlier lease has left with it.
        if core.generation == timeout.shard_id().generation {
            self.cancelled.add(1);
            if let Some(context) = &core.context {
                context.release_permit();
            }
            if let Some(linked) = core.wheel.remove(timeout) {
                timeout.take_over(linked);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn unlink_by_request(&self, timeout: &Timeout) {
        let request = Request { timeout: timeout.clone(), tick: NO_TICK };
        if let Err(Pushed::Full(request)) = self.request(request, For::Cancelled) {
            let mut core = self.lock.lock();
            self.cancel_in(&mut core, &request.timeout);
            self.unlock(core);
        }
    }

    /// `Err`: not accepted, the variant says why.
    pub(super) fn request(&self, request: Request, what: For) -> Result<(), Pushed> {
        match self.inbox.push(request, what) {
            Pushed::Accepted(None) => Ok(()),
            Pushed::Accepted(Some((context, tick))) => {
                context.alarm.wake_before(tick);
                Ok(())
            }
            refused => Err(refused),
        }
    }
}
