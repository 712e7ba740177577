//! The worker's thread. It sleeps until the earliest tick at which an entry is due, takes a turn,
//! and repeats.
//!
//! A caller wakes it only for an earlier tick. A timer without timeouts, or with distant ones only,
//! therefore costs a parked thread and no CPU.
//!
//! The worker inherits niceness and CPU affinity from the thread that starts it, which is the first
//! caller or the caller of [`Timer::start`](crate::Timer::start). The hook of
//! [`on_worker_start`](crate::TimerBuilder::on_worker_start) may change them. Signals are blocked
//! on the worker, so no handler runs there. Threads and processes that a task starts inherit this.
//! On Linux the worker waits with a timer slack of 1 ns, so that its waits end on time. It restores
//! the former slack after each wait, so that threads which a task starts do not inherit this one.

mod batch;
mod runs;
mod slow;
mod sweep;
mod timeline;
mod turn;
mod visit;

pub(crate) use turn::Dispatcher;

use crate::clock;
use crate::deadline::{IMMEDIATE, Nanos};
use crate::engine::Engine;
use crate::error::RejectReason;
use crate::sync::{Arc, block_signals, never_slow_down, wait_on_time};
use std::time::Duration;

/// Platforms limit the length of a wait. After this time the worker looks at the clock and sleeps
/// on.
const LONGEST_SLEEP: Duration = Duration::from_secs(86_400);

/// Starts the worker of the timer, if it needs one and has none.
pub(crate) fn start(engine: &Arc<Engine>) -> Result<(), RejectReason> {
    engine.spawn_worker(run)
}

