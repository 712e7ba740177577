//! Checks of topics that are blocked or paused.

use super::{Bench, Check, ok};
use crate::TimeoutId;
use crate::store::{Counts, Position, Store, StoreError};
use crate::transaction::{IfPending, Insert, Operation, Outcome, Target};
use std::sync::Arc;

pub(super) fn checks<S: Store>() -> Vec<Check<S>> {
    vec![
        ("a timeout of a blocked topic goes to a shelf", shelves),
        ("a change of the due time takes a timeout off its shelf", moves),
        ("a shelf outlives its instance", instances),
        ("the topics of timeouts are found", topics),
        ("a topic is paused until it is resumed", pauses),
    ]
}

/// Blocks a topic. Returns `false` if the store has no shelves.
fn block<S: Store>(bench: &mut Bench<S>, topics: &[&str]) -> bool {
    let topics: Vec<Arc<str>> = topics.iter().map(|topic| Arc::from(*topic)).collect();
    match bench.store.set_blocked(&topics) {
        Err(StoreError::Unsupported(_)) => false,
        result => {
            ok(result, bench.name);
            true
        }
    }
}

fn shelf<S: Store>(bench: &mut Bench<S>, max: usize) -> Vec<TimeoutId> {
    let mut page = Vec::new();
    ok(bench.store.load_shelf("topic", max, &mut page), bench.name);
    assert!(page.is_sorted(), "{}: {page:?}", bench.name);
    page.into_iter().map(|position| position.id).collect()
}

fn shelved() -> Outcome {
    Outcome::Shelved("topic".to_owned())
}

fn shelves<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let future = bench.future();
    let ids = [past + 1, past, past + 2].map(|due| bench.insert(due));
    let early = bench.insert(future);
    let other = Insert::new(TimeoutId::new(), past, "other");
    bench.insert_as(other.clone());
    if !block(bench, &["topic"]) {
        return;
    }
    let batch: Vec<Operation> = [ids[0], ids[1], early, other.id].map(Operation::Begin).into();
    let outcomes = bench.write(&batch);
    assert_eq!(outcomes[..3], [shelved(), shelved(), Outcome::NotYet(future)]);
    assert!(matches!(outcomes[3], Outcome::Begun(_)), "{outcomes:?}");
    assert_eq!(bench.pending(), [Position { due: past + 2, id: ids[2] }, Position { due: future, id: early }]);
    assert_eq!(ok(bench.store.counts(), bench.name), Counts { pending: 5, dead: 0 });
    assert_eq!(shelf(bench, 9), [ids[1], ids[0]], "in the order of their due times");
    assert_eq!(shelf(bench, 1), [ids[1]]);
    assert_eq!(ok(bench.store.shelved_topics(), bench.name), ["topic"]);
    assert_eq!(bench.attempt(ids[1]).attempt, 1, "the topic is blocked, and the keeper has asked for it");
    assert_eq!(shelf(bench, 9), [ids[0]], "it runs");
    assert!(bench.changes(Operation::Retry { id: ids[1], attempt: 1, due: past, forgive: false }));
    assert_eq!(bench.begin(ids[1]), shelved(), "a retry is a due time like others");
    assert!(block(bench, &["other"]));
    assert_eq!(bench.attempt(ids[2]).attempt, 1, "the topic is blocked no more");
    assert_eq!(bench.attempt(ids[1]).attempt, 2, "no attempt is counted on the shelf");
    assert!(bench.changes(Operation::Cancel(Target::Id(ids[0]))));
    assert_eq!(shelf(bench, 9), []);
    assert_eq!(ok(bench.store.shelved_topics(), bench.name), [""; 0]);
}

fn moves<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let future = bench.future();
    let keyed = |key: &str, due, if_pending| Insert {
        key: Some(key.to_owned()),
        if_pending,
        ..Insert::new(TimeoutId::new(), due, "topic")
    };
    let keys = ["reset", "later", "update", "replace"];
    let ids: Vec<TimeoutId> = keys
        .iter()
        .map(|key| {
            let new = keyed(key, past, IfPending::Keep);
            bench.insert_as(new.clone());
            new.id
        })
        .collect();
    if !block(bench, &["topic"]) {
        return;
    }
    ids.iter().for_each(|id| assert_eq!(bench.begin(*id), shelved()));
    assert!(bench.changes(Operation::Reset { target: Target::Id(ids[0]), due: future }));
    bench.insert_as(keyed("later", future, IfPending::Later));
    bench.insert_as(keyed("update", past - 1, IfPending::Update));
    bench.insert_as(keyed("replace", future, IfPending::Replace));
    assert_eq!((shelf(bench, 9).len(), bench.pending().len()), (0, 4));
}

fn instances<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let ids = [past, past + 1].map(|due| bench.insert(due));
    if !block(bench, &["topic"]) {
        return;
    }
    ids.iter().for_each(|id| assert_eq!(bench.begin(*id), shelved()));
    bench.attempt(ids[0]);
    ok(bench.store.rejoin(), bench.name);
    let listed: Vec<TimeoutId> = bench.pending().iter().map(|position| position.id).collect();
    let mut all = [listed, shelf(bench, 9)].concat();
    all.sort_unstable();
    let mut expected = ids;
    expected.sort_unstable();
    assert_eq!(all, expected, "{}: each is pending in one place", bench.name);
    assert_eq!(ok(bench.store.shelved_topics(), bench.name), ["topic"]);
}

fn topics<S: Store>(bench: &mut Bench<S>) {
    let future = bench.future();
    let ids = ["a", "b", "c"].map(|topic| {
        let new = Insert::new(TimeoutId::new(), future, topic);
        bench.insert_as(new.clone());
        new.id
    });
    let topics = ["c", "a", "d"].map(Arc::from);
    for is_loaded in [false, true] {
        if is_loaded {
            assert_eq!(bench.pending().len(), 3);
        }
        let mut found = Vec::new();
        match bench.store.find_topics(&[&ids[..], &[TimeoutId::new()]].concat(), &topics, &mut found) {
            Err(StoreError::Unsupported(_)) => return,
            result => ok(result, bench.name),
        }
        found.sort_unstable_by_key(|(_, topic)| *topic);
        assert_eq!(found, [(ids[2], 0), (ids[0], 1)]);
    }
}

fn pauses<S: Store>(bench: &mut Bench<S>) {
    for (topic, is_paused, expected) in [
        ("b", true, &["b"][..]),
        ("b", true, &["b"]),
        ("a", true, &["a", "b"]),
        ("b", false, &["a"]),
        ("b", false, &["a"]),
    ] {
        match bench.store.set_paused(topic, is_paused) {
            Err(StoreError::Unsupported(_)) => return,
            result => ok(result, bench.name),
        }
        assert_eq!(ok(bench.store.paused_topics(), bench.name), expected);
    }
}
