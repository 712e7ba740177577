//! Promise 4. `pending_timeouts` is exact when no call is in progress. It falls once, when the task
//! starts, is cancelled or is handed back. A rejected call changes nothing. The model compares all
//! counts after each call.

use crate::support::*;
use std::sync::mpsc::channel;
use std::time::Duration;
use timer_core::{Timeout, Timer};

#[test]
fn a_rejected_task_comes_back_unharmed() {
    let (timer, driver) = Timer::builder().build_manual().unwrap();
    drop(driver);
    let (ran, received) = channel();
    let rejected = timer.new_timeout(SECOND, move |_: &Timeout| ran.send(()).unwrap()).unwrap_err();
    let (other, mut driver) = manual(WHEELS[0]);
    accepted(other.new_timeout(Duration::ZERO, rejected.into_inner()));
    driver.advance(Duration::ZERO);
    next(&received);
}

// Guards against redisson/redisson#1112, in which timeouts came late and no figure showed it.
#[test]
fn lateness_shows_in_the_lags() {
    let (timer, mut driver) = Timer::builder().tick_duration(100 * MICRO).build_driven().unwrap();
    accepted(timer.new_timeout(MILLI, |_| {}));
    accepted(timer.new_timeout(MILLI, |_| {}));
    spin(6 * MILLI);
    assert_eq!(driver.turn().expired, 2);
    let stats = timer.stats();
    assert_eq!((stats.tick_lag.count(), stats.timeout_lag.count()), (1, 2));
    for lag in [stats.tick_lag, stats.timeout_lag] {
        assert!(lag.max() >= 4 * MILLI && lag.quantile(0.5) >= 4 * MILLI && lag.mean() >= 4 * MILLI, "{lag:?}");
    }
}
