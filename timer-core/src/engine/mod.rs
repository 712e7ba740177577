//! The engine of a timer. It owns the shards and the executor, schedules timeouts, runs their
//! tasks, starts and stops.
//!
//! All timers use this engine, whether they have a worker thread, a driver or a manual driver. They
//! differ in the thread that takes the turn, in the resolution, and in the number of shards, which
//! is one on virtual time.

mod drain;
mod lifecycle;
mod run;
mod stop;
mod unclaimed;
mod unprocessed;

pub(crate) use run::{QueuedTask, run, run_abandoned, run_one_abandoned};
pub use unprocessed::{StopReport, Unprocessed};

use crate::clock::{self, Present};
use crate::config::{Config, DrivenBy, Hook};
use crate::counters::TimerStats;
use crate::deadline::{Deadline, NO_TICK, Nanos};
use crate::entry::{Job, ShardId, Timeout};
use crate::error::RejectReason;
use crate::resolution::Resolution;
use crate::shard::{Shard, pool, shard_of};
use crate::sync::{Arc, Weak, cpu_count, current_cpu, first_warning};
use crate::timer_context::TimerContext;
use crate::timetable::{Tally, Timetable};
use lifecycle::Lifecycle;
use run::TimerLease;
use std::time::Duration;
use timer_executor::TaskExecutor;
use unclaimed::Unclaimed;

/// The number of living timers above which a warning says that one timer is enough.
const MANY_TIMERS: usize = 64;

/// The largest number of shards of a timer.
const MAX_SHARDS: usize = 256;

/// Returns the engine that leases the shard with this name. Returns `None` once the engine is gone.
///
/// A timeout or a future refers to its timer by numbers only. It asks for the engine when it is
/// asked for its timer or has to start the worker.
pub(crate) fn engine_of(id: ShardId) -> Option<Arc<Engine>> {
    shard_of(id).context(id)?.engine.get()?.upgrade()?.downcast().ok()
}

pub(crate) struct Engine {
    pub(crate) context: Arc<TimerContext>,
    pub(crate) lease: Arc<TimerLease>,
    /// `None` if the turn's thread runs the tasks.
    pub(crate) executor: Option<Box<dyn TaskExecutor>>,
    /// Whether the executor runs each task before it returns from `execute`. It is asked once, when
    /// the timer is built.
    pub(crate) runs_inline: bool,
    /// Called on the worker's thread at its start.
    pub(crate) on_worker_start: Option<Hook>,
    /// Whether a driver owns the turn instead of a worker.
    pub(crate) is_driven: bool,
    pub(crate) lifecycle: Lifecycle,
    unclaimed: Unclaimed,
}

impl Engine {
    pub(crate) fn new(config: Config, executor: Option<Box<dyn TaskExecutor>>, driven_by: DrivenBy) -> Arc<Self> {
        let is_driven = driven_by != DrivenBy::Worker;
        let by_hand = driven_by == DrivenBy::ManualDriver;
        let shards = if by_hand { 1 } else { config.shards.unwrap_or_else(|| cpu_count().min(MAX_SHARDS)) };
        let block = pool().lease(shards);
        let present = Present::real();
        let resolution = if by_hand {
            // Virtual time begins at the current time, and its ticks begin at 0.
            present.set(clock::now());
            Resolution::Exact(Deadline::down(present.now()).to_bits())
        } else {
            Resolution::ticks(u64::try_from(config.tick.as_nanos()).unwrap_or(u64::MAX))
        };
        let context = Arc::new(TimerContext::new(&config, present, resolution));
        block.open(&context, config.wheel);
        let engine = Arc::new(Self {
            lifecycle: Lifecycle::new(is_driven),
            unclaimed: Unclaimed::default(),
            lease: Arc::new(TimerLease { context: context.clone(), block }),
            context,
            runs_inline: executor.as_ref().is_none_or(|executor| executor.runs_inline()),
            executor,
            on_worker_start: config.on_worker_start,
            is_driven,
        });
        let weak: Weak<Self> = Arc::downgrade(&engine);
        let _first = engine.context.engine.set(weak);
        let live = pool().living();
        if live > MANY_TIMERS && first_warning() {
            let context = &engine.context;
            context.trace(|| {
                tracing::warn!(
                    timer = %context.name,
                    live,
                    "many timers live at once; one timer serves a whole process, so share it by cloning"
                );
            });
        }
        engine
    }

    #[inline]
    pub(crate) fn shards(&self) -> &[&'static Shard] {
        &self.lease.block.shards
    }

