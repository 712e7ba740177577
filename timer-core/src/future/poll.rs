//! The poll of a [`Sleep`].

use super::Sleep;
use super::registration::{Registration, WakerId, clone, discard};
use crate::clock;
use crate::deadline::NO_TICK;
use crate::engine::engine_of;
use crate::entry::state::{Cancel, State};
use crate::entry::{ShardId, Timeout, Wakeup};
use crate::error::RejectReason;
use crate::handle::fallback;
use crate::shard::contain;
use crate::worker;
use core::pin::Pin;
use core::task::{Context, Poll};

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.try_poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(()),
            Poll::Ready(Err(_)) => self.change_timer(cx),
        }
    }
}

impl Sleep {
    /// Polls the future. Returns an error if its timer refuses the deadline or was stopped.
    #[inline]
    pub(crate) fn try_poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RejectReason>> {
        let Some(Registration { entry, waker }) = &self.registration else { return self.register(cx) };
        match entry.state().state() {
            State::Waiting if *waker == WakerId::of(cx.waker()) => Poll::Pending,
            State::Waiting => self.change_waker(cx),
            State::Fired | State::Expired => Poll::Ready(Ok(())),
            _ => Poll::Ready(Err(RejectReason::Stopped)),
        }
    }

    /// Performs step 7, which registers the deadline with another timer. If that refuses it as
    /// well, the next poll tries again.
    #[cold]
    fn change_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_virtual {
            return Poll::Pending;
        }
        loop {
            let mut sleep = fallback().sleep_until(self.deadline());
            return match sleep.try_poll(cx) {
                // The timer of the process was stopped since, so the next one is another.
                Poll::Ready(Err(RejectReason::Stopped)) => continue,
                Poll::Ready(Err(_)) => Poll::Pending,
                Poll::Ready(Ok(())) => Poll::Ready(()),
                Poll::Pending => {
                    *self = sleep;
                    Poll::Pending
                }
            };
        }
    }

    /// Performs step 1, the first poll for this deadline.
    #[inline]
    fn register(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RejectReason>> {
        let Some(block) = self.block else { return Poll::Ready(self.poll_without_shard()) };
        let (shard, id) = block.local_shard();
        // A far deadline does not need an exact reading.
        let Some(due_by) = shard.due_by_if_open(id, self.deadline.nanos()) else {
            return Poll::Ready(Err(RejectReason::Stopped));
        };
        if self.deadline.is_due(due_by) {
            return Poll::Ready(Ok(()));
        }
        if !self.started {
            start_worker(id)?;
            self.started = true;
        }
        let Some((clone, waker)) = clone(cx.waker(), id) else { return Poll::Pending };
        let (entry, linked) = Timeout::new(id, self.deadline, Wakeup(clone));
        let Some(wake_before) = shard.schedule(linked, due_by) else { return Poll::Ready(Err(refuse(&entry))) };
        shard.wake(id, wake_before);
        self.registration = Some(Registration { entry, waker });
        Poll::Pending
    }

    #[cold]
    fn poll_without_shard(&self) -> Result<(), RejectReason> {
        if self.deadline.is_due(clock::now()) { Ok(()) } else { Err(RejectReason::TooManyTimers) }
    }

    /// Performs step 2, a poll with another waker.
    ///
    /// The new entry takes over the count and the permit of the old one, so a change of the waker
    /// cannot be refused because of the timer's bound. If the shard is closed, the old entry is
    /// counted as cancelled.
    #[cold]
    fn change_waker(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RejectReason>> {
        let Some(Registration { entry: former, .. }) = &self.registration else { return Poll::Pending };
        let id = former.shard_id();
        let Some((clone, waker)) = clone(cx.waker(), id) else { return Poll::Pending };
        let (entry, linked) = Timeout::new(id, self.deadline, Wakeup(clone));
        let (cancel, right) = former.decide_cancel();
        if cancel == Cancel::Lost {
            discard(&entry);
            let is_stopped = former.is_cancelled();
            return Poll::Ready(if is_stopped { Err(RejectReason::Stopped) } else { Ok(()) });
        }
        let former_waker = right.and_then(|right| right.into_job::<Wakeup>());
        let shard = former.shard();
        let tick = former.context().map(|context| context.resolution.tick_from(self.deadline, context.due_by()));
        let polled = match tick.map_or(Err(RejectReason::Stopped), |tick| shard.submit(linked, tick)) {
            Ok(()) => {
                let _ = shard.submit(former.clone(), NO_TICK);
                self.registration = Some(Registration { entry, waker });
                Poll::Pending
            }
            Err(reason) => {
                former.finish_cancel(cancel);
                discard(&entry);
                Poll::Ready(Err(reason))
            }
        };
        contain(id, || drop(former_waker));
        polled
    }
}

/// Starts the worker, because the system refused its thread when the future was made.
#[cold]
fn start_worker(id: ShardId) -> Result<(), RejectReason> {
    worker::start(&engine_of(id).ok_or(RejectReason::Stopped)?)
}

/// Returns the reason why the timer refuses an entry, and drops the waker in it. A refusal by the
/// timer's bound is counted.
#[cold]
fn refuse(entry: &Timeout) -> RejectReason {
    discard(entry);
    let Some(context) = entry.context() else { return RejectReason::Stopped };
    let reason = context.refusal();
    if reason != RejectReason::Stopped {
        context.counters.rejected.add_contended(1);
    }
    reason
}
