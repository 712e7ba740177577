//! One future's place in a timer: a deadline, an entry once it has waited, and whose waker is in it.

use crate::clock;
use crate::entry::state::State;
use crate::entry::{Claim, ShardId, Timeout, Wakeup};
use crate::error::RejectReason;
use crate::handle::Timer;
use crate::shard::{Arrival, LeaseId, Shard, shard_of};
use crate::time::{Deadline, Nanos};
use core::task::{Context, Poll, Waker};
use std::time::Instant;
use timer_executor::panics;

/// What [`super::Sleep`] is made of; the others are made of that.
pub(super) struct Registration {
    /// Where the timer is to be found; `None` for one that has no shards at all.
    lease: Option<LeaseId>,
    /// Whether the timer had a worker, or was to have none, when this was made.
    started: bool,
    /// Whether the entry's state is what has become of this deadline; else the next poll asks the clock, and sees to it.
    registered: bool,
    deadline: Deadline,
    /// From the first poll that waits on: one for all deadlines.
    entry: Option<Timeout>,
    waker: WakerId,
}

/// Tells a waker from others as [`Waker::will_wake`] does, without owning it. No other waker can have the data of the clone in the
/// entry while that is there; what it was cloned of may be gone, and another at its place.
#[derive(Clone, Copy, PartialEq, Eq)]
struct WakerId {
    data: usize,
    vtable: usize,
}

impl WakerId {
    /// By what to know `given` again while its `clone` is kept: as it is, if both have the same data, since that lives as long as the
    /// clone does, and the tables of the two may differ; else by the clone.
    fn kept(given: &Waker, clone: &Waker) -> Self {
        let (given, clone) = (Self::of(given), Self::of(clone));
        if given.data == clone.data { given } else { clone }
    }

    const NONE: WakerId = WakerId { data: 0, vtable: 0 };

    #[inline]
    fn of(waker: &Waker) -> Self {
        Self { data: waker.data().addr(), vtable: std::ptr::from_ref(waker.vtable()).addr() }
    }
}

impl Registration {
    #[inline]
    pub(super) fn new(lease: Option<LeaseId>, started: bool, deadline: Deadline) -> Self {
        Self { lease, started, registered: false, deadline, entry: None, waker: WakerId::NONE }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The deadline as people see it.
    pub(super) fn instant(&self) -> Instant {
        clock::instant(self.deadline.nanos())
    }

    /// The timer's present; when it is gone, the system's.
    pub(super) fn now(&self) -> Nanos {
        let shard = match (&self.entry, self.lease) {
            (Some(entry), _) => Some((shard_of(entry.shard_id()), entry.shard_id())),
            (None, lease) => lease.map(LeaseId::local_shard),
        };
        shard.and_then(|(shard, id)| shard.now_of(id)).unwrap_or_else(clock::now)
    }

    /// Whether the deadline has come: then a poll says so, unless the timer was stopped before.
    pub(super) fn is_elapsed(&self) -> bool {
        match &self.entry {
            Some(entry) if self.registered => match entry.state().state() {
                State::Fired | State::Expired => true,
                _ => self.deadline.is_due(self.now()),
            },
            _ => self.deadline.is_due(self.now()),
        }
    }

    /// Another deadline, `due` if it is not after `now`.
    #[inline]
    pub(super) fn reset(&mut self, deadline: Deadline, now: Nanos, due: bool) {
        self.deadline = deadline;
        if let Some(entry) = &self.entry
            && self.registered
            && !entry.reset_to(deadline, now, due)
        {
            // What has run is registered anew by the next poll; what `stop` has ended stays ended.
            self.registered = entry.is_cancelled();
        }
    }

    #[inline]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RejectReason>> {
        if let Some(entry) = &self.entry
            && self.registered
        {
            return match entry.state().state() {
                State::Waiting if self.waker == WakerId::of(cx.waker()) => Poll::Pending,
                State::Fired | State::Expired => Poll::Ready(Ok(())),
                State::Dying | State::Cancelled => Poll::Ready(Err(RejectReason::Stopped)),
                _ => self.change_waker(cx),
            };
        }
        self.register(cx)
    }

