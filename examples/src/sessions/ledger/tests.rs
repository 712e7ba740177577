use super::*;

const IDLE: u64 = 10;

fn opened(ledger: &Ledger, host: usize) -> Arming {
    match ledger.request(host) {
        Answer::Opened(arming) => arming,
        other => panic!("{other:?}"),
    }
}

fn is_closed(ledger: &Ledger, host: usize) -> bool {
    ledger.wait_closed(host, Instant::now())
}

#[test]
fn a_timeout_closes_at_the_second_of_its_deadline() {
    let ledger = Ledger::new(1, IDLE);
    let arming = opened(&ledger, 0);
    assert_eq!(ledger.enter(10), []);
    ledger.ran(arming);
    assert!(is_closed(&ledger, 0));
    assert_eq!(ledger.take_sessions(), [Session { first: 0, host: 0, last: 0, requests: 1 }]);
}

#[test]
fn a_request_at_the_deadline_is_overdue() {
    let ledger = Ledger::new(1, IDLE);
    let arming = opened(&ledger, 0);
    ledger.enter(10);
    assert_eq!(ledger.request(0), Answer::Overdue);
    assert_eq!(ledger.request(0), Answer::Overdue);
    ledger.ran(arming);
    assert!(matches!(ledger.request(0), Answer::Opened(_)));
}

#[test]
fn overtaking_closes_nothing_and_arms_again() {
    let ledger = Ledger::new(1, IDLE);
    let early = opened(&ledger, 0);
    ledger.enter(9);
    ledger.ran(early);
    assert!(!is_closed(&ledger, 0));
    let again = ledger.enter(10);
    assert_eq!(again.len(), 1);
    assert_eq!(ledger.enter(11), [], "armed once");
    ledger.ran(early);
    assert!(!is_closed(&ledger, 0), "the old arming does nothing");
    ledger.ran(again[0]);
    assert!(is_closed(&ledger, 0));
}

#[test]
fn a_request_after_overtaking_keeps_the_session() {
    let ledger = Ledger::new(1, IDLE);
    let early = opened(&ledger, 0);
    ledger.enter(9);
    ledger.ran(early);
    assert_eq!(ledger.request(0), Answer::Extended);
    let again = ledger.rearm(0);
    assert_eq!(ledger.enter(18), [], "the deadline has moved to 19");
    assert_eq!(ledger.enter(19), [], "the new arming is pending");
    ledger.ran(again);
    assert_eq!(ledger.take_sessions(), [Session { first: 0, host: 0, last: 9, requests: 2 }]);
}

#[test]
fn overtaking_during_an_extension_is_not_lost() {
    // The request has moved the deadline, the timeout runs, and only then the timer refuses the
    // reset.
    let ledger = Ledger::new(1, IDLE);
    let arming = opened(&ledger, 0);
    ledger.enter(9);
    assert_eq!(ledger.request(0), Answer::Extended);
    ledger.ran(arming);
    let again = ledger.rearm(0);
    assert_eq!(ledger.enter(19), []);
    ledger.ran(again);
    assert!(is_closed(&ledger, 0));
}

#[test]
fn an_old_arming_never_closes_a_later_session() {
    let ledger = Ledger::new(1, IDLE);
    let first = opened(&ledger, 0);
    ledger.enter(10);
    ledger.ran(first);
    opened(&ledger, 0);
    ledger.enter(40);
    ledger.ran(first);
    assert!(!is_closed(&ledger, 0));
}

#[test]
fn waiting_ends_when_another_thread_closes_the_rest() {
    let ledger = Ledger::new(2, IDLE);
    let armings = [opened(&ledger, 0), opened(&ledger, 1)];
    ledger.enter(IDLE);
    let never = Instant::now() + std::time::Duration::from_secs(3600);
    std::thread::scope(|scope| {
        scope.spawn(|| armings.map(|arming| ledger.ran(arming)));
        assert!(ledger.wait_closed(1, never));
        assert!(ledger.wait_all_closed(never, || {}));
    });
    assert_eq!(ledger.take_sessions().len(), 2);
}
