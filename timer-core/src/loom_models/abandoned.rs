//! Models of an executor that drops a task unrun. The worker, `stop` or the dropping thread runs
//! the task, so it is never lost.

use super::executor::{Keeper, Queued, queued};
use super::{assert_sound, new, turn};
use loom::thread;
use std::time::Duration;

/// The executor drops the task while the timer is stopped.
fn dropped_unrun_and_stop() {
    let Queued { engine, timeout, outcome, task, .. } = queued(|engine| new(engine, 5));
    drop(timeout);
    let loser = thread::spawn(move || drop(task));
    drop(engine.stop());
    loser.join().unwrap();
    assert_eq!((outcome.ran(), outcome.dropped()), (1, 1), "lost for good");
    assert_eq!((engine.pending(), engine.stats().expired), (0, 1));
    assert_sound(&engine);
}

model!(check, dropped_unrun_and_stop,
    the_flag_is_only_loaded ["lost for good"] Read "timer_context.rs" "self.stopped.fetch_or(false",
    the_flag_is_set_relaxed ["lost for good"] Relaxed "timer_context.rs" "!self.stopped.swap(true",
    the_flag_is_asked_relaxed ["lost for good"] Relaxed "timer_context.rs" "self.stopped.fetch_or(false",
);

/// The executor drops the task while the worker is going to sleep.
fn dropped_unrun_and_sleep() {
    let Queued { engine, timeout, outcome, task, .. } = queued(|engine| new(engine, 5));
    drop(timeout);
    let loser = thread::spawn(move || drop(task));
    let context = engine.context.clone();
    let mut dispatcher = engine.dispatcher();
    while outcome.ran() == 0 {
        context.alarm.arm();
        let next = engine.next();
        if context.backlog.has_abandoned() {
            context.alarm.disarm();
            let _ = turn(&mut dispatcher);
        } else if context.alarm.set(next) {
            context.alarm.park(None);
        }
    }
    loser.join().unwrap();
    assert_eq!((outcome.ran(), outcome.dropped(), engine.pending()), (1, 1, 0));
    assert_sound(&engine);
}

model!(check, dropped_unrun_and_sleep,
    the_worker_is_not_woken ["deadlock"] Skip "alarm.rs" "|until| Some(sooner(until))",
);

/// The executor drops the task while the timeout is cancelled and the timer is stopped.
fn dropped_unrun_and_cancel_and_stop() {
    let Queued { engine, timeout, outcome, task, .. } = queued(|engine| new(engine, 5));
    let canceller = thread::spawn(move || timeout.cancel());
    let loser = thread::spawn(move || drop(task));
    drop(engine.stop());
    loser.join().unwrap();
    let cancelled = usize::from(canceller.join().unwrap());
    assert_eq!((outcome.ran() + cancelled, outcome.dropped()), (1, 1), "lost for good");
    assert_eq!((engine.pending(), engine.stats().queued), (0, 0));
    assert_sound(&engine);
}

model!(check_heavy, dropped_unrun_and_cancel_and_stop,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// The executor drops the task while the last reference to the engine is dropped.
fn dropped_unrun_when_the_timer_is_gone() {
    let (engine, keeper) = Keeper::timer();
    let (timeout, outcome) = new(&engine, 5);
    drop(timeout);
    assert_eq!(super::turn_at(&mut engine.dispatcher(), 5), 1);
    let task = keeper.take().expect("handed over");
    let loser = thread::spawn(move || drop(task));
    drop(engine);
    loser.join().unwrap();
    assert_eq!((outcome.ran(), outcome.dropped()), (1, 1), "lost for good");
}

model!(check, dropped_unrun_when_the_timer_is_gone,
    stopping_in_two_steps Split "timer_context.rs" "!self.stopped.swap(true",
);

/// The executor drops the task while `stop_and_wait` collects the tasks to return.
fn dropped_unrun_and_stop_and_wait() {
    let Queued { engine, timeout, outcome, task, .. } = queued(|engine| new(engine, 5));
    drop(timeout);
    let loser = thread::spawn(move || drop(task));
    let report = engine.stop_by_limit(Duration::from_secs(60));
    loser.join().unwrap();
    assert_eq!(report.in_flight, 0);
    let handed_back = report.unprocessed.len();
    drop(report);
    assert_eq!((outcome.ran() + handed_back, outcome.dropped()), (1, 1), "lost for good");
    assert_eq!((engine.pending(), engine.stats().queued), (0, 0));
    assert_sound(&engine);
}

model!(check, dropped_unrun_and_stop_and_wait,
    stop_and_wait_is_overlooked Read "timer_context.rs" "self.stopped.fetch_or(false",
);
