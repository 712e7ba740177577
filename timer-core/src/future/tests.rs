//! Futures that are refused, and futures whose timer is gone.

use crate::{RejectReason, Timer};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

struct Silent;

impl Wake for Silent {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_refused_future_keeps_no_waker() {
    let (timer, _driver) = Timer::builder().max_pending_timeouts(1).build_manual().unwrap();
    let kept = timer.new_timeout(HOUR, |_| {}).unwrap();
    let task = Arc::new(Silent);
    let waker = Waker::from(task.clone());
    let alive = Arc::strong_count(&task);
    let mut sleep = timer.sleep(HOUR);
    let polled = Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker));
    assert_eq!(polled, Poll::Ready(Err(RejectReason::TooManyPending { max: 1 })));
    assert_eq!(Arc::strong_count(&task), alive);
    assert!(kept.cancel());
}

#[test]
fn a_future_stays_elapsed_after_its_timer() {
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    let mut sleep = timer.sleep(HOUR);
    assert!(Pin::new(&mut sleep).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(driver.advance(HOUR), 1);
    drop((timer, driver));
    assert!(sleep.is_elapsed(), "the system's clock says nothing about virtual time");
}
