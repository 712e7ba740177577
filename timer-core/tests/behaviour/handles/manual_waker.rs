//! The waker of a manual driver.

use crate::support::*;
use std::sync::mpsc::{TryRecvError, channel};

#[test]
fn a_driver_is_woken_for_a_timeout_after_a_cancelled_one() {
    for standing in [None, Some(100 * SECOND)] {
        let (timer, mut driver) = manual(WHEELS[0]);
        let (wake, wakes) = channel();
        driver.on_wake(move || wake.send(()).unwrap());
        standing.map(|delay| accepted(timer.new_timeout(delay, |_| {})));
        assert!(accepted(timer.new_timeout(5 * SECOND, |_| {})).cancel());
        assert_eq!(driver.next_deadline(), standing.map(|delay| driver.now() + delay));
        assert_eq!(wakes.try_iter().count(), 0);
        accepted(timer.new_timeout(60 * SECOND, |_| {}));
        assert_eq!(wakes.try_iter().count(), 1);
        accepted(timer.new_timeout(70 * SECOND, |_| {}));
        assert_eq!(wakes.try_iter().count(), 0, "the driver is awake");
        assert_eq!(driver.next_deadline(), Some(driver.now() + 60 * SECOND));
        accepted(timer.new_timeout(80 * SECOND, |_| {}));
        assert_eq!(wakes.try_iter().count(), 0, "the driver sleeps until an earlier deadline");
    }
}

#[test]
fn a_dropped_driver_calls_no_waker() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (wake, wakes) = channel();
    driver.on_wake(move || wake.send(()).unwrap());
    accepted(timer.new_timeout(SECOND, |_| {}));
    assert_eq!(driver.next_deadline(), Some(driver.now() + SECOND));
    drop(driver);
    assert_eq!(wakes.try_recv(), Err(TryRecvError::Disconnected), "the waker is dropped first");
    drop(timer);
}
