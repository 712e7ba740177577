//! The work of callers in a shard. They link new entries, link others earlier, and unlink cancelled
//! ones.
//!
//! Each call takes the shard's lock for its own work. If the lock is taken, the call leaves a
//! request in the [inbox](super::inbox) instead. If it may not leave another request, it waits at
//! the gate of the lock, unless another caller waits there.

use super::inbox::{PushOutcome, Request, RequestKind};
use super::{Core, Shard};
use crate::deadline::{Deadline, IMMEDIATE, NO_TICK, Nanos};
use crate::entry::{ShardId, Timeout};
use crate::error::RejectReason;
use crate::sync::{Guard, Ordering, pause, yield_now};
use std::time::Duration;

/// The time for which a call sleeps after it has left a request beyond the quota. Linux extends it
/// to about 0.1 ms.
const CROWDED_PAUSE: Duration = Duration::from_micros(20);

impl Shard {
    /// Accepts a new entry at `now`. `timeout` is the reference of the wheel, so the caller keeps
    /// another.
    ///
    /// Under the lock, or under the inbox's lock if it leaves a request, the call checks the lease,
    /// acquires a permit of the timer's bound and counts the entry. It neither counts nor links an
    /// entry that is refused. Returns the tick before which the caller must wake the worker, or
    /// [`NO_TICK`]. Returns `None` if the timer refuses the entry
    /// ([`TimerContext::refusal`](crate::timer_context::TimerContext::refusal)).
    // An `Option` and not a `Result`, because it is returned in registers.
    #[inline]
    pub(crate) fn schedule(&self, timeout: Timeout, now: Nanos) -> Option<u64> {
        match self.lock.try_lock() {
            Some(core) => self.schedule_locked(core, timeout, now),
            None => self.schedule_by_request(timeout, now),
        }
    }

    /// Accepts new entries, at most [`MAX_PER_LOCK`](super::MAX_PER_LOCK), under one lock. Returns
    /// one result for each. Returns `None` and does nothing if the lock is taken.
    pub(crate) fn try_schedule_all(&self, timeouts: &mut Vec<Timeout>, now: Nanos) -> Option<Vec<Option<u64>>> {
        let mut results = Vec::with_capacity(timeouts.len());
        let mut core = self.lock.try_lock()?;
        results.extend(timeouts.drain(..).map(|timeout| self.accept(&mut core, timeout, now)));
        self.unlock(core);
        Some(results)
    }

    #[inline]
    fn schedule_locked(&self, mut core: Guard<'_, Core>, timeout: Timeout, now: Nanos) -> Option<u64> {
        let accepted = self.accept(&mut core, timeout, now);
        self.unlock(core);
        accepted
    }

    #[inline]
    fn accept(&self, core: &mut Core, timeout: Timeout, now: Nanos) -> Option<u64> {
        let Core { lease, wheel } = core;
        let context = lease.serving(timeout.shard_id()).filter(|context| context.acquire_permit())?;
        self.scheduled.add(1);
        let tick = context.resolution.tick_from(timeout.state().deadline(), now);
        Some(self.link(wheel, tick, timeout, || context.resolution.tick_at(context.present.due_by(now))))
    }

    #[cold]
    #[inline(never)]
    fn schedule_by_request(&self, timeout: Timeout, now: Nanos) -> Option<u64> {
        // `push` computes the tick.
        match self.request_or_lock(Request { timeout, tick: IMMEDIATE }, RequestKind::New) {
            Ok(is_accepted) => is_accepted.then_some(NO_TICK),
            Err((core, request)) => self.schedule_locked(core, request.timeout, now),
        }
    }

    /// Leaves a request and wakes the worker for it. Returns `false` if the request is refused.
    ///
    /// # Errors
    ///
    /// Returns the request with the lock if the caller has to do the work itself.
    fn request_or_lock(&self, request: Request, kind: RequestKind) -> Result<bool, (Guard<'_, Core>, Request)> {
        let mut has_waiter = false;
        let mut outcome = self.inbox.push(request, kind, false);
        if let PushOutcome::Full(request) = outcome {
            if let Some(core) = self.lock.lock_if_first() {
                return Err((core, request));
            }
            has_waiter = true;
            outcome = self.inbox.push(request, kind, true);
        }
        match outcome {
            PushOutcome::Accepted { wake, may_pause } => {
                if let Some((context, tick)) = wake {
                    context.alarm.wake_before(tick);
                }
                if may_pause {
                    pause(CROWDED_PAUSE);
                } else if has_waiter {
                    yield_now();
                }
                Ok(true)
            }
            PushOutcome::Full(request) => Err((self.lock.lock(), request)),
            PushOutcome::Refused => Ok(false),
        }
    }

    /// Makes the wheel agree with the state word of an entry. Links an entry that waits under
    /// `tick` or an earlier tick, and unlinks an entry that has ended.
    ///
    /// The call neither counts the entry nor acquires a permit, even if the entry was never linked
    /// before.
    ///
    /// # Errors
    ///
    /// [`RejectReason::Stopped`] if the shard is closed or has been leased to another timer since.
    pub(crate) fn submit(&self, timeout: Timeout, tick: u64) -> Result<(), RejectReason> {
        let id = timeout.shard_id();
        let request = Request { timeout, tick };
        let (mut core, request) = match self.lock.try_lock() {
            Some(core) => (core, request),
            None => match self.request_or_lock(request, RequestKind::Moved) {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(RejectReason::Stopped),
                Err(locked) => locked,
            },
        };
        let Some(context) = core.lease.serving(id).cloned() else {
            self.unlock(core);
            return Err(RejectReason::Stopped);
        };
        let mut drop_after_unlock = Vec::new();
        let wake_before = self.reconcile(&mut core, request, &mut drop_after_unlock);
        self.unlock(core);
        if wake_before != NO_TICK {
            context.alarm.wake_before(wake_before);
        }
        Ok(())
    }

