//! The worker's thread: sleep until the next tick with something in it, take a turn, again.
//!
//! It wakes for nothing else. A timer without timeouts, or with far ones only, costs a parked thread and no CPU.
//!
//! *What its tasks inherit*: signals are blocked on the worker, so that no handler runs there; threads and processes that a task
//! starts inherit that. The worker's waits end on time (Linux: timer slack of 1 ns), set around the waits only.
//! It keeps the CPU affinity of the thread that started it: that of the first caller, or of [`Timer::start`](crate::Timer::start).

mod slow;
mod turn;

pub(crate) use turn::Dispatcher;

use crate::clock;
use crate::sync::{Arc, block_signals, never_slow_down, wait_on_time};
use crate::time::IMMEDIATE;
use crate::timer::Engine;
use std::time::{Duration, Instant};

/// Platforms differ in how far ahead a wait may end; after this long the worker looks again and sleeps on.
const LONGEST_SLEEP: Duration = Duration::from_secs(86_400);

/// Until the timer is stopped.
pub(crate) fn run(engine: Arc<Engine>) {
    block_signals();
    never_slow_down();
    let mut dispatcher = Dispatcher::new(engine.clone());
    engine.am_worker();
    let context = engine.context.clone();
    context.trace(|| tracing::debug!(timer = %context.name, "the worker has started"));
    loop {
        context.alarm.arm();
        let next = engine.next_for_sleeper();
        if context.is_stopped() {
            break;
        }
        let now = context.now();
        if next <= context.resolution.tick_at(now) || !context.abandoned.is_empty() {
            let due = if next == IMMEDIATE { now } else { context.resolution.start_of(next) };
            context.backpressure.set_due(due.min(now));
            context.alarm.disarm();
            dispatcher.turn(now);
            continue;
        }
        if context.alarm.set(next) {
            let until = context.resolution.start_of(next);
            context.backpressure.set_due(until);
            let until = clock::instant(until);
            let until = until.min(Instant::now() + LONGEST_SLEEP);
            wait_on_time(|| context.alarm.park(Some(until)));
        }
    }
    context.backpressure.clear();
    context.trace(|| tracing::debug!(timer = %context.name, "the worker has stopped"));
    drop(dispatcher);
    engine.worker_has_ended();
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use crate::Timeout;
    use crate::config::{Config, DrivenBy};
    use crate::entry::Closure;
    use std::sync::mpsc::channel;

    /// Also if it finds that at once, and has not slept until then.
    #[test]
    fn it_owes_what_its_turn_is_about() {
        const GRACE: u64 = 4_000_000;
        for delay in [Duration::from_millis(1), Duration::ZERO] {
            let engine = Arc::new(Engine::new(Config::default(), None, DrivenBy::Worker, run));
            let ((begun, has_begun), (end, may_end)) = (channel(), channel::<()>());
            let task = Closure(move |_: &Timeout| {
                begun.send(()).unwrap();
                may_end.recv().unwrap();
            });
            let before = clock::now();
            assert!(engine.schedule_after(task, delay).is_ok());
            has_begun.recv().unwrap();
            let is_late = |now| engine.context.backpressure.is_late(now);
            let at_the_earliest = before + delay.as_nanos() as u64 + GRACE;
            assert!(!is_late(at_the_earliest), "due after {delay:?}, or in the next tick");
            assert!(is_late(clock::now() + GRACE + 1_000_000), "due after {delay:?}");
            end.send(()).unwrap();
            assert!(engine.stop_and_wait(Duration::from_secs(60)).unwrap().unprocessed.is_empty());
            assert!(!is_late(u64::MAX - 1), "it has ended");
        }
    }
}
