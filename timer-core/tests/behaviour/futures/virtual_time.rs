//! Hops from deadline to deadline.

use crate::support::*;
use futures::future::{join, join_all};
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn a_hop_stops_at_each_current_deadline() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let begin = driver.now();
    assert_eq!(driver.advance_to_next(), None);
    let cancelled = accepted(timer.new_timeout(SECOND, |_| {}));
    let moved = accepted(timer.new_timeout(2 * SECOND, |_| {}));
    accepted(timer.new_timeout(Duration::ZERO, |_| {}));
    accepted(timer.new_timeout(5 * SECOND, |_| {}));
    cancelled.cancel();
    moved.reset(4 * SECOND);
    let mut hop = || driver.advance_to_next().map(|now| now - begin);
    assert_eq!([hop(), hop(), hop(), hop()], [Some(Duration::ZERO), Some(4 * SECOND), Some(5 * SECOND), None]);
    accepted(timer.new_timeout(SECOND, |_| {})).cancel();
    accepted(timer.new_timeout(Duration::MAX, |_| {}));
    assert_eq!(hop(), None, "neither a cancelled timeout nor one that never comes is a next deadline");
    assert_eq!(driver.elapsed(), 5 * SECOND);
}

#[test]
fn a_thousand_sleeps_take_as_long_as_the_longest() {
    let (timer, mut driver) = manual(WHEELS[0]);
    driver.block_on(join_all((1..=1000).map(|nth| timer.sleep(nth * SECOND))));
    assert_eq!(driver.elapsed(), 1000 * SECOND);
}

#[test]
fn another_thread_can_wake_and_schedule() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (sender, receiver) = futures::channel::oneshot::channel();
    let (go, gone) = mpsc::channel();
    let other = std::thread::spawn(move || {
        gone.recv().unwrap();
        let clock = timer.clone();
        accepted(timer.new_timeout(HOUR, move |_| sender.send(clock.now()).unwrap()));
        timer
    });
    let begin = driver.now();
    let (told, ()) = driver.block_on(join(receiver, async { go.send(()).unwrap() }));
    assert_eq!(told.unwrap(), begin + HOUR);
    drop(other.join().unwrap());
}