    /// Returns the shard for the calling thread. Returns `None` if the timer has no shards.
    #[inline]
    fn local_shard(&self) -> Option<&'static Shard> {
        let shards = self.shards();
        shards.get(current_cpu() & shards.len().wrapping_sub(1)).copied()
    }

    /// Accepts a timeout, or returns the task with the reason for the refusal.
    #[inline]
    pub(crate) fn schedule<J: Job>(
        &self,
        job: J,
        deadline: impl FnOnce(Nanos) -> Deadline,
    ) -> Result<Timeout, (J, RejectReason)> {
        let Some(shard) = self.local_shard() else { return Err(self.reject(job, RejectReason::TooManyTimers)) };
        let now = self.context.now();
        let (timeout, linked) = Timeout::new(shard.id(), deadline(now), job);
        let scheduled = shard.schedule(linked, now);
        self.finish(timeout, scheduled).inspect(|_| self.slow_down(now, 1))
    }

    /// Schedules `jobs`, of which there are at most [`MAX_PER_LOCK`](crate::shard::MAX_PER_LOCK).
    /// Reads the clock once. Takes the lock once if it is free, and otherwise schedules the jobs
    /// one by one. Slows down afterwards, as one call of [`schedule`](Self::schedule) does.
    pub(crate) fn schedule_chunk<J: Job>(
        &self,
        jobs: &mut Vec<(Duration, J)>,
        out: &mut Vec<Result<Timeout, (J, RejectReason)>>,
    ) {
        let Some(shard) = self.local_shard() else {
            return out.extend(jobs.drain(..).map(|(_, job)| Err(self.reject(job, RejectReason::TooManyTimers))));
        };
        let now = self.context.now();
        let create = |(delay, job)| Timeout::new(shard.id(), Deadline::after(now, delay), job);
        let (timeouts, mut linked): (Vec<_>, Vec<_>) = jobs.drain(..).map(create).unzip();
        let scheduled = shard.try_schedule_all(&mut linked, now);
        let scheduled = scheduled.unwrap_or_else(|| linked.drain(..).map(|one| shard.schedule(one, now)).collect());
        let before = out.len();
        out.extend(timeouts.into_iter().zip(scheduled).map(|(timeout, scheduled)| self.finish(timeout, scheduled)));
        let accepted = out[before..].iter().filter(|one| one.is_ok()).count();
        self.slow_down(now, accepted);
    }

    /// Slows down the calling thread, which has scheduled `n` timeouts, if the worker is late.
    #[inline]
    fn slow_down(&self, now: Nanos, n: usize) {
        self.context.backpressure.after_scheduling(now, n, || self.pending());
    }

    /// Wakes the worker for a timeout that was accepted, if necessary. Takes the task back if it
    /// was refused.
    #[inline]
    fn finish<J: Job>(&self, timeout: Timeout, scheduled: Option<u64>) -> Result<Timeout, (J, RejectReason)> {
        match scheduled {
            Some(wake_before) => {
                if wake_before != NO_TICK {
                    self.context.alarm.wake_before(wake_before);
                }
                Ok(timeout)
            }
            None => self.take_back(timeout),
        }
    }

    /// Takes the task out of an entry that no other thread has seen.
    #[cold]
    fn take_back<J: Job>(&self, timeout: Timeout) -> Result<Timeout, (J, RejectReason)> {
        let job = timeout.decide_cancel().1.and_then(|right| right.into_job());
        match job {
            Some(job) => Err(self.reject(job, self.context.refusal())),
            None => Ok(timeout),
        }
    }

    /// Counts a refusal.
    #[cold]
    pub(crate) fn reject<J>(&self, job: J, reason: RejectReason) -> (J, RejectReason) {
        self.context.counters.rejected.add_contended(1);
        (job, reason)
    }

    /// Returns the earliest tick at which an entry may be due, or an earlier one. A sleeper calls
    /// this after it has armed the alarm.
    pub(crate) fn next(&self) -> u64 {
        self.shards().iter().map(|shard| shard.next()).min().unwrap_or(NO_TICK)
    }

    pub(crate) fn pending(&self) -> u64 {
        match &self.context.limit {
            Some(limit) => limit.acquired() as u64,
            None => {
                // The ends are read before `scheduled`, so the difference is never negative.
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

    pub(crate) fn timetable(&self) -> Timetable {
        let context = &self.context;
        let mut spans = Vec::new();
        let mut tally = Tally::new(context.now(), context.resolution, self.pending());
        self.shards().iter().for_each(|shard| tally.add(shard, &mut spans));
        tally.finish(context.counters.expiry_time.get())
    }

    pub(crate) fn stats(&self) -> TimerStats {
        let counters = &self.context.counters;
        let expired = counters.expired();
        let cancelled = self.cancelled();
        let (queued, running) = counters.in_flight.get();
        let start_lag = counters.start_lag.snapshot();
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
            runs: counters.runs.get() + start_lag.count(),
            cascaded: counters.cascaded.get(),
            inbox_handovers: self.shards().iter().map(|shard| shard.requests()).sum(),
            shards: self.shards().len() as u64,
            lateness: counters.lateness.get(),
            late_runs: counters.late_runs.get(),
            expiry_time: Duration::from_nanos(counters.expiry_time.get()),
            longest_batch: Duration::from_nanos(counters.longest_batch.get(self.context.now())),
            tick_lag: counters.tick_lag.snapshot(),
            timeout_lag: counters.handover_lag.snapshot().merged(&inline_lag),
            start_lag: start_lag.merged(&inline_lag),
            queued,
            running,
            in_flight: queued + running,
            max_pending: self.context.limit.as_ref().map(|limit| limit.max),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.end();
        // These are user code, and may panic in a thread that only drops a handle.
        let executor = self.executor.take();
        let hook = self.on_worker_start.take();
        self.context.contain(|| drop(executor));
        self.context.contain(|| drop(hook));
    }
}
