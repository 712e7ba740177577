//! An executor throws a task away: the worker runs it, or `stop` does, or the thread that has
//! thrown it away; never none of them.

use super::executor::{Keeper, Queued, queued};
use super::{assert_sound, check, check_heavy, fails, new, turn};
use crate::sync::How;
use loom::thread;
use std::time::Duration;

/// Thrown away just when the timer is stopped.
fn thrown_away_and_stop() {
    let Queued { engine, timeout, outcome, task, .. } = queued(|engine| new(engine, 5));
    drop(timeout);
    let loser = thread::spawn(move || drop(task));
    drop(engine.stop());
    loser.join().unwrap();
    assert_eq!((outcome.ran(), outcome.dropped()), (1, 1), "lost for good");
    assert_eq!((engine.pending(), engine.stats().expired), (0, 1));
    assert_sound(&engine);
}

#[test]
fn thrown_away_beside_stop() {
    check(thrown_away_and_stop);
}

#[test]
#[should_panic(expected = "lost for good")]
fn negative_the_flag_is_only_loaded() {
    fails("context.rs", "self.stopped.fetch_or(false", How::Read, thrown_away_and_stop);
}

#[test]
#[should_panic(expected = "lost for good")]
fn negative_the_flag_is_set_relaxed() {
    fails("context.rs", "!self.stopped.swap(true", How::Relaxed, thrown_away_and_stop);
}

#[test]
#[should_panic(expected = "lost for good")]
fn negative_the_flag_is_asked_relaxed() {
    fails("context.rs", "self.stopped.fetch_or(false", How::Relaxed, thrown_away_and_stop);
}

/// Thrown away while the worker looks whether there is anything, and goes to sleep.
fn thrown_away_and_sleep() {
    let Queued { engine, timeout, outcome, task, .. } = queued(|engine| new(engine, 5));
    drop(timeout);
    let loser = thread::spawn(move || drop(task));
    let (context, mut dispatcher) = (engine.context.clone(), engine.dispatcher());
    while outcome.ran() == 0 {
        context.alarm.arm();
        let next = engine.next_for_sleeper();
        if !context.abandoned.is_empty() {
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

#[test]
fn thrown_away_while_the_worker_goes_to_sleep() {
    check(thrown_away_and_sleep);
}

#[test]
#[should_panic(expected = "deadlock")]
fn negative_the_worker_is_not_told() {
    fails("alarm.rs", "|until| Some(sooner(until))", How::Skip, thrown_away_and_sleep);
}

/// Thrown away and cancelled, and the timer is stopped.
#[test]
fn thrown_away_and_cancel_and_stop() {
    check_heavy(|| {
        let Queued { engine, timeout, outcome, task, .. } = queued(|engine| new(engine, 5));
        let canceller = thread::spawn(move || timeout.cancel());
        let loser = thread::spawn(move || drop(task));
        drop(engine.stop());
        loser.join().unwrap();
        let cancelled = usize::from(canceller.join().unwrap());
        assert_eq!((outcome.ran() + cancelled, outcome.dropped()), (1, 1), "lost for good");
        assert_eq!((engine.pending(), engine.stats().queued), (0, 0));
        assert_sound(&engine);
    });
}

/// The turn hands over while an executor drops what it has got, and the engine's last reference
/// goes.
#[test]
fn thrown_away_when_the_timer_is_gone() {
    check(|| {
        let (engine, keeper) = Keeper::timer();
        let (timeout, outcome) = new(&engine, 5);
        drop(timeout);
        assert_eq!(super::turn_at(&mut engine.dispatcher(), 5), 1);
        let task = keeper.take().expect("handed over");
        let loser = thread::spawn(move || drop(task));
        drop(engine);
        loser.join().unwrap();
        assert_eq!((outcome.ran(), outcome.dropped()), (1, 1), "lost for good");
    });
}

/// Thrown away while `stop_and_wait` looks for tasks to hand back.
fn thrown_away_and_stop_and_wait() {
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

#[test]
fn thrown_away_beside_stop_and_wait() {
    check(thrown_away_and_stop_and_wait);
}

#[test]
#[should_panic]
fn negative_stop_and_wait_is_not_seen() {
    fails("context.rs", "self.stopped.fetch_or(false", How::Read, thrown_away_and_stop_and_wait);
}