/// The body of the worker's thread. Returns when the timer has been stopped.
pub(crate) fn run(engine: Arc<Engine>) {
    block_signals();
    never_slow_down();
    let mut dispatcher = Dispatcher::new(engine.clone());
    engine.lifecycle.mark_as_worker();
    let context = engine.context.clone();
    if let Some(hook) = &engine.on_worker_start {
        context.contain(|| hook());
    }
    context.trace(|| tracing::debug!(timer = %context.name, "the worker has started"));
    loop {
        context.alarm.arm();
        let next = engine.next();
        if context.is_stopped() {
            break;
        }
        let now = context.now();
        let open = dispatcher.due();
        if open.is_some() || next <= context.resolution.tick_at(now) || context.backlog.has_abandoned() {
            let due = if next == IMMEDIATE { now } else { context.resolution.start_of(next) };
            context.backpressure.set_due(due.min(now).min(open.unwrap_or(now)));
            context.alarm.disarm();
            context.counters.in_flight.set_undecided(true);
            dispatcher.turn(now);
            context.counters.in_flight.set_undecided(dispatcher.due().is_some());
            continue;
        }
        dispatcher.rest();
        if context.alarm.set(next) {
            let until = context.resolution.start_of(next);
            context.backpressure.set_due(until);
            wait_on_time(|| context.alarm.park(Some(clock::until(until).min(LONGEST_SLEEP))));
        }
    }
    dispatcher.rest();
    dispatcher.close_visits();
    context.counters.in_flight.set_undecided(false);
    context.backpressure.set_due(Nanos::MAX);
    context.trace(|| tracing::debug!(timer = %context.name, "the worker has stopped"));
    drop(dispatcher);
    engine.lifecycle.worker_has_ended();
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::batch::BATCH;
    use super::*;
    use crate::Timeout;
    use crate::config::{Config, DrivenBy};
    use crate::deadline::{Deadline, Nanos};
    use crate::entry::Closure;
    use crate::sync::{AtomicUsize, Ordering, spread_by_thread};
    use std::sync::mpsc::channel;
    use std::time::Instant;

    /// The second delay is due at once, so that the worker does not sleep.
    #[test]
    fn the_worker_publishes_when_its_turn_was_due() {
        const YIELD_FROM: u64 = 4_000_000;
        for delay in [Duration::from_millis(1), Duration::ZERO] {
            let engine = Engine::new(Config::default(), None, DrivenBy::Worker);
            start(&engine).unwrap();
            let (begun, has_begun) = channel();
            let (end, may_end) = channel::<()>();
            let task = Closure(move |_: &Timeout| {
                begun.send(()).unwrap();
                may_end.recv().unwrap();
            });
            let before = clock::now();
            assert!(engine.schedule(task, |now| Deadline::after(now, delay)).is_ok());
            has_begun.recv().unwrap();
            let is_late = |now| engine.context.backpressure.is_late(now);
            let at_the_earliest = before + delay.as_nanos() as u64 + YIELD_FROM;
            assert!(!is_late(at_the_earliest), "due after {delay:?}, or in the next tick");
            assert!(is_late(clock::now() + YIELD_FROM + 1_000_000), "due after {delay:?}");
            end.send(()).unwrap();
            assert!(engine.stop_and_wait(Duration::from_secs(60)).unwrap().unprocessed.is_empty());
            assert!(!is_late(u64::MAX - 1), "it has ended");
        }
    }

    #[test]
    fn a_sleeping_worker_is_never_late() {
        let engine = Engine::new(Config::default(), None, DrivenBy::Worker);
        start(&engine).unwrap();
        let (ran, has_run) = channel();
        let task = Closure(move |_: &Timeout| ran.send(()).unwrap());
        assert!(engine.schedule(task, |now| Deadline::after(now, Duration::from_millis(1))).is_ok());
        has_run.recv().unwrap();
        let patience = Instant::now() + Duration::from_secs(10);
        while engine.context.backpressure.is_late(u64::MAX - 1) {
            assert!(Instant::now() < patience, "it sleeps and has nothing to do");
            std::thread::yield_now();
        }
        drop(engine.stop());
    }

    #[test]
    fn the_alarm_is_off_during_a_turn() {
        let engine = Engine::new(Config::default(), None, DrivenBy::Worker);
        start(&engine).unwrap();
        let (said, heard) = channel();
        let context = engine.context.clone();
        let task = Closure(move |_: &Timeout| said.send(context.alarm.is_up()).unwrap());
        assert!(engine.schedule(task, |now| Deadline::after(now, Duration::from_millis(20))).is_ok());
        assert!(heard.recv().unwrap(), "callers would wake a worker that is awake");
        drop(engine.stop());
    }

    /// The last task of the first batch stops the timer, when the round is over.
    #[test]
    fn a_worker_that_ends_closes_its_visits() {
        let config = Config { shards: Some(1), ..Config::default() };
        let engine = Engine::new(config, None, DrivenBy::Worker);
        engine.context.present.set(clock::now());
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 * BATCH {
            let inside = engine.clone();
            let ran = ran.clone();
            let task = Closure(move |_: &Timeout| {
                inside.context.present.set(inside.context.now() + 1_000_000);
                if ran.fetch_add(1, Ordering::Relaxed) + 1 == BATCH {
                    inside.abandon();
                }
            });
            assert!(engine.schedule(task, Deadline::down).is_ok());
        }
        let worker = engine.clone();
        std::thread::spawn(move || run(worker)).join().unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), BATCH);
        assert_eq!((engine.pending(), engine.stats().cancelled), (0, 2 * BATCH as u64));
    }

    /// Only the tasks of the crowd move the virtual time. Each of them takes 2 us.
    #[test]
    fn a_lone_timeout_overtakes_a_crowd_elsewhere() {
        const CROWD: usize = 20_000;
        const TASK: Nanos = 2_000;
        const ROUND: Nanos = 2_000_000;
        spread_by_thread(true);
        let config = Config { shards: Some(2), ..Config::default() };
        let engine = Engine::new(config, None, DrivenBy::Driver);
        let context = &engine.context;
        let ran = Arc::new(AtomicUsize::new(0));
        let before_lone = Arc::new(AtomicUsize::new(CROWD));
        // So far ahead that the current time does not reach it while the test schedules.
        let due = context.resolution.start_of(context.resolution.tick_at(clock::now() + 60_000_000_000));
        let at = |due| move |_| Deadline::up(due);
        for _ in 0..CROWD {
            let ran = ran.clone();
            let context = context.clone();
            let task = Closure(move |_: &Timeout| {
                ran.fetch_add(1, Ordering::Relaxed);
                context.present.set(context.now() + TASK);
            });
            assert!(engine.schedule(task, at(due)).is_ok());
        }
        while engine.shards().iter().any(|shard| shard.scheduled() == 0) {
            // The thread slots of consecutive threads differ, so one of the first threads uses the
            // other shard. A lone timeout behind the crowd runs last and does not count.
            let engine = engine.clone();
            let ran = ran.clone();
            let before_lone = before_lone.clone();
            let lone = Closure(move |_: &Timeout| {
                before_lone.fetch_min(ran.load(Ordering::Relaxed), Ordering::Relaxed);
            });
            let schedule = move || assert!(engine.schedule(lone, at(due + ROUND)).is_ok());
            std::thread::spawn(schedule).join().unwrap();
        }
        context.present.set(due);
        let mut dispatcher = Dispatcher::new(engine.clone());
        while ran.load(Ordering::Relaxed) < CROWD {
            dispatcher.turn(context.now());
        }
        // The crowd has the first round alone and half of the second one. Each part ends with a
        // batch.
        let limit = (ROUND + ROUND / 2) / TASK;
        let before_lone = before_lone.load(Ordering::Relaxed);
        assert!(before_lone <= limit as usize + 2 * BATCH, "{before_lone} of {CROWD} tasks ran first");
        drop(engine.stop());
    }
}
