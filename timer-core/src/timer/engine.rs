//! The timer itself: its shards, its executor, and the way in for new timeouts.
//!
//! Thread, manual and driven are this engine; they differ in what owns the turn, in the resolution and the
//! number of shards: on virtual time there is one.

use super::life::Life;
use crate::backpressure::Backpressure;
use crate::clock::{self, Present};
use crate::config::{Config, DrivenBy, Hook, SpreadBy};
use crate::context::{Context, deadline_after};
use crate::counters::{Limit, TimerStats};
use crate::entry::{Job, Timeout};
use crate::error::RejectReason;
use crate::resolution::Resolution;
use crate::shard::{Closed, Lease, LeaseId, MAX_PER_LOCK, Serving, Shard, pool};
use crate::sync::{Arc, cpus, first_warning, timer_born, timer_died};
use crate::time::{Deadline, NO_TICK, Nanos};
use std::time::Duration;
use timer_executor::TaskExecutor;

/// So many timers may live at once before people are told that one is enough.
const MANY_TIMERS: usize = 64;

/// No timer has more shards by itself.
const MAX_SHARDS: usize = 256;

pub(crate) struct Engine {
    pub(crate) context: Arc<Context>,
    lease: Lease,
    spread: SpreadBy,
    lease_id: Option<LeaseId>,
    /// `None`: the owner of the turn runs the tasks.
    pub(crate) executor: Option<Box<dyn TaskExecutor>>,
    /// Whether a task has run when the executor has taken it, as it says of itself; asked once.
    pub(crate) runs_inline: bool,
    /// Tasks that hold the worker for longer are worth a warning.
    pub(crate) tick_nanos: Nanos,
    /// Called on the worker's thread at its start.
    pub(crate) on_worker_start: Option<Hook>,
    pub(super) driven_by: DrivenBy,
    pub(super) life: Life,
}

impl Engine {
    pub(crate) fn new(
        config: Config,
        executor: Option<Box<dyn TaskExecutor>>,
        driven_by: DrivenBy,
        worker_body: fn(Arc<Engine>),
    ) -> Self {
        let by_hand = driven_by == DrivenBy::ManualDriver;
        let shards = if by_hand { 1 } else { config.shards.unwrap_or_else(|| cpus().min(MAX_SHARDS)) };
        let lease = pool().lease(shards);
        let present = Present::real();
        let tick_nanos = u64::try_from(config.tick.as_nanos()).unwrap_or(u64::MAX);
        let resolution = if by_hand {
            // Virtual time begins now, and its ticks begin at 0.
            present.set(clock::now());
            lease.shards().iter().for_each(|shard| shard.present().set(present.now()));
            Resolution::Exact(Deadline::down(present.now()).to_bits())
        } else {
            Resolution::ticks(tick_nanos)
        };
        let limit = config.max_pending.map(Limit::new);
        let backpressure = Backpressure::new(config.may_sleep);
        let context = Context::new(config.name, present, resolution, config.missed_runs, limit, backpressure);
        let context = Arc::new(context);
        lease.open(|| Serving { context: context.clone(), wheel: config.wheel });
        let runs_inline = executor.as_ref().is_none_or(|executor| executor.runs_inline());
        let live = timer_born();
        if live > MANY_TIMERS && first_warning() {
            context.trace(|| {
                tracing::warn!(
                    timer = %context.name,
                    live,
                    "many timers live at once: one timer serves a whole process, share it by cloning"
                );
            });
        }
        Self {
            life: Life::new(driven_by != DrivenBy::Worker, worker_body),
            spread: config.spread,
            lease_id: lease.id(config.spread),
            context,
            lease,
            executor,
            runs_inline,
            tick_nanos,
            on_worker_start: config.on_worker_start,
            driven_by,
        }
    }

    #[inline]
    pub(crate) fn shards(&self) -> &[&'static Shard] {
        self.lease.shards()
    }

    /// By what a future finds the shards, without holding the timer; `None` if the timer has none at all.
    #[inline]
    pub(crate) fn lease_id(&self) -> Option<LeaseId> {
        self.lease_id
    }

    /// Whether the worker runs, or there is to be none.
    #[inline]
    pub(crate) fn has_started(&self) -> bool {
        self.life.has_started()
    }

