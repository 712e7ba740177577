//! Checks of attempts: begins, ends, new instances and transactions of the user.

use super::{Bench, Check, ok};
use crate::TimeoutId;
use crate::store::{Position, Store, StoreError};
use crate::transaction::{Attempt, IfPending, Insert, Operation, Outcome, Target};

pub(super) fn checks<S: Store>() -> Vec<Check<S>> {
    vec![
        ("a timeout begins when it is due, and once", begins),
        ("only the last attempt can end", ends),
        ("a retry is pending again", retries),
        ("a periodic timeout goes on", periods),
        ("an end creates the next timeout of its key", follow_ups),
        ("a retry keeps the planned time of its run", planned_times),
        ("a change of the due time begins a new run", new_runs),
        ("a result that is sent twice does not undo a reset", late_results),
        ("a new instance begins what the old one had begun", instances),
        ("work of the user is committed with the end, or undone", completes),
    ]
}

fn done<S: Store>(bench: &mut Bench<S>, id: TimeoutId, attempt: u32, next: Option<i64>) -> bool {
    bench.changes(Operation::Done { id, attempt, next, then: None })
}

/// Repeats an attempt that counts.
fn retry<S: Store>(bench: &mut Bench<S>, id: TimeoutId, attempt: u32, due: i64) -> bool {
    bench.changes(Operation::Retry { id, attempt, due, forgive: false })
}

/// Repeats an attempt that does not count.
fn forgive<S: Store>(bench: &mut Bench<S>, id: TimeoutId, attempt: u32, due: i64) -> bool {
    bench.changes(Operation::Retry { id, attempt, due, forgive: true })
}

fn begins<S: Store>(bench: &mut Bench<S>) {
    let (past, future) = (bench.past(), bench.future());
    let (early, due) = (bench.insert(future), bench.insert(past));
    assert_eq!(bench.begin(early), Outcome::NotYet(future));
    assert_eq!(bench.attempt(due).attempt, 1);
    assert_eq!(bench.begin(due), Outcome::NotFound, "it runs");
    assert_eq!(bench.pending(), [Position { due: future, id: early }], "a running timeout is not pending");
    assert_eq!(bench.begin(TimeoutId::new()), Outcome::NotFound);
}

fn ends<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let id = bench.insert(past);
    assert!(!done(bench, id, 1, None) && !done(bench, id, 0, None), "no attempt runs");
    bench.attempt(id);
    assert!(!done(bench, id, 2, None));
    assert!(done(bench, id, 1, None));
    assert!(!done(bench, id, 1, None), "it has ended");
    assert_eq!(bench.pending(), []);
}

fn retries<S: Store>(bench: &mut Bench<S>) {
    let (past, future) = (bench.past(), bench.future());
    let id = bench.insert(past);
    bench.attempt(id);
    assert!(!retry(bench, id, 2, past));
    assert!(retry(bench, id, 1, past + 1));
    let second = bench.attempt(id);
    assert_eq!((second.attempt, second.forgiven, second.due), (2, 0, past + 1));
    assert!(forgive(bench, id, 2, past));
    let third = bench.attempt(id);
    assert_eq!((third.attempt, third.forgiven), (3, 1), "the first attempt counts");
    assert!(forgive(bench, id, 3, past));
    let fourth = bench.attempt(id);
    assert_eq!((fourth.attempt, fourth.forgiven), (4, 2));
    assert!(retry(bench, id, 4, future));
    assert_eq!(bench.begin(id), Outcome::NotYet(future));
}

fn periods<S: Store>(bench: &mut Bench<S>) {
    let (past, future) = (bench.past(), bench.future());
    let id = bench.insert(past);
    bench.attempt(id);
    assert!(done(bench, id, 1, Some(past + 5)));
    let second = bench.attempt(id);
    assert_eq!((second.attempt, second.forgiven, second.due), (2, 1, past + 5), "each run counts its attempts anew");
    assert!(done(bench, id, 2, Some(future)));
    assert_eq!(bench.pending(), [Position { due: future, id }]);
}

fn follow_ups<S: Store>(bench: &mut Bench<S>) {
    let (past, future) = (bench.past(), bench.future());
    let keyed = |due| Insert { key: Some("key".to_owned()), ..Insert::new(TimeoutId::new(), due, "topic") };
    let (first, second, late) = (keyed(past), keyed(future), keyed(future));
    let id = first.id;
    bench.insert_as(first);
    bench.attempt(id);
    let end =
        |id, attempt, then: &Insert| Operation::Done { id, attempt, next: None, then: Some(Box::new(then.clone())) };
    assert!(!bench.changes(end(id, 2, &late)), "not the last attempt");
    assert!(bench.changes(end(id, 1, &second)));
    assert!(!bench.changes(end(id, 1, &late)), "it has ended");
    assert_eq!(bench.pending(), [Position { due: future, id: second.id }]);
    let holder = bench.insert_as(keyed(future));
    assert_eq!(holder, Outcome::Kept(second.id), "it has the key");
    let id = bench.insert(past);
    bench.attempt(id);
    let old = Insert::new(TimeoutId::from_u128(1), future, "topic");
    assert!(bench.changes(end(id, 1, &old)));
    assert_eq!(bench.pending().len(), 2, "the attempt may have taken longer than an id can be used");
}