    /// Clears the flag `UNLINKED` of an entry that is linked in time. Called when `next` is lowered
    /// and the worker is awake, because other threads rely on both if the flag is clear. Does
    /// nothing if the lock is taken.
    pub(crate) fn confirm_link(&self, timeout: &Timeout) {
        let Some(core) = self.lock.try_lock() else { return };
        let context = core.lease.context(timeout.shard_id());
        if let Some((linked, context)) = core.wheel.linked(timeout).zip(context) {
            timeout.state().set_linked(|deadline| context.resolution.tick_of(deadline) >= linked);
        }
        self.unlock(core);
    }

    /// Counts a timeout that its caller has cancelled while it waited, and removes it from the
    /// wheel.
    #[inline]
    pub(crate) fn unlink_cancelled(&self, timeout: &Timeout) {
        let Some(mut core) = self.lock.try_lock() else { return self.unlink_by_request(timeout) };
        self.unlink_locked(&mut core, timeout);
        self.unlock(core);
    }

    /// Does the same for several timeouts, at most [`MAX_PER_LOCK`](super::MAX_PER_LOCK), under one
    /// lock. Returns `false` and does nothing if the lock is taken.
    pub(crate) fn try_unlink_all(&self, timeouts: &[&Timeout]) -> bool {
        let Some(mut core) = self.lock.try_lock() else { return false };
        timeouts.iter().for_each(|timeout| self.unlink_locked(&mut core, timeout));
        self.unlock(core);
        true
    }

    #[inline]
    fn unlink_locked(&self, core: &mut Core, timeout: &Timeout) {
        if self.count_cancelled(core, timeout) && core.wheel.vacate(timeout, || true) {
            timeout.take_over();
        }
    }

    /// Returns `false` if the entry is of an earlier lease, with which it has left the wheel.
    #[inline]
    fn count_cancelled(&self, core: &Core, timeout: &Timeout) -> bool {
        let Some(context) = core.lease.context(timeout.shard_id()) else { return false };
        self.cancelled.add(1);
        context.release_permit();
        true
    }

    /// Does the same as [`unlink_cancelled`](Self::unlink_cancelled) for a timeout that may be in no
    /// wheel.
    #[cold]
    pub(crate) fn unlink_if_linked(&self, timeout: &Timeout) {
        let Some(mut core) = self.lock.try_lock() else { return self.unlink_by_request(timeout) };
        self.find_and_unlink(&mut core, timeout);
        self.unlock(core);
    }

    fn find_and_unlink(&self, core: &mut Core, timeout: &Timeout) {
        if self.count_cancelled(core, timeout) {
            drop(core.wheel.remove(timeout));
        }
    }

    #[cold]
    #[inline(never)]
    fn unlink_by_request(&self, timeout: &Timeout) {
        let request = Request { timeout: timeout.clone(), tick: NO_TICK };
        if let Err((mut core, request)) = self.request_or_lock(request, RequestKind::Cancelled) {
            self.find_and_unlink(&mut core, &request.timeout);
            self.unlock(core);
        }
    }

    /// Moves an entry that waits to an earlier deadline, under one lock. Returns `false` and
    /// changes nothing if the lock is taken, if the worker may have to be woken for the deadline,
    /// or if the entry is not linked.
    ///
    /// The entry is at its location and waits without the flag `UNLINKED`, so it is in the wheel
    /// while this thread holds the lock. The thread changes the state word first, and then links
    /// the entry under the new tick. Between the two, the word promises an earlier link than there
    /// is. No turn and no cancel finds that out, because they need the lock for their work in the
    /// wheel. A reset to later may rely on the promise, which holds when this thread unlocks. A
    /// reset to earlier links the entry itself.
    pub(crate) fn move_earlier(&self, timeout: &Timeout, deadline: Deadline, now: Nanos) -> bool {
        let Some(mut core) = self.lock.try_lock() else { return false };
        let is_moved = self.move_locked(&mut core, timeout, deadline, now);
        self.unlock(core);
        is_moved
    }

    #[inline]
    fn move_locked(&self, core: &mut Core, timeout: &Timeout, deadline: Deadline, now: Nanos) -> bool {
        let Core { lease, wheel } = core;
        let Some(context) = lease.serving(timeout.shard_id()) else { return false };
        let tick = context.resolution.tick_from(deadline, now);
        // ORDERING: Relaxed, as in `link`.
        let may_need_wake = tick < self.next.load(Ordering::Relaxed);
        if may_need_wake || !wheel.vacate(timeout, || timeout.state().move_linked(deadline)) {
            return false;
        }
        let due_by = || context.resolution.tick_at(context.present.due_by(now));
        self.link(wheel, tick, timeout.wheel_reference(), due_by);
        true
    }

    /// Wakes the worker of the timer that leases the shard under the name `id`, if it would sleep
    /// past `tick`.
    #[inline]
    pub(crate) fn wake(&self, id: ShardId, tick: u64) {
        if tick != NO_TICK {
            if let Some(context) = self.context(id) {
                context.alarm.wake_before(tick);
            }
        }
    }
}
