//! Promise 7. An idle timer makes no wake-ups, for every tick and both wheels.

mod driver;

use crate::support::*;
use std::sync::mpsc::channel;
use std::time::Duration;
use timer_core::{Timer, WheelKind};

const TICKS: [Duration; 3] = [MICRO, MILLI, Duration::from_millis(7)];

/// Returns idle timers of both wheels and several ticks, with a far timeout, with one that never
/// comes, and with none.
fn idle_timers(prefix: &str) -> Vec<Timer> {
    let mut timers = Vec::new();
    for wheel in [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 8 }] {
        for tick in TICKS {
            for delay in [None, Some(HOUR), Some(Duration::MAX)] {
                let name = format!("{prefix}{}", timers.len());
                let timer = Timer::builder().name(name).wheel(wheel).tick_duration(tick).build().unwrap();
                let (ran, received) = channel();
                accepted(timer.new_timeout(Duration::ZERO, move |_| ran.send(()).unwrap()));
                next(&received);
                if let Some(delay) = delay {
                    accepted(timer.new_timeout(delay, |_| {}));
                    accepted(timer.new_timeout(2 * delay.min(HOUR), |_| {})).cancel();
                }
                timers.push(timer);
            }
        }
    }
    timers
}

/// Returns how often the thread `name` has gone to sleep.
#[cfg(target_os = "linux")]
fn sleeps(name: &str) -> u64 {
    let of_name =
        |path: &std::path::Path| std::fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name);
    let find =
        || std::fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path()).find(|path| of_name(path));
    // A listing may miss a thread while others end.
    let path = (0..100).find_map(|_| find()).expect("no such thread");
    let status = std::fs::read_to_string(path.join("status")).unwrap();
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

// Guards against netty/netty#356, in which waits were cut to zero or a thread spun with nothing to
// do.
#[cfg(target_os = "linux")]
#[test]
fn an_idle_worker_is_not_woken_at_all() {
    let timers = idle_timers("sleeps-");
    let sleeps = || timers.iter().map(|timer| sleeps(timer.name())).collect::<Vec<_>>();
    // The last worker may still be going to sleep.
    watch_for(50 * MILLI);
    let before = sleeps();
    watch_for(300 * MILLI);
    for ((timer, before), after) in timers.iter().zip(before).zip(sleeps()) {
        assert!(after - before <= 2, "{timer:?} woke {} times with nothing due", after - before);
    }
}

// Guards against hniksic/rust-subprocess#95, in which waits cut to the millisecond made the driver
// turn repeatedly before a deadline.
#[test]
fn a_timeout_costs_one_turn() {
    for tick in TICKS {
        let timer = Timer::builder().tick_duration(tick).build().unwrap();
        for round in 0..20 {
            let (ran, received) = channel();
            accepted(timer.new_timeout(MILLI + round * 37 * MICRO, move |_| ran.send(()).unwrap()));
            next(&received);
        }
        let turns = timer.stats().turns;
        assert!(turns <= 2 * 20, "{turns} turns for 20 timeouts at a tick of {tick:?}");
    }
}

// A timeout that is later than the instant waited for wakes nobody. The calls of a waker and of a
// worker follow the same rule.
#[cfg(target_os = "linux")]
#[test]
fn later_timeouts_wake_no_worker_under_load() {
    let timer = named("load-sleeps");
    let (ran, received) = channel();
    accepted(timer.new_timeout(Duration::ZERO, move |_| ran.send(()).unwrap()));
    next(&received);
    for _ in 0..64 {
        // Each shard that this thread uses then has an earlier timeout.
        accepted(timer.new_timeout(HOUR, |_| {}));
    }
    watch_for(20 * MILLI);
    let before = sleeps("load-sleeps");
    let turns = timer.stats().turns;
    for _ in 0..50_000 {
        accepted(timer.new_timeout(2 * HOUR, |_| {})).cancel();
    }
    let woken = sleeps("load-sleeps") - before;
    // The thread may use each other shard for the first time once.
    let shards = timer.stats().shards;
    assert!(woken <= 2 * shards + 2, "woken {woken} times for 50,000 timeouts of which none was earlier");
    assert!(timer.stats().turns - turns <= shards, "turns with nothing due");
}