fn planned_times<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let id = bench.insert(past);
    let times = |attempt: Attempt| (attempt.due - past, attempt.planned - past);
    assert_eq!(times(bench.attempt(id)), (0, 0));
    assert!(retry(bench, id, 1, past + 1));
    assert_eq!(times(bench.attempt(id)), (1, 0));
    assert!(forgive(bench, id, 2, past + 2));
    ok(bench.store.rejoin(), bench.name);
    assert_eq!(times(bench.attempt(id)), (2, 0), "a new instance knows it, too");
    assert!(done(bench, id, 3, Some(past + 10)));
    assert_eq!(times(bench.attempt(id)), (10, 10), "the next run");
    assert!(retry(bench, id, 4, past + 11));
    assert_eq!(times(bench.attempt(id)), (11, 10));
}

fn new_runs<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let keyed = |due, if_pending| Insert {
        key: Some("key".to_owned()),
        if_pending,
        ..Insert::new(TimeoutId::new(), due, "topic")
    };
    let first = keyed(past, IfPending::Keep);
    let id = first.id;
    bench.insert_as(first);
    bench.attempt(id);
    assert!(retry(bench, id, 1, past + 9));
    assert_eq!(bench.insert_as(keyed(past + 5, IfPending::Later)), Outcome::Kept(id));
    assert_eq!(bench.attempt(id).planned, past, "nothing has moved it");
    assert!(retry(bench, id, 2, past + 9));
    assert_eq!(bench.insert_as(keyed(past + 5, IfPending::Earlier)), Outcome::Moved(id, past + 5));
    assert_eq!(bench.attempt(id).planned, past + 5, "an insert has moved it");
    assert!(retry(bench, id, 3, past + 9));
    assert!(bench.changes(Operation::Reset { target: Target::Id(id), due: past + 9 }));
    assert_eq!(bench.attempt(id).planned, past + 9, "a reset has moved it, to the same time");
    assert!(retry(bench, id, 4, past + 10));
    let attempt = bench.attempt(id).attempt;
    assert!(bench.changes(Operation::Bury { id, attempt, reason: String::new() }));
    assert!(bench.changes(Operation::Requeue { id, due: past + 10 }));
    assert_eq!(bench.attempt(id).planned, past + 10, "a dead letter runs anew");
}

fn late_results<S: Store>(bench: &mut Bench<S>) {
    let (past, future) = (bench.past(), bench.future());
    let id = bench.insert(past);
    bench.attempt(id);
    assert!(retry(bench, id, 1, past));
    assert!(bench.changes(Operation::Reset { target: Target::Id(id), due: future }));
    assert!(!retry(bench, id, 1, past), "its answer was lost, and it is sent again");
    assert_eq!(bench.pending(), [Position { due: future, id }]);
}

fn instances<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let (ended, lost) = (bench.insert(past), bench.insert(past));
    bench.attempt(ended);
    bench.attempt(lost);
    let before = bench.store.instance();
    ok(bench.store.rejoin(), bench.name);
    assert_ne!(bench.store.instance(), before);
    assert_eq!(bench.pending().len(), 2, "both are pending again");
    assert!(done(bench, ended, 1, None), "the handler has ended, and no other attempt has begun");
    assert_eq!(bench.attempt(lost).attempt, 2);
    assert!(!done(bench, lost, 1, None), "a later attempt runs");
    assert!(done(bench, lost, 2, None));
}

fn completes<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let id = bench.insert(past);
    bench.attempt(id);
    let end = |attempt| Operation::Done { id, attempt, next: None, then: None };
    match bench.store.complete_in(end(2), Box::new(|_| Ok(()))) {
        Err(StoreError::Unsupported(_)) => return,
        result => assert!(!ok(result, bench.name), "not the last attempt"),
    }
    let failed = bench.store.complete_in(end(1), Box::new(|_| Err("the work fails".into())));
    assert!(matches!(failed, Err(StoreError::Failed(_))), "{failed:?}");
    let completed = bench.store.complete_in(end(1), Box::new(|_| Ok(())));
    assert!(ok(completed, bench.name), "the failed work has undone all");
    assert!(!done(bench, id, 1, None), "it has ended");
}
