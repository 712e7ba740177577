//! Hops from deadline to deadline, and programs on a timer that a guard has entered.

use crate::support::*;
use futures::future::{join, join_all};
use std::sync::mpsc;
use timer_core::{Timer, global};

#[test]
fn a_hop_stops_at_each_current_deadline() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let begin = driver.now();
    assert_eq!(driver.advance_to_next(), None);
    let cancelled = accepted(timer.new_timeout(SECOND, |_| {}));
    let moved = accepted(timer.new_timeout(2 * SECOND, |_| {}));
    accepted(timer.new_timeout(5 * SECOND, |_| {}));
    cancelled.cancel();
    moved.reset(4 * SECOND);
    assert_eq!(driver.advance_to_next(), Some(begin + 4 * SECOND));
    assert_eq!(driver.advance_to_next(), Some(begin + 5 * SECOND));
    assert_eq!(driver.advance_to_next(), None);
    assert_eq!(driver.elapsed(), 5 * SECOND, "an empty timer does not move time");
    let last = accepted(timer.new_timeout(SECOND, |_| {}));
    last.cancel();
    assert_eq!((driver.advance_to_next(), driver.elapsed()), (None, 5 * SECOND));
}

#[test]
fn due_timeouts_run_without_moving_time() {
    let (timer, mut driver) = manual(WHEELS[0]);
    accepted(timer.new_timeout(std::time::Duration::ZERO, |_| {}));
    accepted(timer.new_timeout(std::time::Duration::MAX, |_| {}));
    assert_eq!(driver.advance_to_next(), Some(driver.now()));
    assert_eq!(driver.advance_to_next(), None, "a timeout that never comes is no next deadline");
    assert_eq!(driver.elapsed(), std::time::Duration::ZERO);
}

#[test]
fn a_thousand_sleeps_take_as_long_as_the_longest() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let infallible = timer.infallible();
    driver.block_on(join_all((1..=1000).map(|nth| infallible.sleep(nth * SECOND))));
    assert_eq!(driver.elapsed(), 1000 * SECOND);
}

#[test]
fn another_thread_can_wake_and_schedule() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (sender, receiver) = futures::channel::oneshot::channel();
    let (go, gone) = mpsc::channel();
    let other = std::thread::spawn(move || {
        gone.recv().unwrap();
        let infallible = timer.infallible();
        accepted(timer.new_timeout(HOUR, move |_| sender.send(infallible.now()).unwrap()));
        timer
    });
    let begin = driver.now();
    let (told, ()) = driver.block_on(join(receiver, async { go.send(()).unwrap() }));
    assert_eq!(told.unwrap(), begin + HOUR);
    drop(other.join().unwrap());
}

#[test]
fn an_entered_timer_serves_its_thread_only() {
    let (timer, mut driver) = Timer::builder().name("outer").build_manual().unwrap();
    let outer = global::enter(timer);
    let begin = global::now();
    driver.block_on(async {
        global::sleep(HOUR).await;
        assert!(global::timeout(HOUR, std::future::pending::<()>()).await.is_err());
        let mut ticks = global::interval(HOUR);
        ticks.tick().await;
        ticks.tick().await;
    });
    assert_eq!(global::now() - begin, 3 * HOUR);
    std::thread::spawn(move || assert!(global::now() < begin + HOUR)).join().unwrap();
    let inner = global::enter(Timer::builder().name("inner").build().unwrap());
    assert!(global::now() < begin + HOUR);
    drop(inner);
    assert_eq!(global::now() - begin, 3 * HOUR);
    drop(outer);
    assert!(global::now() < begin + HOUR);
}