    /// The shard for the calling thread; `None` if the timer has none at all.
    #[inline]
    fn local_shard(&self) -> Option<&'static Shard> {
        let shards = self.shards();
        shards.get(self.spread.number() & shards.len().wrapping_sub(1)).copied()
    }

    /// Accepts a timeout, or gives the task back.
    #[inline]
    pub(crate) fn schedule<J: Job>(
        self: &Arc<Self>,
        job: J,
        deadline: impl FnOnce(Nanos) -> Deadline,
    ) -> Result<Timeout, (J, RejectReason)> {
        let shard = match self.admit() {
            Ok(shard) => shard,
            Err(reason) => return Err(self.reject(job, reason)),
        };
        let context = &*self.context;
        let now = context.now();
        let deadline = deadline(now);
        let (timeout, linked) = Timeout::new(shard.id(), deadline, job);
        match shard.schedule(linked, context.resolution.tick_from(deadline, now), now, context) {
            Ok(()) => {
                context.backpressure.after_scheduling(now, 1);
                Ok(timeout)
            }
            Err(closed) => self.take_back(timeout, closed),
        }
    }

    /// Accepts the timeout `delay` from now.
    #[inline]
    pub(crate) fn schedule_after<J: Job>(
        self: &Arc<Self>,
        job: J,
        delay: Duration,
    ) -> Result<Timeout, (J, RejectReason)> {
        self.schedule(job, |now| deadline_after(now, delay))
    }

    /// Accepts as many of `jobs` as it can, [`MAX_PER_LOCK`] at the most: one reading of the clock, one lock.
    pub(crate) fn schedule_chunk<J: Job>(
        self: &Arc<Self>,
        jobs: &mut Vec<(Duration, J)>,
        out: &mut Vec<Result<Timeout, (J, RejectReason)>>,
    ) {
        let (mut linked, mut accepted) = (Vec::with_capacity(MAX_PER_LOCK), Vec::with_capacity(MAX_PER_LOCK));
        let context = &*self.context;
        let now = context.now();
        let mut used = None;
        for (delay, job) in jobs.drain(..) {
            match self.admit() {
                Ok(shard) => {
                    let shard = *used.get_or_insert(shard);
                    let deadline = deadline_after(now, delay);
                    let (timeout, reference) = Timeout::new(shard.id(), deadline, job);
                    linked.push((reference, context.resolution.tick_from(deadline, now)));
                    accepted.push(out.len());
                    out.push(Ok(timeout));
                }
                Err(reason) => out.push(Err(self.reject(job, reason))),
            }
        }
        let Some(shard) = used else { return };
        if !shard.try_schedule_all(&mut linked, now, context) {
            for (at, (reference, tick)) in accepted.into_iter().zip(linked) {
                if let Err(closed) = shard.schedule(reference, tick, now, context)
                    && let Ok(timeout) = &out[at]
                {
                    out[at] = self.take_back(timeout.clone(), closed);
                }
            }
        }
    }

    /// Slows the caller down if the worker is late. Called once after all chunks of a call that has scheduled `n` timeouts.
    pub(crate) fn slow_down(&self, n: usize) {
        self.context.backpressure.after_scheduling(self.context.now(), n);
    }

    /// For the driver of virtual time: it is `now`.
    pub(crate) fn set_present(&self, now: Nanos) {
        self.context.present.set(now);
        self.shards().iter().for_each(|shard| shard.present().set(now));
    }

    /// A permit and a shard for one timeout more.
    #[inline]
    fn admit(self: &Arc<Self>) -> Result<&'static Shard, RejectReason> {
        if !self.life.has_started() {
            self.start()?;
        }
        let shard = self.local_shard().ok_or(RejectReason::TooManyTimers)?;
        if let Some(limit) = &self.context.limit
            && !limit.try_acquire()
        {
            return Err(if self.context.is_stopped() {
                RejectReason::Stopped
            } else {
                RejectReason::TooManyPending { max: limit.max() }
            });
        }
        Ok(shard)
    }

    /// The shard would not have it: nothing else has seen it, so the task is there.
    #[cold]
    fn take_back<J: Job>(&self, timeout: Timeout, closed: Closed) -> Result<Timeout, (J, RejectReason)> {
        drop(closed);
        let job = timeout.win_cancel().1.and_then(|owned| owned.into_job());
        self.context.release_permit();
        match job {
            Some(job) => Err(self.reject(job, RejectReason::Stopped)),
            None => Ok(timeout),
        }
    }

    #[cold]
    pub(crate) fn reject<J>(&self, job: J, reason: RejectReason) -> (J, RejectReason) {
        self.context.counters.rejected.add_contended(1);
        (job, reason)
    }

    /// For the sleeper, after arming the alarm: the earliest tick at which something may be due.
    pub(crate) fn next_for_sleeper(&self) -> u64 {
        self.shards().iter().map(|shard| shard.next_to_visit()).min().unwrap_or(NO_TICK)
    }

    /// The earliest tick at which something may be due, as far as the shards are quiescent.
    pub(crate) fn next(&self) -> u64 {
        self.shards().iter().map(|shard| shard.next()).min().unwrap_or(NO_TICK)
    }

    /// Whether the owner of the turn has asked for no lock in vain.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.shards().iter().all(|shard| shard.is_quiescent())
    }

    pub(crate) fn pending(&self) -> u64 {
        match &self.context.limit {
            Some(limit) => limit.acquired() as u64,
            None => {
                // Ends before starts: what is seen to have ended is seen to have started.
                let ended = self.context.counters.expired() + self.cancelled();
                self.scheduled().saturating_sub(ended)
            }
        }
    }

    fn cancelled(&self) -> u64 {
        let here: u64 = self.shards().iter().map(|shard| shard.cancelled()).sum();
        here + self.context.counters.cancelled_elsewhere.get()
    }

    fn scheduled(&self) -> u64 {
        self.shards().iter().map(|shard| shard.scheduled()).sum()
    }

    pub(crate) fn stats(&self) -> TimerStats {
        let counters = &self.context.counters;
        let (expired, cancelled) = (counters.expired(), self.cancelled());
        let (queued, running) = counters.in_flight.get();
        let inline_lag = counters.inline_lag.snapshot();
        TimerStats {
            pending: self.pending(),
            scheduled: self.scheduled(),
            expired,
            cancelled,
            rejected: counters.rejected.get(),
            task_panics: counters.task_panics.get(),
            executor_rejections: counters.executor_rejections.get(),
            turns: counters.turns.get(),
            runs: counters.runs.get(),
            cascaded: counters.cascaded.get(),
            inbox_handovers: self.shards().iter().map(|shard| shard.requests()).sum(),
            shards: self.shards().len() as u64,
            longest_batch: Duration::from_nanos(counters.longest_batch.get(self.context.now())),
            tick_lag: counters.tick_lag.snapshot(),
            timeout_lag: counters.handover_lag.snapshot().merged(&inline_lag),
            start_lag: counters.start_lag.snapshot().merged(&inline_lag),
            queued,
            running,
            in_flight: queued + running,
            max_pending: self.context.limit.as_ref().map(Limit::max),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.end();
        timer_died();
    }
}