    /// Step 1: the first poll for this deadline.
    #[inline]
    fn register(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RejectReason>> {
        let Some(lease) = self.lease else { return Poll::Ready(self.without_place()) };
        let (shard, id) = lease.local_shard();
        if !shard.serves(id) {
            return Poll::Ready(Err(RejectReason::Stopped));
        }
        // A deadline that is far off is not worth an exact reading.
        let now = shard.present().now_beside(self.deadline.nanos());
        if self.deadline.is_due(now) {
            // Unless that was the time of another timer, which has the shard by now.
            return Poll::Ready(if shard.serves(id) { Ok(()) } else { Err(RejectReason::Stopped) });
        }
        if !self.started {
            if let Err(reason) = start(shard, id) {
                return Poll::Ready(Err(reason));
            }
            self.started = true;
        }
        let Some(waker) = clone(cx.waker(), id) else {
            wake_again(cx.waker());
            return Poll::Pending;
        };
        let kept = WakerId::kept(cx.waker(), &waker);
        let registered = match &self.entry {
            None => self.register_new(shard, id, now, waker),
            Some(_) => self.register_again(now, waker, cx),
        };
        match registered {
            Ok(()) => {
                self.waker = kept;
                Poll::Pending
            }
            Err(reason) => Poll::Ready(Err(reason)),
        }
    }

    #[cold]
    fn without_place(&self) -> Result<(), RejectReason> {
        if self.deadline.is_due(clock::now()) { Ok(()) } else { Err(RejectReason::TooManyTimers) }
    }

    #[inline]
    fn register_new(&mut self, shard: &Shard, id: ShardId, now: Nanos, waker: Waker) -> Result<(), RejectReason> {
        let (entry, linked) = Timeout::new(id, self.deadline, Wakeup(waker));
        if let Err(reason) = shard.register(linked, now, Arrival::New) {
            // No other thread has seen it.
            let wakeup = entry.win_cancel().1.and_then(|owned| owned.into_job::<Wakeup>());
            discard(wakeup, id);
            return Err(reason);
        }
        self.entry = Some(entry);
        self.registered = true;
        Ok(())
    }

    /// The entry has run: it waits once more.
    fn register_again(&mut self, now: Nanos, waker: Waker, cx: &Context<'_>) -> Result<(), RejectReason> {
        let Some(entry) = &self.entry else { return Ok(()) };
        let id = entry.shard_id();
        let mut claim = match Claim::new(entry, self.deadline) {
            Ok(claim) => claim,
            Err(state) => {
                discard(Some(Wakeup(waker)), id);
                if state == State::Fired {
                    // The owner of the turn is just about to take the former waker out.
                    wake_again(cx.waker());
                    return Ok(());
                }
                return Err(RejectReason::Stopped);
            }
        };
        let former = claim.put(Wakeup(waker));
        let registered = shard_of(id).register(entry.clone(), now, Arrival::Claimed);
        self.registered = registered.is_ok();
        let refused = if registered.is_err() { claim.take_back() } else { None };
        discard(former, id);
        discard::<Wakeup>(refused, id);
        registered
    }

    /// Step 2: the task has another waker.
    #[cold]
    fn change_waker(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RejectReason>> {
        let Some(entry) = &self.entry else { return Poll::Pending };
        let id = entry.shard_id();
        let Some(waker) = clone(cx.waker(), id) else {
            wake_again(cx.waker());
            return Poll::Pending;
        };
        let mut claim = match Claim::new(entry, self.deadline) {
            Ok(claim) => claim,
            Err(state) => {
                discard(Some(Wakeup(waker)), id);
                return Poll::Ready(if state == State::Cancelled { Err(RejectReason::Stopped) } else { Ok(()) });
            }
        };
        let kept = WakerId::kept(cx.waker(), &waker);
        let former = claim.put(Wakeup(waker));
        if !claim.was_waiting() {
            // It has run meanwhile.
            let unused = claim.take_back::<Wakeup>();
            discard(former, id);
            discard(unused, id);
            return Poll::Ready(Ok(()));
        }
        self.waker = kept;
        entry.state().release();
        // A turn, or `stop`, may have met it while it was claimed, and forgotten it.
        let linked = link(entry);
        discard(former, id);
        if linked {
            return Poll::Pending;
        }
        self.cancel();
        Poll::Ready(Err(RejectReason::Stopped))
    }

    /// Step 4.
    #[inline]
    fn cancel(&self) {
        let Some(entry) = &self.entry else { return };
        let (cancel, owned) = entry.win_cancel();
        if entry.settle_cancel(cancel) {
            discard(owned.and_then(|owned| owned.into_job::<Wakeup>()), entry.shard_id());
        }
    }
}

impl Drop for Registration {
    #[inline]
    fn drop(&mut self) {
        if self.registered {
            self.cancel();
        }
    }
}

/// Links an entry that waits, if it is not linked; `false` if its timer is stopped.
fn link(entry: &Timeout) -> bool {
    let shard = shard_of(entry.shard_id());
    let Some(context) = shard.context_of(entry) else { return false };
    let tick = context.resolution.tick_from(entry.state().deadline(), shard.present().now());
    shard.submit(entry.clone(), tick).is_ok()
}

/// The system refused the worker's thread when the future was made: tries again.
#[cold]
fn start(shard: &Shard, id: ShardId) -> Result<(), RejectReason> {
    let context = shard.context_by_id(id).ok_or(RejectReason::Stopped)?;
    let timer = Timer::of_context(&context).ok_or(RejectReason::Stopped)?;
    timer.start_worker()
}

/// A waker's clone; `None` if it panicked, which is counted.
#[inline]
fn clone(waker: &Waker, id: ShardId) -> Option<Waker> {
    panics::catch(|| waker.clone()).inspect_err(|message| panicked(message, id)).ok()
}

/// Asks for another poll; a panic in that goes no further.
#[cold]
fn wake_again(waker: &Waker) {
    panics::contain("a waker panicked", || waker.wake_by_ref());
}

/// Drops a waker, with nothing held; a panic of it is counted.
#[inline]
fn discard<T>(wakeup: Option<T>, id: ShardId) {
    if let Some(wakeup) = wakeup
        && let Err(message) = panics::catch(|| drop(wakeup))
    {
        panicked(&message, id);
    }
}

#[cold]
fn panicked(message: &panics::PanicMessage, id: ShardId) {
    if let Some(context) = shard_of(id).context_by_id(id) {
        context.task_panicked(message);
    }
}
