//! Whole timers that come and go.

use crate::heap::*;
use crate::support::*;
use timer_core::{Timeout, Timer, WheelKind};

const TIMERS: usize = if cfg!(debug_assertions) { 150 } else { 1_000 };

/// The way in which a timer ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Stop,
    Drop,
    ManualStop,
    ManualDrop,
    DriverFirst,
}

/// Runs a timer in which some timeouts have run, some were cancelled and some are pending at its
/// end. The handles outlive it.
fn life(wheel: WheelKind, end: End, handles: &mut Vec<Timeout>) {
    let builder = Timer::builder().wheel(wheel);
    let (timer, mut driver) = match end {
        End::Stop | End::Drop => (builder.build().unwrap(), None),
        _ => builder.build_manual().map(|(timer, driver)| (timer, Some(driver))).unwrap(),
    };
    for n in 0..10 {
        handles.push(schedule(&timer, n * SECOND));
        assert!(schedule(&timer, HOUR).cancel());
        handles.push(accepted(timer.schedule_at_fixed_rate(n * SECOND, SECOND, {
            let ballast = Box::new([n; 64]);
            move |_| assert_eq!(ballast[7], n)
        })));
    }
    if let Some(driver) = &mut driver {
        assert!(driver.advance(3 * SECOND) > 0);
    }
    match (end, driver) {
        (End::Stop, _) => drop(timer.stop().unwrap()),
        (End::ManualStop, Some(driver)) => driver.stop().into_iter().for_each(|left| left.run()),
        (End::DriverFirst, driver) => drop(driver),
        (_, driver) => {
            drop(timer);
            drop(driver);
        }
    }
}

/// A number of timers above the number that wait for the end of their workers.
const AT_A_TIME: usize = 60;

/// Counts the threads of the process, workers included. Returns 0 if the system does not report
/// them.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

#[test]
fn timers_that_come_and_go_leave_nothing() {
    let _alone = exclusive();
    // The process keeps shards for the largest number of timers at one time. Timers whose workers
    // have not ended yet count.
    drop((0..AT_A_TIME).map(|_| Timer::new()).collect::<Vec<_>>());
    for end in [End::Stop, End::Drop, End::ManualStop, End::ManualDrop, End::DriverFirst] {
        let mut handles = Vec::with_capacity(20 * TIMERS);
        // The process allocates memory for its threads once.
        (0..10).for_each(|n| life(DEFAULT_WHEELS[n % 2], end, &mut handles));
        handles.clear();
        watch_for(50 * MILLI);
        let mark = Mark::set();
        let others = threads();
        for n in 0..TIMERS {
            life(DEFAULT_WHEELS[n % 2], end, &mut handles);
            wait_until(|| threads() < others + AT_A_TIME / 2);
        }
        let held = mark.grown();
        handles.clear();
        let left = mark.falls_to(NOISE);
        println!(
            "{TIMERS} timers, {end:?}: with handles {held} bytes ({} each), without {left}",
            held / handles.capacity()
        );
    }
}
