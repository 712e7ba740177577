//! Checks of attempts: begins, ends, new instances and transactions of the user.

use super::{Bench, Check, ok};
use crate::TimeoutId;
use crate::store::{Counts, Position, Store, StoreError, StoreTransaction};
use crate::transaction::{Attempt, IfPending, Insert, NextRun, Operation, Outcome, Target};
use std::any::Any;

pub(super) fn checks<S: Store>() -> Vec<Check<S>> {
    vec![
        ("a timeout begins when it is due, and once", begins),
        ("only the last attempt can end", ends),
        ("a retry is pending again", retries),
        ("a periodic timeout goes on", periods),
        ("a periodic timeout outlives a dead letter", outlived_letters),
        ("an end creates the next timeout of its key", follow_ups),
        ("a postponed timeout has a new payload and counts anew", postpones),
        ("a retry keeps the planned time of its run", planned_times),
        ("a change of the due time begins a new run", new_runs),
        ("a result that is sent twice does not undo a reset", late_results),
        ("a new instance begins what the old one had begun", instances),
        ("work of the user is committed with the end, or undone", completes),
    ]
}

fn done<S: Store>(bench: &mut Bench<S>, id: TimeoutId, attempt: u32, next: Option<i64>) -> bool {
    bench.changes(Operation::Done { id, attempt, next, then: Vec::new() })
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
    let past = bench.past();
    let future = bench.future();
    let early = bench.insert(future);
    let due = bench.insert(past);
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
    let past = bench.past();
    let future = bench.future();
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
    let past = bench.past();
    let future = bench.future();
    let id = bench.insert(past);
    bench.attempt(id);
    assert!(done(bench, id, 1, Some(past + 5)));
    let second = bench.attempt(id);
    assert_eq!((second.attempt, second.forgiven, second.due), (2, 1, past + 5), "each run counts its attempts anew");
    assert!(done(bench, id, 2, Some(future)));
    assert_eq!(bench.pending(), [Position { due: future, id }]);
}

fn outlived_letters<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let future = bench.future();
    let periodic = Insert {
        key: Some("key".to_owned()),
        period: Some(5),
        payload: b"payload".to_vec(),
        ..Insert::new(TimeoutId::new(), past, "topic")
    };
    let id = periodic.id;
    bench.insert_as(periodic);
    bench.attempt(id);
    let bury = |attempt, due| {
        let next = Some(NextRun { due, letter: TimeoutId::new() });
        Operation::Bury { id, attempt, reason: "broken".to_owned(), next }
    };
    assert!(!bench.changes(bury(2, past + 5)), "not the last attempt");
    assert!(bench.changes(bury(1, past + 5)));
    assert!(!bench.changes(bury(1, past + 5)), "it has ended");
    let letters = ok(bench.store.dead_letters(None, None, 9), bench.name);
    let [letter] = &letters[..] else { panic!("{}: {letters:?}", bench.name) };
    assert_ne!(letter.id, id);
    assert_eq!((letter.due, letter.attempt, letter.key.as_deref()), (past, 1, Some("key")));
    assert_eq!((&*letter.reason, &*letter.payload), ("broken", &b"payload"[..]));
    let second = bench.attempt(id);
    assert_eq!((second.attempt, second.forgiven, second.planned), (2, 1, past + 5), "its attempts count anew");
    assert_eq!((second.key.as_deref(), second.period), (Some("key"), Some(5)));
    assert!(done(bench, id, 2, Some(future)));
    let requeue = |without_key| Operation::Requeue { id: letter.id, due: past, without_key };
    assert_eq!(bench.execute(requeue(false)), Outcome::Kept(id), "the series has the key");
    assert!(bench.changes(requeue(true)));
    let extra = bench.attempt(letter.id);
    assert_eq!((extra.attempt, extra.key, extra.period), (2, None, None), "one run beside the series");
    assert!(done(bench, letter.id, 2, None));
    assert_eq!(bench.pending(), [Position { due: future, id }]);
    assert_eq!(ok(bench.store.counts(), bench.name), Counts { pending: 1, dead: 0 });
}

fn follow_ups<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let future = bench.future();
    let keyed = |due| Insert { key: Some("key".to_owned()), ..Insert::new(TimeoutId::new(), due, "topic") };
    let first = keyed(past);
    let second = keyed(future);
    let late = keyed(future);
    let id = first.id;
    bench.insert_as(first);
    bench.attempt(id);
    let end = |id, attempt, then: &Insert| Operation::Done { id, attempt, next: None, then: vec![then.clone()] };
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
    let id = bench.insert(past);
    bench.attempt(id);
    let made = |bench: &Bench<S>| TimeoutId::made_by(bench.store.instance());
    let several = [made(bench), made(bench)].map(|id| Insert::new(id, future, "topic"));
    let end = |attempt| Operation::Done { id, attempt, next: Some(future), then: several.to_vec() };
    assert!(!bench.changes(end(2)), "not the last attempt");
    assert_eq!(bench.pending().len(), 2, "nothing follows an attempt that is not the last one");
    assert!(bench.changes(end(1)));
    assert_eq!(bench.pending().len(), 5, "a periodic timeout has its next run and both follow-ups");
}

