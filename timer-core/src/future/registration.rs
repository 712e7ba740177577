//! The registration of one future: its deadline, and the entry that waits for it.

use crate::clock;
use crate::entry::state::{Cancel, State};
use crate::entry::{ShardId, Timeout, Wakeup};
use crate::error::RejectReason;
use crate::shard::{BlockId, Shard, shard_of};
use crate::time::{Deadline, NO_TICK, Nanos};
use crate::timer::engine_of;
use crate::worker;
use core::task::{Context, Poll, Waker};
use std::time::Instant;
use timer_executor::panics;

/// The state of a [`super::Sleep`]. The other futures contain a `Sleep`.
pub(super) struct Registration {
    /// The name of the timer's shards. `None` for a timer that has no shards.
    block: Option<BlockId>,
    /// Whether the timer had a worker, or needed none, when the future was made.
    started: bool,
    deadline: Deadline,
    /// The entry for this deadline. `None` until a poll has to wait.
    entry: Option<Timeout>,
    waker: WakerId,
}

/// Tells a waker from others, as [`Waker::will_wake`] does, without owning one.
///
/// No other waker can have the data of the clone in the entry while that clone exists. The waker
/// from which it was cloned may be gone, and another one may have its address.
#[derive(Clone, Copy, PartialEq, Eq)]
struct WakerId {
    data: usize,
    vtable: usize,
}

impl WakerId {
    const NONE: WakerId = WakerId { data: 0, vtable: 0 };

    /// Returns the identity by which to recognize `given` while its `clone` is in the entry.
    ///
    /// If both have the same data, that data lives as long as the clone, so `given` itself is
    /// recognized, even if the vtables differ. Otherwise only the clone is.
    fn kept(given: &Waker, clone: &Waker) -> Self {
        let (given, clone) = (Self::of(given), Self::of(clone));
        if given.data == clone.data { given } else { clone }
    }

    #[inline]
    fn of(waker: &Waker) -> Self {
        Self { data: waker.data().addr(), vtable: std::ptr::from_ref(waker.vtable()).addr() }
    }
}

impl Registration {
    #[inline]
    pub(super) fn new(block: Option<BlockId>, started: bool, deadline: Deadline) -> Self {
        Self { block, started, deadline, entry: None, waker: WakerId::NONE }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Returns the deadline as an instant.
    pub(super) fn instant(&self) -> Instant {
        clock::instant(self.deadline.nanos())
    }

    /// Returns the length of the timer's tick. Returns 0 on virtual time and once the timer is
    /// gone.
    #[cold]
    pub(super) fn tick_nanos(&self) -> Nanos {
        let context = self.block.and_then(|block| {
            let (shard, id) = block.local_shard();
            shard.context(id)
        });
        context.map_or(0, |context| context.resolution.tick_nanos())
    }

    /// Returns the present of the timer. Once the timer is gone, that is the present of the system.
    pub(super) fn now(&self) -> Nanos {
        let local_now = || {
            let (shard, id) = self.block?.local_shard();
            shard.now_of(id)
        };
        match &self.entry {
            Some(entry) => entry.now(),
            None => local_now().unwrap_or_else(clock::now),
        }
    }

    /// Fetches the entry into the cache, for a poll or a drop that follows soon.
    #[inline]
    pub(super) fn prefetch(&self) {
        if let Some(entry) = &self.entry {
            entry.prefetch();
        }
    }

    /// Returns `true` if the deadline has come. A poll then returns `Ok`, unless the timer was
    /// stopped before.
    pub(super) fn is_elapsed(&self) -> bool {
        let has_fired = |entry: &Timeout| matches!(entry.state().state(), State::Fired | State::Expired);
        self.entry.as_ref().is_some_and(has_fired) || self.deadline.is_due(self.now())
    }

    /// Moves the future to another deadline. `is_due` says whether that is not after `now`.
    #[inline]
    pub(super) fn reset(&mut self, deadline: Deadline, now: Nanos, is_due: bool) {
        self.deadline = deadline;
        let has_fired = |entry: &Timeout| !entry.reset_to(deadline, now, is_due) && !entry.is_cancelled();
        if self.entry.as_ref().is_some_and(has_fired) {
            // The next poll schedules a new entry. One that `stop` has cancelled stays, so that the
            // poll reports the stop.
            self.entry = None;
        }
    }

    #[inline]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RejectReason>> {
        let Some(entry) = &self.entry else { return self.register(cx) };
        match entry.state().state() {
            State::Waiting if self.waker == WakerId::of(cx.waker()) => Poll::Pending,
            State::Waiting => self.change_waker(cx),
            State::Fired | State::Expired => Poll::Ready(Ok(())),
            _ => Poll::Ready(Err(RejectReason::Stopped)),
        }
    }

