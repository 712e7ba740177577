//! Promise 2. A timeout that is already due runs now, not at the next tick. Its delay is zero, or
//! its deadline is in the past.

mod wake_ups;

use crate::support::*;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
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
        let (again, inner) = (timer.clone(), tell("from a task"));
        accepted(timer.new_timeout(Duration::ZERO, move |_| drop(accepted(again.new_timeout(Duration::ZERO, inner)))));
        assert_eq!(next(&received), "from a task");
        let first = tell("first run");
        accepted(timer.schedule_at_fixed_rate(Duration::ZERO, HOUR, move |me| first(me)));
        assert_eq!(next(&received), "first run");
    }
}

// Guards against B47 and B98, in which a negative delay ran after 10 s or set a negative tick.
#[test]
fn a_deadline_in_the_past_runs_at_once() {
    let Some(before) = Instant::now().checked_sub(SECOND) else { return };
    let timer = Timer::builder().tick_duration(TICK).build().unwrap();
    let (ran, received) = channel();
    for past in [before, before + SECOND / 2, Instant::now()] {
        let ran = ran.clone();
        accepted(timer.new_timeout_at(past, move |me| ran.send(me.deadline()).unwrap()));
        assert!(next(&received) <= Instant::now());
    }
}

#[test]
fn a_driver_runs_due_timeouts_in_one_turn() {
    for wheel in WHEELS {
        let (timer, mut driver) = Timer::builder().tick_duration(TICK).wheel(wheel).build_driven().unwrap();
        accepted(timer.new_timeout(Duration::ZERO, |_| {}));
        let past = Instant::now();
        // The timer may read the same present, and a deadline after it waits for a tick.
        wait_until(|| past.elapsed() > MICRO);
        accepted(timer.new_timeout_at(past, |_| {}));
        let moved = accepted(timer.new_timeout(HOUR, |_| {}));
        assert!(moved.reset(Duration::ZERO));
        assert_eq!(driver.turn().expired, 3);
        accepted(timer.new_timeout(Duration::ZERO, |_| {}));
        let turn = driver.turn();
        assert_eq!((turn.expired, turn.next), (1, None));
    }
}

#[test]
fn virtual_time_runs_due_timeouts_without_a_step() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        driver.advance(HOUR);
        accepted(timer.new_timeout(Duration::ZERO, |_| {}));
        accepted(timer.new_timeout_at(driver.now() - SECOND, |_| {}));
        let moved = accepted(timer.new_timeout(HOUR, |_| {}));
        assert!(moved.reset(Duration::ZERO));
        assert_eq!(driver.next_expiry(), Some(Duration::ZERO));
        assert_eq!(driver.advance(Duration::ZERO), 3);
        assert_eq!(driver.elapsed(), HOUR);
    }
}

// Guards against B68, an endless turn. So many timeouts are due that the turn hands them over in
// several batches.
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
        assert!(turn.next.is_some_and(|next| next <= Instant::now()), "the tasks have made timeouts due: {turn:?}");
        let turn = driver.turn();
        assert_eq!((turn.expired, turn.next), (count, None), "{wheel:?}");
        assert_eq!(timer.stats().turns, 2);
    }
}

// The turn also announces them if it visits other ticks before it ends.
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
        assert!(turn.next.is_some_and(|next| next <= Instant::now()), "{wheel:?}: {turn:?}");
        let turn = driver.turn();
        assert_eq!((turn.expired, turn.next), (1, None), "{wheel:?}");
    }
}

#[test]
fn thousands_due_at_once_run_at_their_instant() {
    for (wheel, pools) in WHEELS.into_iter().flat_map(|wheel| [(wheel, false), (wheel, true)]) {
        let builder = Timer::builder().wheel(wheel);
        let builder = if pools { builder.executor(timer_executor::Task::run) } else { builder };
        let (timer, mut driver) = builder.build_manual().unwrap();
        let at = driver.now() + SECOND;
        let other_times = Arc::new(Mutex::new(Vec::new()));
        for _ in 0..3_000 {
            let (inner, seen) = (timer.clone(), other_times.clone());
            let record_other_time = move |timer: &Timer| {
                if timer.now() != at {
                    seen.lock().unwrap().push(timer.now() - at);
                }
            };
            accepted(timer.new_timeout(SECOND, move |_| {
                record_other_time(&inner);
                let again = inner.clone();
                accepted(inner.new_timeout(Duration::ZERO, move |_| record_other_time(&again)));
            }));
        }
        assert_eq!(driver.advance(HOUR), 6_000, "{wheel:?}");
        assert_eq!((driver.elapsed(), other_times.lock().unwrap().len()), (HOUR, 0), "{wheel:?}");
        assert_eq!((timer.stats().turns, timer.stats().task_panics), (2, 0), "{wheel:?}");
    }
}

