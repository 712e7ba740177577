//! The inbox by itself: its bounds, the tick by which the worker must serve it, and its drain.

use super::*;
use crate::clock::Present;
use crate::config::Config;
use crate::deadline::{Deadline, Nanos};
use crate::entry::Closure;
use crate::resolution::Resolution;

const ID: ShardId = ShardId { index: 0, generation: 7 };

/// The virtual time of the first request.
const BEGIN: Nanos = 1 << 40;

fn open_inbox() -> (Inbox, Arc<TimerContext>) {
    let present = Present::real();
    present.set(BEGIN);
    let context = Arc::new(TimerContext::new(&Config::default(), present, Resolution::Exact(0)));
    let inbox = Inbox::new();
    inbox.open(ID.generation, context.clone());
    (inbox, context)
}

fn push(inbox: &Inbox, tick: u64, kind: RequestKind) -> PushOutcome {
    let (_, timeout) = Timeout::new(ID, Deadline::up(tick), Closure(|_: &Timeout| {}));
    inbox.push(Request { timeout, tick }, kind, false)
}

/// Pushes `count` requests, each in its own millisecond, so that the quota does not matter. Returns
/// the number of accepted ones.
fn push_slowly(inbox: &Inbox, context: &TimerContext, count: usize) -> usize {
    let accepted = |nth: &usize| {
        context.present.set(BEGIN + ((*nth as u64 + 1) << 20));
        matches!(push(inbox, BEGIN + *nth as u64, RequestKind::Moved), PushOutcome::Accepted { .. })
    };
    (0..count).filter(accepted).count()
}

#[test]
fn a_request_is_announced_when_it_is_pushed() {
    let (inbox, _) = open_inbox();
    assert!(!inbox.has_requests());
    let tick = BEGIN + 1;
    let pushed = push(&inbox, tick, RequestKind::New);
    assert!(matches!(pushed, PushOutcome::Accepted { wake: Some((_, due)), .. } if due == tick));
    assert!(inbox.has_requests() && inbox.due() <= tick);
    assert_eq!(inbox.due(), tick);
}

#[test]
fn a_cancelled_timeout_is_due_within_two_milliseconds() {
    let (inbox, _) = open_inbox();
    let latest = BEGIN + MAX_DELAY;
    let pushed = push(&inbox, NO_TICK, RequestKind::Cancelled);
    assert!(matches!(pushed, PushOutcome::Accepted { wake: Some((_, tick)), .. } if tick == latest));
    assert_eq!(inbox.due(), latest);
}

#[test]
fn a_thread_has_a_quota() {
    let (inbox, context) = open_inbox();
    // A millisecond in which no other test on this thread has pushed.
    context.present.set(BEGIN << 1);
    let accepted = || matches!(push(&inbox, BEGIN, RequestKind::Moved), PushOutcome::Accepted { .. });
    assert_eq!((0..2 * QUOTA).filter(|_| accepted()).count() as u64, QUOTA);
}

#[test]
fn an_inbox_has_a_capacity() {
    let (inbox, context) = open_inbox();
    assert_eq!(push_slowly(&inbox, &context, CAPACITY + 3), CAPACITY);
    let (_, timeout) = Timeout::new(ID, Deadline::up(BEGIN), Closure(|_: &Timeout| {}));
    let more = || {
        let request = Request { timeout: timeout.clone(), tick: BEGIN };
        matches!(inbox.push(request, RequestKind::Moved, true), PushOutcome::Accepted { .. })
    };
    assert_eq!((0..CROWDED_CAPACITY).filter(|_| more()).count(), CROWDED_CAPACITY - CAPACITY);
}

#[test]
fn requests_are_served_in_their_order() {
    let (inbox, context) = open_inbox();
    push_slowly(&inbox, &context, 2 * MAX_HELPED);
    let ticks: Vec<u64> = [inbox.drain(), inbox.drain()]
        .iter()
        .flat_map(|requests| requests.iter())
        .map(|request| request.tick)
        .collect();
    assert!(ticks.is_sorted() && ticks.len() == 2 * MAX_HELPED, "{ticks:?}");
}

#[test]
fn a_drain_is_bounded() {
    let (inbox, context) = open_inbox();
    let pushed = 2 * MAX_HELPED + 3;
    assert_eq!(push_slowly(&inbox, &context, pushed), pushed);
    let drained = [(); 4].map(|()| inbox.drain().len());
    assert_eq!(drained, [MAX_HELPED, MAX_HELPED, 3, 0]);
    assert!(!inbox.has_requests() && inbox.due() == NO_TICK);
}

#[test]
fn a_drain_reports_its_earliest_request() {
    let (inbox, _) = open_inbox();
    for tick in [30, 10, 20] {
        assert!(matches!(push(&inbox, tick, RequestKind::Moved), PushOutcome::Accepted { .. }));
    }
    let mut earliest = None;
    assert_eq!(inbox.try_drain(|tick| earliest = Some(tick)).len(), 3);
    assert_eq!(earliest, Some(10));
}

#[test]
fn a_lease_keeps_its_timer_until_it_ends() {
    let (inbox, context) = open_inbox();
    let later = ShardId { generation: ID.generation + 1, ..ID };
    assert!(inbox.context(ID).is_some() && inbox.context(later).is_none());
    inbox.vacate();
    assert!(inbox.context(ID).is_none());
    assert_eq!(Arc::strong_count(&context), 1, "a vacant shard keeps no timer");
}
