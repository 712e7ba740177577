//! Promise 2. A timeout that is already due runs now, not at the next tick. Its delay is zero, or
//! its deadline is in the past.

mod wake_ups;

use crate::support::*;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer};

/// A tick so long that the next one never comes.
const TICK: Duration = YEAR;

#[test]
fn the_worker_runs_due_timeouts_at_once() {
    for wheel in WHEELS {
        let timer = Timer::builder().tick_duration(TICK).wheel(wheel).build().unwrap();
        let (ran, received) = channel();
        let tell = |label: &'static str| {
            let ran = ran.clone();
            move |_: &_| ran.send(label).unwrap()
        };
        accepted(timer.new_timeout(HOUR, |_| {}));
        for _ in 0..20 {
            accepted(timer.new_timeout(Duration::ZERO, tell("no delay")));
            assert_eq!(next(&received), "no delay");
            // An instant is converted with an error of some tens of nanoseconds.
            let past = Instant::now();
            while past.elapsed() < Duration::from_micros(1) {
                std::hint::spin_loop();
            }
            accepted(timer.new_timeout_at(past, tell("a moment ago")));
            assert_eq!(next(&received), "a moment ago");
            let moved = accepted(timer.new_timeout(HOUR, tell("moved")));
            assert!(moved.reset(Duration::ZERO));
            assert_eq!(next(&received), "moved");
        }
        let again = timer.clone();
        let inner = tell("from a task");
        accepted(timer.new_timeout(Duration::ZERO, move |_| drop(accepted(again.new_timeout(Duration::ZERO, inner)))));
        assert_eq!(next(&received), "from a task");
        let first = tell("first run");
        accepted(timer.schedule_at_fixed_rate(Duration::ZERO, HOUR, move |me| first(me)));
        assert_eq!(next(&received), "first run");
    }
}

// Guards against moka-rs/moka#248, an endless turn. So many timeouts are due that the turn hands
// them over in several batches.
#[test]
fn a_turn_ends_although_tasks_add_due_timeouts() {
    fn again(timer: &Timer) -> impl FnOnce(&Timeout) + Send + 'static {
        let timer = timer.clone();
        move |_| drop(accepted(timer.new_timeout(Duration::ZERO, |_| {})))
    }
    for wheel in WHEELS {
        let (timer, mut driver) = Timer::builder().wheel(wheel).build_driven().unwrap();
        // Many threads schedule, so that many shards are due, among them the one that the tasks
        // schedule into.
        let scheduler = || {
            (0..3_000).for_each(|id| drop(accepted(timer.new_timeout(id % 8 * MILLI, again(&timer)))));
            (0..1_000).for_each(|_| drop(accepted(timer.new_timeout(Duration::ZERO, again(&timer)))));
        };
        std::thread::scope(|scope| (0..5).for_each(|_| drop(scope.spawn(scheduler))));
        scheduler();
        let due = Instant::now() + 8 * MILLI;
        while Instant::now() < due + MILLI {
            std::hint::spin_loop();
        }
        let mut turns = vec![driver.turn().expired];
        while timer.pending_timeouts() > 0 && turns.len() < 20 {
            turns.push(driver.turn().expired);
        }
        assert_eq!(turns.iter().sum::<usize>(), 12 * 4_000, "{wheel:?}");
        assert!(turns.len() > 1, "the first turn ran the timeouts of its own tasks");
    }
}

// A turn takes a limited number of timeouts at once. It must announce the rest, which would
// otherwise wait for the next tick.
#[test]
fn due_timeouts_of_tasks_are_announced_at_once() {
    for (wheel, count) in WHEELS.into_iter().flat_map(|wheel| [(wheel, 1), (wheel, 3_000)]) {
        let (timer, mut driver) = Timer::builder().wheel(wheel).tick_duration(TICK).build_driven().unwrap();
        for _ in 0..count {
            let inner = timer.clone();
            accepted(
                timer.new_timeout(Duration::ZERO, move |_| drop(accepted(inner.new_timeout(Duration::ZERO, |_| {})))),
            );
        }
        let turn = driver.turn();
        assert_eq!(turn.expired, count, "{wheel:?}");
        assert!(
            turn.next_deadline.is_some_and(|next| next <= Instant::now()),
            "the tasks have made timeouts due: {turn:?}"
        );
        let turn = driver.turn();
        assert_eq!((turn.expired, turn.next_deadline), (count, None), "{wheel:?}");
        assert_eq!(timer.stats().turns, 2);
    }
}

// The turn also announces them if it reaches other ticks before it ends.
#[test]
fn due_timeouts_of_tasks_are_announced_at_the_end() {
    for wheel in WHEELS {
        let (timer, mut driver) = Timer::builder().wheel(wheel).tick_duration(MICRO).build_driven().unwrap();
        let inner = timer.clone();
        accepted(timer.new_timeout(MICRO, move |_| drop(accepted(inner.new_timeout(Duration::ZERO, |_| {})))));
        let all: Vec<_> = (2..50).map(|tick| accepted(timer.new_timeout(tick * 20 * MICRO, |_| {}))).collect();
        while Instant::now() <= all[47].deadline() + MICRO {}
        let turn = driver.turn();
        assert_eq!((turn.expired, timer.pending_timeouts()), (49, 1), "{wheel:?}");
        assert!(turn.next_deadline.is_some_and(|next| next <= Instant::now()), "{wheel:?}: {turn:?}");
        let turn = driver.turn();
        assert_eq!((turn.expired, turn.next_deadline), (1, None), "{wheel:?}");
    }
}
