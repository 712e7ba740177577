//! Timeouts of other futures.

use crate::support::wakers::*;
use crate::support::*;
use std::future::{pending, poll_fn, ready};
use std::io;
use std::task::{Poll, Waker};
use std::time::Duration;
use timer_core::{Elapsed, RejectReason, Timer};

#[test]
fn the_inner_future_is_polled_first() {
    let (timer, mut driver) = manual(WHEELS[0]);
    assert_eq!(poll(&mut timer.timeout(Duration::ZERO, ready(7)), Waker::noop()), Poll::Ready(Ok(7)));
    let mut due = timer.timeout(SECOND, ready(7));
    driver.advance(HOUR);
    assert_eq!(poll(&mut due, Waker::noop()), Poll::Ready(Ok(7)), "although the deadline has passed");
    assert_eq!(accounts(&timer), (0, 0, 0, 0));
}

#[test]
fn the_deadline_wins_over_a_waiting_future() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (bell, waker) = Bell::new();
    let mut late = timer.timeout(SECOND, pending::<()>());
    assert!(poll(&mut late, &waker).is_pending());
    driver.advance(SECOND);
    assert_eq!(bell.rung(), 1);
    assert_eq!(poll(&mut late, &waker), Poll::Ready(Err(Elapsed::new())));
    let mut at = timer.timeout_at(timer.now(), pending::<()>());
    assert_eq!(poll(&mut at, &waker), Poll::Ready(Err(Elapsed::new())));
    assert_eq!(accounts(&timer), (1, 0, 1, 0));
}

#[test]
fn an_answer_in_time_cancels_the_deadline() {
    let (timer, driver) = manual(WHEELS[0]);
    let mut polls = 0;
    let inner = poll_fn(|_| {
        polls += 1;
        if polls == 3 { Poll::Ready("answer") } else { Poll::Pending }
    });
    let mut call = timer.timeout(SECOND, inner);
    assert!(poll(&mut call, Waker::noop()).is_pending() && poll(&mut call, Waker::noop()).is_pending());
    assert_eq!(accounts(&timer), (1, 1, 0, 0));
    assert_eq!(poll(&mut call, Waker::noop()), Poll::Ready(Ok("answer")));
    drop(call);
    assert_eq!(accounts(&timer), (1, 0, 0, 1));
    assert_eq!(driver.next_deadline(), None);
}

#[test]
fn reasons_for_a_refusal_are_errors_of_io() {
    let kinds = [
        (RejectReason::TooManyPending { max: 1 }, io::ErrorKind::WouldBlock),
        (RejectReason::ZeroPeriod, io::ErrorKind::InvalidInput),
        (RejectReason::Stopped, io::ErrorKind::Other),
    ];
    for (reason, kind) in kinds {
        assert_eq!(io::Error::from(reason).kind(), kind, "{reason}");
    }
    let (timer, _driver) = Timer::builder().max_pending_timeouts(1).build_manual().unwrap();
    let schedule = || Ok::<_, io::Error>(timer.new_timeout(SECOND, |_| {})?);
    assert!(schedule().is_ok());
    assert_eq!(schedule().unwrap_err().kind(), io::ErrorKind::WouldBlock);
}
