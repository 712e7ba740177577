//! Checks of stores that several instances share: leases, take-overs and the writes of others.

use super::bench::{Bench, later, ok};
use crate::TimeoutId;
use crate::store::{Position, Store, StoreError};
use crate::transaction::{Insert, Operation, Outcome};
use std::time::{Duration, Instant};

/// A check of two stores with one list.
type Check<S> = (&'static str, fn(&mut Bench<S>, &mut Bench<S>));

/// The longest time that a check waits for a take-over or a notification.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest time between two looks.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) fn checks<S: Store>() -> Vec<Check<S>> {
    vec![
        ("two instances divide the timeouts", divides),
        ("a timeout that another instance writes is found", foreign_rows),
        ("running attempts stay with their instance", releases),
        ("an instance without a lease is taken over and fenced", take_overs),
        ("an instance that leaves hands its timeouts over", departures),
    ]
}

/// Calls `upkeep` if it is due. Returns the timeouts of which the keeper would learn.
fn keep_up<S: Store>(bench: &mut Bench<S>, running: &[TimeoutId]) -> Vec<TimeoutId> {
    if bench.store.next_upkeep().is_none_or(|next| next > Instant::now()) {
        return Vec::new();
    }
    let upkeep = ok(bench.store.upkeep(running), bench.name);
    let loaded = if upkeep.shards_gained { bench.pending() } else { Vec::new() };
    let foreign = upkeep.foreign.into_iter().map(|(position, _)| position);
    foreign.chain(loaded).map(|position| position.id).collect()
}

/// Waits until `done`, which also calls `upkeep`, returns `true`.
fn until(name: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{name}: it has not happened for {PATIENCE:?}");
        std::thread::park_timeout(PAUSE);
    }
}

fn join<S: Store>(bench: &mut Bench<S>) {
    ok(bench.store.rejoin(), bench.name);
    let instance = bench.store.instance();
    let membership = bench.store.membership();
    assert!(membership.is_some_and(|it| it.instance == instance), "{}: a member with its number", bench.name);
}

fn insert_some<S: Store>(bench: &mut Bench<S>, due: i64) -> Vec<TimeoutId> {
    let instance = bench.store.instance();
    let inserts: Vec<Insert> = (0..64).map(|_| Insert::new(TimeoutId::made_by(instance), due, "topic")).collect();
    let ids = inserts.iter().map(|insert| insert.id).collect();
    bench.write(&inserts.into_iter().map(Operation::Insert).collect::<Vec<_>>());
    ids
}

fn sorted(mut ids: Vec<TimeoutId>) -> Vec<TimeoutId> {
    ids.sort_unstable();
    ids
}

fn pending<S: Store>(bench: &mut Bench<S>) -> Vec<TimeoutId> {
    bench.pending().into_iter().map(|position: Position| position.id).collect()
}

fn divides<S: Store>(first: &mut Bench<S>, second: &mut Bench<S>) {
    join(first);
    let due = first.future();
    // A store may keep a batch together, and the batch may stay with the first instance.
    let ids = sorted((0..64).map(|_| first.insert(due)).collect());
    join(second);
    assert_ne!(first.store.instance(), second.store.instance());
    let name = first.name;
    until(name, || {
        keep_up(first, &[]);
        keep_up(second, &[]);
        !pending(second).is_empty()
    });
    let both = sorted([pending(first), pending(second)].concat());
    assert_eq!(both, ids, "{name}: each timeout has one owner");
    let nodes = [&*first, &*second].map(|bench| bench.store.membership().map(|it| it.nodes));
    assert_eq!(nodes[1], Some(2), "{name}");
}

fn foreign_rows<S: Store>(first: &mut Bench<S>, second: &mut Bench<S>) {
    join(first);
    join(second);
    // The second instance may own nothing yet.
    let due = second.future();
    let ids = sorted(insert_some(second, due));
    let mut found = Vec::new();
    let name = first.name;
    until(name, || {
        found.extend(keep_up(first, &[]));
        found.extend(keep_up(second, &[]));
        let mut known = sorted(found.clone());
        known.dedup();
        known == ids
    });
}

fn releases<S: Store>(first: &mut Bench<S>, second: &mut Bench<S>) {
    join(first);
    let due = first.past();
    let ids = insert_some(first, due);
    ids.iter().for_each(|id| assert_eq!(first.attempt(*id).attempt, 1));
    join(second);
    let name = first.name;
    until(name, || {
        keep_up(first, &ids);
        keep_up(second, &[]);
        second.store.membership().is_some_and(|it| it.shards > 0)
    });
    assert_eq!(pending(second), [], "{name}: all of them run");
    let ends: Vec<Operation> =
        ids.iter().map(|id| Operation::Done { id: *id, attempt: 1, next: None, then: Vec::new() }).collect();
    let ended: Vec<Outcome> = ids.iter().copied().map(Outcome::Changed).collect();
    assert_eq!(first.write(&ends), ended, "{name}");
}

fn take_overs<S: Store>(first: &mut Bench<S>, second: &mut Bench<S>) {
    join(first);
    let due = first.past();
    let ids = sorted(insert_some(first, due));
    assert_eq!(first.attempt(ids[0]).attempt, 1);
    assert!(first.store.may_begin(), "{}: its lease holds", first.name);
    let lease_end = |store: &S| store.lease_end().unwrap_or_else(|| panic!("a store that is shared has a lease"));
    assert!(lease_end(&first.store) > Instant::now(), "{}: its lease has an end", first.name);
    join(second);
    assert_eq!(second.begin(ids[0]), Outcome::NotFound, "{}: another instance runs it", second.name);
    // The first instance renews nothing from here on.
    until(second.name, || {
        keep_up(second, &[]);
        sorted(pending(second)) == ids
    });
    assert!(!first.store.may_begin(), "{}: its lease is over", first.name);
    assert!(lease_end(&first.store) <= Instant::now(), "{}: its lease is over", first.name);
    assert_eq!(second.attempt(ids[0]).attempt, 2);
    let end = Operation::Done { id: ids[0], attempt: 1, next: None, then: Vec::new() };
    assert_eq!(first.store.write(std::slice::from_ref(&end), later()), Err(StoreError::Fenced), "{}", first.name);
    join(first);
    assert_eq!(first.execute(end), Outcome::NotFound, "{}: a later attempt runs", first.name);
}

fn departures<S: Store>(first: &mut Bench<S>, second: &mut Bench<S>) {
    join(first);
    let due = first.future();
    let ids = sorted(insert_some(first, due));
    join(second);
    let left = first.store.leave();
    assert!(left.is_ok(), "{}: {left:?}", first.name);
    until(second.name, || {
        keep_up(second, &[]);
        sorted(pending(second)) == ids
    });
}
