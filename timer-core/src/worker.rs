//! The worker's thread: sleep until the next tick with something in it, take a turn, again.
//!
//! It wakes for nothing else. A timer without timeouts, or with far ones only, costs a parked thread and no CPU.

use crate::sync::wake_on_time;
use crate::turn::Turner;
use std::time::{Duration, Instant};

/// Nobody sleeps longer in one go: huge waits return at once on some systems. One wake-up a day is none to speak of.
const LONGEST_SLEEP: Duration = Duration::from_secs(86_400);

/// The life of the thread.
pub(crate) fn run(mut turner: Turner) {
    wake_on_time();
    let engine = turner.engine().clone();
    engine.am_worker();
    let context = engine.context.clone();
    context.tell(|| tracing::debug!(timer = %context.name, "the worker has started"));
    loop {
        context.alarm.arm();
        let next = engine.next_for_sleeper();
        if context.is_stopped() {
            break;
        }
        let now = context.clock.now();
        if next <= context.resolution.tick_at(now) || context.has_orphans() {
            context.alarm.disarm();
            turner.turn(now);
            continue;
        }
        if context.alarm.set(next) {
            let until = context.clock.instant(context.resolution.start_of(next));
            context.alarm.park(Some(until.min(Instant::now() + LONGEST_SLEEP)));
        }
    }
    context.tell(|| tracing::debug!(timer = %context.name, "the worker has stopped"));
}
