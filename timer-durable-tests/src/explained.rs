//! A check on the real clock that the lateness in a store is explained by its causes.

use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use timer_durable::DurableLateCause::{Lease, Paused, Places};
use timer_durable::{Due, DurableTimer, DurableTimerBuilder, Topic};

const PATIENCE: Duration = Duration::from_secs(60);

/// A timeout waits for a restart and for the end of a pause, and then others for a place. `open`
/// opens a timer on the same store each time.
pub fn check(open: impl Fn(DurableTimerBuilder) -> DurableTimer) {
    let (free, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let hangs = move |_: &Due<()>| {
        let _free = wait.lock().unwrap().recv();
        Ok(())
    };
    let late = Topic::<()>::new("late");
    let hanging = Topic::<()>::new("hanging");
    let builder = || DurableTimer::builder().max_running(1).topic(late, |_: &Due<()>| Ok(()));
    let timer = open(builder());
    timer.pause(late).wait().unwrap();
    timer.new_timeout(late, Duration::from_millis(100), &()).wait().unwrap();
    timer.stop(PATIENCE).wait().unwrap();
    std::thread::park_timeout(Duration::from_millis(600));
    let timer = open(builder().topic(hanging, hangs));
    let until = |is_done: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !is_done() {
            assert!(begun.elapsed() < PATIENCE, "{:?}", timer.stats());
            std::thread::park_timeout(Duration::from_millis(5));
        }
    };
    let age = |name: &str| timer.stats().topics[name].oldest_due;
    until(&|| age("late") > Duration::from_millis(500));
    timer.resume(late).wait().unwrap();
    until(&|| timer.stats().done == 1);
    let lateness = timer.stats().lateness;
    assert!(lateness.part(Lease) >= Duration::from_millis(300), "{lateness:?}");
    assert!(!lateness.part(Paused).is_zero(), "{lateness:?}");
    assert_eq!(timer.worst()[0].topic, "late");
    // Another topic takes the only place.
    until(&|| age("late").is_zero());
    timer.new_timeout(hanging, Duration::ZERO, &()).wait().unwrap();
    until(&|| timer.stats().running == 1);
    timer.new_timeout(late, Duration::ZERO, &()).wait().unwrap();
    until(&|| !age("late").is_zero());
    let before = age("late");
    until(&|| age("late") > before + Duration::from_millis(20));
    drop(free);
    until(&|| timer.stats().done == 3);
    timer.stop(PATIENCE).wait().unwrap();
    let lateness = timer.stats().lateness;
    assert!(lateness.part(Places) >= before / 2, "{lateness:?} {before:?}");
}
