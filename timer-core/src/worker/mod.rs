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
use crate::sync::{Arc, block_signals, wait_on_time};
use crate::timer::Engine;
use std::time::{Duration, Instant};

/// Platforms differ in how far ahead a wait may end; after this long the worker looks again and sleeps on.
const LONGEST_SLEEP: Duration = Duration::from_secs(86_400);

/// Until the timer is stopped.
pub(crate) fn run(engine: Arc<Engine>) {
    block_signals();
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
            context.alarm.disarm();
            dispatcher.turn(now);
            continue;
        }
        if context.alarm.set(next) {
            let until = clock::instant(context.resolution.start_of(next));
            let until = until.min(Instant::now() + LONGEST_SLEEP);
            wait_on_time(|| context.alarm.park(Some(until)));
        }
    }
    context.trace(|| tracing::debug!(timer = %context.name, "the worker has stopped"));
    drop(dispatcher);
    engine.worker_has_ended();
}