    /// Performs step 1, the first poll for this deadline.
    #[inline]
    fn register(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RejectReason>> {
        let Some(block) = self.block else { return Poll::Ready(self.poll_without_shard()) };
        let (shard, id) = block.local_shard();
        if !shard.serves(id) {
            return Poll::Ready(Err(RejectReason::Stopped));
        }
        // A far deadline does not need an exact reading.
        let now = shard.present().now_beside(self.deadline.nanos());
        if self.deadline.is_due(now) {
            // Another timer may lease the shard by now, and the reading may be its time.
            return Poll::Ready(if shard.serves(id) { Ok(()) } else { Err(RejectReason::Stopped) });
        }
        if !self.started {
            if let Err(reason) = start_worker(id) {
                return Poll::Ready(Err(reason));
            }
            self.started = true;
        }
        let Some(waker) = clone(cx.waker(), id) else {
            wake_again(cx.waker());
            return Poll::Pending;
        };
        let kept = WakerId::kept(cx.waker(), &waker);
        match self.schedule(shard, id, now, waker) {
            Ok(()) => {
                self.waker = kept;
                Poll::Pending
            }
            Err(reason) => Poll::Ready(Err(reason)),
        }
    }

    #[cold]
    fn poll_without_shard(&self) -> Result<(), RejectReason> {
        if self.deadline.is_due(clock::now()) { Ok(()) } else { Err(RejectReason::TooManyTimers) }
    }

    #[inline]
    fn schedule(&mut self, shard: &Shard, id: ShardId, now: Nanos, waker: Waker) -> Result<(), RejectReason> {
        let (entry, linked) = Timeout::new(id, self.deadline, Wakeup(waker));
        match shard.schedule(linked, now) {
            Some(wake_before) => {
                shard.wake(id, wake_before);
                self.entry = Some(entry);
                Ok(())
            }
            None => {
                let reason = shard.context(id).map_or(RejectReason::Stopped, |context| context.refusal());
                refused(&entry, reason);
                Err(reason)
            }
        }
    }

    /// Performs step 2, a poll with another waker.
    ///
    /// The new entry takes over the count and the permit of the old one, so a change of the waker
    /// cannot be refused because of the timer's bound. If the shard is closed, the old entry is
    /// counted as cancelled.
    #[cold]
    fn change_waker(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RejectReason>> {
        let Some(former) = &self.entry else { return Poll::Pending };
        let id = former.shard_id();
        let Some(waker) = clone(cx.waker(), id) else {
            wake_again(cx.waker());
            return Poll::Pending;
        };
        let kept = WakerId::kept(cx.waker(), &waker);
        let (entry, linked) = Timeout::new(id, self.deadline, Wakeup(waker));
        let (cancel, right) = former.win_cancel();
        if cancel == Cancel::Lost {
            discard(&entry);
            let is_stopped = former.is_cancelled();
            return Poll::Ready(if is_stopped { Err(RejectReason::Stopped) } else { Ok(()) });
        }
        let former_waker = right.and_then(|right| right.into_job::<Wakeup>());
        let shard = former.shard();
        let tick = former.context().map(|context| context.resolution.tick_from(self.deadline, former.now()));
        let polled = match tick.map_or(Err(RejectReason::Stopped), |tick| shard.submit(linked, tick)) {
            Ok(()) => {
                let _ = shard.submit(former.clone(), NO_TICK);
                self.waker = kept;
                self.entry = Some(entry);
                Poll::Pending
            }
            Err(reason) => {
                former.finish_cancel(cancel);
                discard(&entry);
                Poll::Ready(Err(reason))
            }
        };
        drop_contained(former_waker, id);
        polled
    }
}

impl Drop for Registration {
    /// Performs step 4.
    #[inline]
    fn drop(&mut self) {
        let Some(entry) = &self.entry else { return };
        let (cancel, right) = entry.win_cancel();
        if entry.finish_cancel(cancel) {
            drop_contained(right.and_then(|right| right.into_job::<Wakeup>()), entry.shard_id());
        }
    }
}

/// Starts the worker, because the system refused its thread when the future was made.
#[cold]
fn start_worker(id: ShardId) -> Result<(), RejectReason> {
    worker::start(&engine_of(id).ok_or(RejectReason::Stopped)?)
}

/// Counts a refusal by the timer's bound, and drops the waker in an entry that no other thread has
/// seen.
#[cold]
fn refused(entry: &Timeout, reason: RejectReason) {
    if let (RejectReason::TooManyPending { .. }, Some(context)) = (reason, entry.context()) {
        context.counters.rejected.add_contended(1);
    }
    discard(entry);
}

/// Drops the waker in an entry that no other thread has seen.
fn discard(entry: &Timeout) {
    let waker = entry.win_cancel().1.and_then(|right| right.into_job::<Wakeup>());
    drop_contained(waker, entry.shard_id());
}

/// Clones a waker. Returns `None` and counts the panic if the waker panicked.
#[inline]
fn clone(waker: &Waker, id: ShardId) -> Option<Waker> {
    panics::catch(|| waker.clone()).inspect_err(|message| count_panic(message, id)).ok()
}

/// Asks for another poll. A panic of the waker goes no further.
#[cold]
fn wake_again(waker: &Waker) {
    panics::contain("a waker panicked", || waker.wake_by_ref());
}

/// Drops a waker while no lock is held. A panic of the waker is counted.
#[inline]
fn drop_contained(wakeup: Option<Wakeup>, id: ShardId) {
    let Some(wakeup) = wakeup else { return };
    if let Err(message) = panics::catch(|| drop(wakeup)) {
        count_panic(&message, id);
    }
}

#[cold]
fn count_panic(message: &panics::PanicMessage, id: ShardId) {
    if let Some(context) = shard_of(id).context(id) {
        context.task_panicked(message);
    }
}
