//! Checks of the list, read in pages.

use super::{Bench, Check, ok};
use crate::TimeoutId;
use crate::store::{Counts, Micros, Position, Store, StoreError};
use crate::transaction::{Insert, Operation, Target};
use std::collections::BTreeSet;

pub(super) fn checks<S: Store>() -> Vec<Check<S>> {
    vec![
        ("pages are in the order of due time and id", pages),
        ("a page has timeouts of minutes, hours and weeks in order", distances),
        ("each topic has a list of its own", lists),
        ("a topic is named while it has timeouts", topics),
        ("a topic is paused until it is resumed", pauses),
    ]
}

fn pages<S: Store>(bench: &mut Bench<S>) {
    let start = bench.future();
    let mut inserted: Vec<Position> =
        [5, 1, 3, 3, 2].iter().map(|n| Position { due: start + n, id: bench.insert(start + n) }).collect();
    inserted.sort_unstable();
    assert_eq!(bench.pending(), inserted);
    assert_eq!(bench.load(inserted[1]..inserted[4], 2), inserted[1..4], "from the first position to the last");
    assert_eq!(bench.load(inserted[3].next()..inserted[4], 9), [], "the end of the range is not part of it");
    assert_eq!(ok(bench.store.counts(), bench.name), Counts { pending: 5, dead: 0 });
}

/// Executes random inserts, resets and cancels in two topics, and compares pages with sorted sets.
fn distances<S: Store>(bench: &mut Bench<S>) {
    let mut random = fastrand::Rng::with_seed(7);
    let mut expected = [BTreeSet::<Position>::new(), BTreeSet::new()];
    let start = bench.future();
    for round in 0..40 {
        let (topic, list) = if round % 2 == 0 { ("topic", 0) } else { ("other", 1) };
        let expected = &mut expected[list];
        let mut batch = Vec::new();
        let due = |random: &mut fastrand::Rng| -> Micros {
            let hours = random.choice([1, 3, 24, 24 * 60]).unwrap_or(1);
            start + random.i64(0..hours * 3_600_000_000)
        };
        let mut untouched: Vec<Position> = expected.iter().copied().collect();
        random.shuffle(&mut untouched);
        for _ in 0..random.usize(0..20) {
            let insert = Insert::new(TimeoutId::new(), due(&mut random), topic);
            expected.insert(Position { due: insert.due, id: insert.id });
            batch.push(Operation::Insert(insert));
        }
        for position in untouched.drain(..untouched.len().min(12)) {
            expected.remove(&position);
            if random.bool() {
                batch.push(Operation::Cancel(Target::Id(position.id)));
            } else {
                let due = due(&mut random);
                expected.insert(Position { due, ..position });
                batch.push(Operation::Reset { target: Target::Id(position.id), due });
            }
        }
        bench.write(&batch);
        // A range that begins and ends anywhere.
        let mut ends = [due(&mut random), due(&mut random)].map(Position::at);
        ends.sort_unstable();
        let [from, until] = ends;
        if random.u8(0..4) == 0 {
            let page: Vec<Position> = expected.range(from..until).copied().collect();
            let loaded = bench.load_topic(topic, from..until, random.usize(1..50));
            assert_eq!(loaded, page, "{topic}: {from:?}..{until:?}");
        }
    }
    let [topic, other] = expected.map(|list| list.into_iter().collect::<Vec<Position>>());
    assert_eq!(bench.load(Position::START..Position::END, 1_000), topic);
    assert_eq!(bench.load_topic("other", Position::START..Position::END, 1_000), other);
    let pending = (topic.len() + other.len()) as u64;
    assert_eq!(ok(bench.store.counts(), bench.name), Counts { pending, dead: 0 });
}

fn insert_in<S: Store>(bench: &mut Bench<S>, topic: &str, due: Micros) -> TimeoutId {
    let insert = Insert::new(TimeoutId::new(), due, topic);
    let id = insert.id;
    bench.insert_as(insert);
    id
}

fn lists<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let own: Vec<TimeoutId> = (0..3).map(|n| bench.insert(past + n)).collect();
    let others: Vec<TimeoutId> = (0..2).map(|n| insert_in(bench, "other", past + n)).collect();
    let ids = |page: Vec<Position>| page.into_iter().map(|position| position.id).collect::<Vec<_>>();
    assert_eq!(ids(bench.load(Position::START..Position::END, 1)), own);
    assert_eq!(ids(bench.load_topic("other", Position::START..Position::END, 9)), others);
    assert_eq!(bench.load_topic("none", Position::START..Position::END, 9), []);
    bench.attempt(own[0]);
    assert_eq!(ids(bench.load(Position::START..Position::END, 9)), own[1..], "one runs");
    ok(bench.store.rejoin(), bench.name);
    assert_eq!(ids(bench.load(Position::START..Position::END, 9)), own, "nobody runs it any more");
    let mut found = Vec::new();
    ok(bench.store.find_topics(&[others[0], TimeoutId::new(), own[2]], &mut found), bench.name);
    found.sort_unstable_by(|a, b| a.1.cmp(&b.1));
    assert_eq!(found, [(others[0], "other".to_owned()), (own[2], "topic".to_owned())]);
}

/// Lets a topic have one timeout, in all places where it may be.
fn topics<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let future = bench.future();
    let far = future + 40 * 24 * 3_600_000_000;
    assert_eq!(bench.topics(), [""; 0]);
    let ended = insert_in(bench, "ended", far);
    let moved = insert_in(bench, "moved", future);
    let running = insert_in(bench, "running", past);
    let buried = insert_in(bench, "buried", past);
    insert_in(bench, "far", far);
    assert!(bench.changes(Operation::Reset { target: Target::Id(moved), due: far }));
    bench.attempt(running);
    let attempt = bench.attempt(buried).attempt;
    let reason = "it has failed".to_owned();
    assert!(bench.changes(Operation::Bury { id: buried, attempt, reason, next: None }));
    assert!(bench.changes(Operation::Cancel(Target::Id(ended))));
    for all in [&["far", "moved", "running"][..], &["buried", "far", "moved", "running"]] {
        ok(bench.store.rejoin(), bench.name);
        // A store may name others.
        let mut found = bench.topics();
        found.retain(|topic| all.contains(&topic.as_str()));
        assert_eq!(found, all);
        if all.len() == 3 {
            assert!(bench.changes(Operation::Requeue { id: buried, due: future, without_key: false }));
        }
    }
    assert_eq!(bench.pending().len(), 4);
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