#[test]
fn a_reset_to_zero_runs_within_the_old_tick() {
    let (timer, mut driver) = Timer::builder().tick_duration(TICK).build_driven().unwrap();
    let timeout = accepted(timer.new_timeout(NANO, |_| {}));
    while Instant::now() <= timeout.deadline() {}
    assert!(timeout.reset(Duration::ZERO));
    assert_eq!(driver.turn().expired, 1);
}

// Guards against B35, in which timeouts without delay in a loop hung or took a tick each.
#[test]
fn ten_thousand_zero_delays_run_one_by_one() {
    fn link(timer: &Timer, left: u32, done: std::sync::mpsc::Sender<()>) {
        let inner = timer.clone();
        let next = move |_: &Timeout| match left {
            0 => done.send(()).unwrap(),
            left => link(&inner, left - 1, done),
        };
        accepted(timer.new_timeout(Duration::ZERO, next));
    }
    // At a tick each this would take three hours.
    let timer = Timer::builder().tick_duration(SECOND).build().unwrap();
    let (done, ended) = channel();
    link(&timer, 10_000, done);
    next(&ended);
    for _ in 0..500 {
        let (ran, received) = channel();
        accepted(timer.new_timeout(Duration::ZERO, move |_| ran.send(()).unwrap()));
        next(&received);
    }
}

// Guards against B37, in which a timeout was forgotten that was added to a bucket being emptied.
#[test]
fn timeouts_added_to_a_bucket_in_use_run() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let runs = Runs::default();
        for id in 0..20 {
            let (inner, runs) = (timer.clone(), runs.clone());
            accepted(timer.new_timeout(SECOND, move |me| {
                record(&inner, Duration::ZERO, &runs, id);
                record(&inner, NANO, &runs, 100 + id);
                let again = runs.clone();
                accepted(inner.new_timeout_at(me.deadline(), move |_| again.lock().unwrap().push(200 + id)));
            }));
        }
        assert_eq!(driver.advance(SECOND), 60);
        assert_eq!(driver.advance(NANO), 20);
        let mut ran = take_runs(&runs);
        ran.sort_unstable();
        let all: Vec<u32> = [0, 100, 200].iter().flat_map(|from| *from..from + 20).collect();
        assert_eq!(ran, all, "{wheel:?}");
    }
}

// Guards against B43, in which a busy loop starved the driver.
#[test]
fn a_task_that_is_always_due_starves_no_other() {
    fn always(timer: &Timer) {
        let inner = timer.clone();
        let _ = timer.new_timeout(Duration::ZERO, move |_| always(&inner));
    }
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    always(&timer);
    let timeout = accepted(timer.new_timeout(2 * MILLI, |_| {}));
    while !timeout.is_expired() {
        let turn = driver.turn();
        assert!((1..=2).contains(&turn.expired), "a turn must end: {turn:?}");
        assert!(turn.next.is_some());
    }
}

// Guards against B63 and B68, in which a slot's own entries put themselves back into it, which made
// the loop endless or took a lock twice.
#[test]
fn timeouts_added_to_a_slot_in_use_run_once() {
    for wheel in WHEELS {
        let (timer, mut driver) = Timer::builder().wheel(wheel).tick_duration(YEAR).build_driven().unwrap();
        let inner = timer.clone();
        accepted(timer.new_timeout(Duration::ZERO, move |_| {
            accepted(inner.new_timeout(Duration::ZERO, |_| {}));
            accepted(inner.new_timeout(NANO, |_| {}));
        }));
        assert_eq!(driver.turn().expired, 1);
        assert_eq!(driver.turn().expired, 1, "{wheel:?}");
        assert_eq!(timer.pending_timeouts(), 1);
        let (timer, mut driver) = manual(wheel);
        let fast = accepted(timer.schedule_at_fixed_rate(Duration::ZERO, NANO, |_| {}));
        assert_eq!(driver.advance(999 * NANO), 1_000, "{wheel:?}");
        assert!(fast.cancel());
    }
}
