//! Calls that are queued beside an attempt.

use std::time::Duration;

use timer_durable::{CancelAnswer, Fault, IfPending, MemoryStore, ResetAnswer, Schedule, ScheduleAnswer};
use timer_durable_tests::queued::{self, Bench};

use crate::t;

const SECOND: Duration = Duration::from_secs(1);

fn keyed(delay: u32, if_pending: IfPending) -> Schedule {
    Schedule::after(delay * SECOND).key("k").if_pending(if_pending)
}

#[test]
fn no_session_loses_its_last_event() {
    queued::no_session_loses_its_last_event(MemoryStore::new());
}

#[test]
fn new_periods_take_effect_during_a_run() {
    queued::new_periods_take_effect_during_a_run(MemoryStore::new());
}

#[test]
fn a_call_beside_a_handler_is_kept() {
    queued::a_call_beside_a_handler_is_kept(MemoryStore::new());
}

#[test]
fn a_cancel_and_a_reset_act_on_the_queued_call() {
    let mut bench = Bench::new(MemoryStore::new());
    let running = bench.schedule(keyed(1, IfPending::Keep), "a").id();
    bench.driver.advance(SECOND);
    let cancel = |bench: &Bench| bench.timer.cancel(t::<String>(), "k").wait().unwrap();
    assert_eq!(cancel(&bench), CancelAnswer::Running);
    let queued = bench.schedule(keyed(5, IfPending::Replace), "b");
    assert_eq!(queued, ScheduleAnswer::Queued(queued.id()));
    assert_eq!(bench.timer.reset(t::<String>(), "k", SECOND).wait().unwrap(), ResetAnswer::QueuedReset);
    assert_eq!(cancel(&bench), CancelAnswer::QueuedCancelled, "D9");
    assert_eq!(cancel(&bench), CancelAnswer::Running, "D9");
    let queued = bench.schedule(keyed(5, IfPending::Replace), "c");
    assert_eq!(bench.timer.cancel_by_id(queued.id()).wait().unwrap(), CancelAnswer::Cancelled);
    bench.schedule(keyed(5, IfPending::Replace), "d");
    let counts = bench.timer.cancel_many(t::<String>(), "").wait().unwrap();
    assert_eq!((counts.cancelled, counts.running), (1, 1));
    assert_eq!(bench.timer.reset_by_id(running, SECOND).wait().unwrap(), ResetAnswer::Running);
    bench.end_first();
    bench.driver.advance(60 * SECOND);
    assert_eq!((bench.working(), bench.take_ended()), (0, vec!["a".to_owned()]));
}

/// The store joins again while the handler works. Its result is the one of the last attempt, so the
/// call has its effect with the end that is sent again, or before the next attempt.
#[test]
fn a_queued_call_survives_a_new_instance() {
    for ends_before in [true, false] {
        let store = MemoryStore::new();
        let mut bench = Bench::new(store.clone());
        bench.schedule(keyed(1, IfPending::Keep), "a");
        bench.driver.advance(SECOND);
        bench.schedule(keyed(5, IfPending::Debounce), "b");
        store.inject(Fault::LoseRequest);
        if ends_before {
            bench.end_first();
        } else {
            bench.timer.new_timeout(t(), SECOND, "c").wait().unwrap_err();
            drop(bench);
            bench = Bench::new(store);
        }
        bench.driver.advance(5 * SECOND);
        bench.end_first();
        let ended = bench.take_ended();
        assert_eq!(ended.last().map(String::as_str), Some("b"), "{ended:?}");
        assert_eq!((ended.len(), bench.working()), (1 + usize::from(ends_before), 0), "{ended:?}");
        assert_eq!(bench.timer.counts().wait().unwrap().pending, 0);
    }
}