fn postpones<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let future = bench.future();
    let postpone =
        |id, attempt, payload: Option<(i16, Vec<u8>)>| Operation::Postpone { id, attempt, due: past + 9, payload };
    let id = bench.insert(past);
    bench.attempt(id);
    assert!(retry(bench, id, 1, past));
    bench.attempt(id);
    assert!(!bench.changes(postpone(id, 1, None)), "not the last attempt");
    assert!(bench.changes(postpone(id, 2, Some((7, b"new".to_vec())))));
    assert!(!bench.changes(postpone(id, 2, None)), "it has ended");
    let third = bench.attempt(id);
    assert_eq!((third.attempt, third.forgiven), (3, 2), "its attempts count anew");
    assert_eq!((third.due, third.planned, third.format, &*third.payload), (past + 9, past + 9, 7, &b"new"[..]));
    assert!(bench.changes(postpone(id, 3, None)));
    let fourth = bench.attempt(id);
    assert_eq!((fourth.forgiven, fourth.format, &*fourth.payload), (3, 7, &b"new"[..]), "it keeps its payload");
    assert!(done(bench, id, 4, None));
    let id = TimeoutId::new();
    bench.insert_as(Insert { period: Some(5), ..Insert::new(id, past, "topic") });
    for (attempt, payload) in [(1, None), (2, Some((7, b"new".to_vec())))] {
        assert_eq!(bench.attempt(id).planned, past, "{}: a periodic timeout keeps its phase", bench.name);
        assert!(bench.changes(postpone(id, attempt, payload)));
    }
    assert_eq!(bench.attempt(id).planned, past);
    assert!(done(bench, id, 3, Some(future)));
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
    let debounced = Insert {
        key: Some("debounced".to_owned()),
        if_pending: IfPending::Debounce,
        cap: Some(past + 90),
        ..Insert::new(TimeoutId::new(), past, "topic")
    };
    let id = debounced.id;
    bench.insert_as(debounced);
    assert_eq!(times(bench.attempt(id)), (0, 0), "a cap is no planned time");
    assert!(retry(bench, id, 1, past + 1));
    assert_eq!(times(bench.attempt(id)), (1, 0));
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
    assert!(bench.changes(Operation::Bury { id, attempt, reason: String::new(), next: None }));
    assert!(bench.changes(Operation::Requeue { id, due: past + 10, without_key: false }));
    assert_eq!(bench.attempt(id).planned, past + 10, "a dead letter runs anew");
}

fn late_results<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let future = bench.future();
    let id = bench.insert(past);
    bench.attempt(id);
    assert!(retry(bench, id, 1, past));
    assert!(bench.changes(Operation::Reset { target: Target::Id(id), due: future }));
    assert!(!retry(bench, id, 1, past), "its answer was lost, and it is sent again");
    assert_eq!(bench.pending(), [Position { due: future, id }]);
}

fn instances<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let ended = bench.insert(past);
    let lost = bench.insert(past);
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
    let end = |attempt| Operation::Done { id, attempt, next: None, then: Vec::new() };
    let mut fails =
        |_: &mut dyn StoreTransaction, _: Option<&dyn Any>| Err(StoreError::Failed("the work fails".to_owned()));
    match bench.store.transact(&mut fails) {
        Err(StoreError::Unsupported(_)) => return,
        failed => assert!(matches!(failed, Err(StoreError::Failed(_))), "{failed:?}"),
    }
    let insert = Insert::new(TimeoutId::made_by(bench.store.instance()), past, "topic");
    let mut execute = |may_commit: bool| {
        bench.store.transact(&mut |tx, _| {
            assert_eq!(tx.execute(&end(2)), Ok(Outcome::NotFound), "not the last attempt");
            assert_eq!(tx.execute(&end(1)), Ok(Outcome::Changed(id)));
            assert_eq!(tx.execute(&Operation::Insert(insert.clone())), Ok(Outcome::Created { replaced: None }));
            if may_commit { Ok(()) } else { Err(StoreError::Failed("the work fails".to_owned())) }
        })
    };
    assert!(execute(false).is_err(), "the work has failed");
    ok(execute(true), bench.name);
    assert_eq!(bench.pending(), [Position { due: past, id: insert.id }]);
    assert!(!done(bench, id, 1, None), "it has ended");
}
