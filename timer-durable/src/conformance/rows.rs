//! Checks of rows: inserts, keys, resets, cancels and dead letters.

use super::{Bench, Check, ok};
use crate::TimeoutId;
use crate::store::{Counts, Position, Store, StoreError};
use crate::transaction::{IfPending, Insert, Operation, Outcome, Target};

pub(super) fn checks<S: Store>() -> Vec<Check<S>> {
    vec![
        ("an id is inserted once", ids),
        ("an id that has ended is not inserted again", ended_ids),
        ("an id that is too old is refused", old_ids),
        ("an id that is taken does not touch the timeout that has the key", taken_ids),
        ("a key belongs to a topic and to one pending timeout", keys),
        ("a cancel and a reset address a timeout by id or key", targets),
        ("a dead letter can be listed, requeued and purged", dead_letters),
        ("a dead letter whose key is taken stays dead, or runs without its key", taken_letters),
        ("payload, key and limits come back when a timeout begins", contents),
        ("a timeout has the trace of the call that has given it its payload", traces),
        ("all operations of a batch are executed, in any order", batches),
        ("an empty batch is executed", empty_batches),
        ("many inserts are all executed or none", all_or_none),
        ("a NUL character harms nothing else", nul_characters),
        ("a backup is a file", backups),
    ]
}

fn ids<S: Store>(bench: &mut Bench<S>) {
    let due = bench.future();
    let id = bench.insert(due);
    assert_eq!(bench.insert_as(Insert::new(id, due + 1, "other")), Outcome::Exists);
    assert_eq!(bench.pending(), [Position { due, id }], "the first insert stays as it is");
}

/// The ids are made by a caller, because ids that the store's own instance has made leave no
/// tombstone.
fn ended_ids<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let future = bench.future();
    let cancelled = keyed(future, IfPending::Keep);
    bench.insert_as(cancelled.clone());
    bench.execute(Operation::Cancel(Target::Id(cancelled.id)));
    let replaced = keyed(future, IfPending::Keep);
    bench.insert_as(replaced.clone());
    let last = keyed(future, IfPending::Replace);
    assert_eq!(bench.insert_as(last.clone()), Outcome::Created { replaced: Some(replaced.id) });
    let topic = last.topic.to_string();
    let key = last.key.clone().unwrap_or_default();
    bench.execute(Operation::Cancel(Target::Key { topic, key }));
    let done = Insert::new(TimeoutId::new(), past, "topic");
    bench.insert_as(done.clone());
    let attempt = bench.attempt(done.id).attempt;
    bench.execute(Operation::Done { id: done.id, attempt, next: None, then: Vec::new() });
    let dead = Insert::new(TimeoutId::new(), past, "topic");
    bench.insert_as(dead.clone());
    let attempt = bench.attempt(dead.id).attempt;
    bench.execute(Operation::Bury { id: dead.id, attempt, reason: String::new(), next: None });
    bench.execute(Operation::Purge(dead.id));
    for again in [cancelled, replaced, last, done, dead] {
        assert_eq!(bench.insert_as(again), Outcome::Exists);
    }
    assert_eq!(bench.pending(), []);
}

/// An id of a caller is accepted for ten minutes. One that the store has is told apart at any age.
fn old_ids<S: Store>(bench: &mut Bench<S>) {
    let due = bench.future();
    let made_before = |minutes: i64| {
        let millis = u128::from((bench.store.now() / 1_000 - minutes * 60_000).unsigned_abs());
        TimeoutId::from_u128(millis << 80 | TimeoutId::new().as_u128() & u128::from(u32::MAX))
    };
    let [old, young] = [11, 9].map(made_before);
    let own = TimeoutId::from_u128(made_before(11).as_u128() | u128::from(bench.store.instance()) << 48);
    assert_eq!(bench.insert_as(Insert::new(old, due, "topic")), Outcome::TooOld);
    for id in [young, own] {
        assert_eq!(bench.insert_as(Insert::new(id, due, "topic")), Outcome::Created { replaced: None });
        assert_eq!(bench.insert_as(Insert::new(id, due, "topic")), Outcome::Exists);
    }
    assert_eq!(bench.pending().len(), 2, "the old one was not inserted");
}

fn taken_ids<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let future = bench.future();
    let dead = keyed(past, IfPending::Keep);
    bench.insert_as(dead.clone());
    let attempt = bench.attempt(dead.id).attempt;
    bench.execute(Operation::Bury { id: dead.id, attempt, reason: String::new(), next: None });
    let pending = bench.insert(future + 1);
    let own = TimeoutId::made_by(bench.store.instance());
    bench.insert_as(Insert::new(own, future + 3, "topic"));
    let holder = keyed(future, IfPending::Keep);
    bench.insert_as(holder.clone());
    for id in [dead.id, pending, own] {
        for if_pending in [IfPending::Keep, IfPending::Replace, IfPending::Earlier, IfPending::Later] {
            let again = Insert { id, ..keyed(future + 2, if_pending) };
            assert_eq!(bench.insert_as(again), Outcome::Exists, "{if_pending:?}");
        }
    }
    let rest = [(future, holder.id), (future + 1, pending), (future + 3, own)];
    assert_eq!(bench.pending(), rest.map(|(due, id)| Position { due, id }));
}

fn keyed(due: i64, if_pending: IfPending) -> Insert {
    Insert { key: Some("key".to_owned()), if_pending, ..Insert::new(TimeoutId::new(), due, "topic") }
}

fn keys<S: Store>(bench: &mut Bench<S>) {
    let start = bench.future();
    let first = keyed(start + 50, IfPending::Keep);
    let holder = first.id;
    bench.insert_as(first);
    let other_topic = Insert { topic: "another".into(), ..keyed(start + 50, IfPending::Refuse) };
    assert_eq!(bench.insert_as(other_topic), Outcome::Created { replaced: None }, "keys belong to topics");
    let new = keyed(start + 20, IfPending::Replace);
    let id = new.id;
    assert_eq!(bench.insert_as(new), Outcome::Created { replaced: Some(holder) });
    assert_eq!(bench.pending()[0], Position { due: start + 20, id });
    assert_eq!(bench.pending().len(), 2, "the replaced timeout has ended");
}

fn targets<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let future = bench.future();
    let key = || Target::Key { topic: "topic".to_owned(), key: "key".to_owned() };
    let cancel = |bench: &mut Bench<S>, target: Target| bench.execute(Operation::Cancel(target));
    let reset = |bench: &mut Bench<S>, target: Target, due| bench.execute(Operation::Reset { target, due });
    assert_eq!((cancel(bench, key()), reset(bench, key(), 1)), (Outcome::NotFound, Outcome::NotFound));
    let new = keyed(past, IfPending::Keep);
    let id = new.id;
    bench.insert_as(new);
    assert_eq!(reset(bench, key(), future), Outcome::Changed(id));
    assert_eq!(bench.pending(), [Position { due: future, id }]);
    assert_eq!(reset(bench, Target::Id(id), past), Outcome::Changed(id));
    bench.attempt(id);
    assert_eq!((cancel(bench, key()), reset(bench, Target::Id(id), 1)), (Outcome::Running, Outcome::Running));
    let other = bench.insert(past);
    assert_eq!(cancel(bench, Target::Id(other)), Outcome::Changed(other));
    assert_eq!(cancel(bench, Target::Id(other)), Outcome::NotFound);
    assert_eq!(bench.begin(other), Outcome::NotFound, "it was cancelled");
}

fn dead_letters<S: Store>(bench: &mut Bench<S>) {
    let due = bench.past();
    let id = bench.insert(due);
    let attempt = bench.attempt(id).attempt;
    let bury = |attempt| Operation::Bury { id, attempt, reason: "broken".to_owned(), next: None };
    assert!(!bench.changes(bury(attempt + 1)), "not the last attempt");
    assert!(bench.changes(bury(attempt)));
    assert_eq!(bench.pending(), []);
    let letters = ok(bench.store.dead_letters(Some("topic"), None, 9), bench.name);
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].id, &*letters[0].reason, &*letters[0].payload), (id, "broken", &b"payload"[..]));
    assert_eq!(ok(bench.store.dead_letters(Some("other"), None, 9), bench.name), []);
    assert_eq!(ok(bench.store.dead_letters(None, Some(id), 9), bench.name), [], "behind the id");
    let died = letters[0].died;
    let mut before = |topic, time, max| ok(bench.store.dead_before(topic, time, max), bench.name);
    assert_eq!([before("topic", died, 9), before("other", died + 1, 9)], [[]; 2], "it died at that time");
    assert_eq!((before("topic", died + 1, 9), before("topic", died + 1, 0)), (vec![id], vec![]));
    assert_eq!(bench.insert_as(Insert::new(id, due, "topic")), Outcome::Exists);
    assert!(bench.changes(Operation::Requeue { id, due, without_key: false }));
    let again = bench.attempt(id);
    assert_eq!((again.attempt, again.forgiven), (attempt + 1, attempt), "attempts go on, and count anew");
    bench.execute(bury(again.attempt));
    assert_eq!(ok(bench.store.counts(), bench.name), Counts { pending: 0, dead: 1 });
    assert!(bench.changes(Operation::Purge(id)));
    assert!(!bench.changes(Operation::Purge(id)));
}

fn taken_letters<S: Store>(bench: &mut Bench<S>) {
    let due = bench.past();
    let mut letters = [0, 1, 2].map(|_| {
        let new = keyed(due, IfPending::Keep);
        let id = new.id;
        bench.insert_as(new);
        let attempt = bench.attempt(id).attempt;
        assert!(bench.changes(Operation::Bury { id, attempt, reason: "broken".to_owned(), next: None }));
        id
    });
    let requeue = |id, without_key| Operation::Requeue { id, due, without_key };
    let outcomes = bench.write(&letters[..2].iter().map(|id| requeue(*id, false)).collect::<Vec<_>>());
    // The operations of a batch are executed in any order.
    letters[..2].sort_by_key(|id| !outcomes.contains(&Outcome::Changed(*id)));
    let [first, second, third] = letters;
    assert_eq!(bench.execute(requeue(first, false)), Outcome::NotFound, "{}: it is pending", bench.name);
    assert_eq!(bench.execute(requeue(first, true)), Outcome::NotFound);
    for id in [second, third] {
        assert_eq!(bench.execute(requeue(id, false)), Outcome::Kept(first), "{}: it has the key", bench.name);
    }
    assert!(outcomes.contains(&Outcome::Kept(first)), "{}: {outcomes:?}", bench.name);
    assert_eq!(ok(bench.store.counts(), bench.name), Counts { pending: 1, dead: 2 });
    assert!(bench.changes(requeue(second, true)));
    assert_eq!(bench.attempt(second).key, None);
    let holder = bench.attempt(first);
    assert_eq!(holder.key.as_deref(), Some("key"));
    assert_eq!(bench.execute(requeue(third, false)), Outcome::Kept(first), "{}: a running one, too", bench.name);
    bench.execute(Operation::Done { id: first, attempt: holder.attempt, next: None, then: Vec::new() });
    assert!(bench.changes(requeue(third, false)));
    assert_eq!(bench.attempt(third).key.as_deref(), Some("key"), "{}: it is free again", bench.name);
}

fn contents<S: Store>(bench: &mut Bench<S>) {
    let due = bench.past();
    let new = Insert {
        format: 7,
        payload: (0..=255).collect(),
        period: Some(5),
        max_lateness: Some(6),
        ..keyed(due, IfPending::Keep)
    };
    bench.insert_as(new.clone());
    let attempt = bench.attempt(new.id);
    assert_eq!((attempt.due, attempt.attempt, attempt.forgiven), (due, 1, 0));
    assert_eq!((&*attempt.topic, attempt.key.as_deref(), attempt.format), ("topic", Some("key"), 7));
    assert_eq!((attempt.payload, attempt.period, attempt.max_lateness), (new.payload, Some(5), Some(6)));
}

fn traces<S: Store>(bench: &mut Bench<S>) {
    let due = bench.past();
    let traced = |trace: &str, insert| Insert { traceparent: Some(trace.to_owned()), ..insert };
    let [plain, untraced] = [(); 2].map(|()| Insert::new(TimeoutId::new(), due, "topic"));
    let plain = traced("plain", plain);
    let [keyed, then] =
        ["keyed", "then"].map(|key| traced(key, Insert { key: Some(key.to_owned()), ..keyed(due, IfPending::Keep) }));
    bench.write(&[&plain, &untraced, &keyed].map(|insert| Operation::Insert(insert.clone())));
    let again =
        |if_pending, due, trace: &str| traced(trace, Insert { id: TimeoutId::new(), if_pending, due, ..keyed.clone() });
    assert_eq!(bench.insert_as(again(IfPending::Earlier, due - 1, "earlier")), Outcome::Moved(keyed.id, due - 1));
    let begun = [&plain, &untraced, &keyed].map(|insert| bench.attempt(insert.id).traceparent);
    assert_eq!(begun, [Some("plain"), None, Some("keyed")].map(|trace| trace.map(str::to_owned)), "{}", bench.name);
    assert!(bench.changes(Operation::Retry { id: keyed.id, attempt: 1, due, forgive: false }));
    for if_pending in [IfPending::Update, IfPending::Debounce] {
        let new = again(if_pending, due, &format!("{if_pending:?}"));
        assert_eq!(bench.insert_as(new.clone()), Outcome::Moved(keyed.id, due), "{}", bench.name);
        let begun = bench.attempt(keyed.id);
        assert_eq!(begun.traceparent, new.traceparent, "{}", bench.name);
        assert!(bench.changes(Operation::Retry { id: keyed.id, attempt: begun.attempt, due, forgive: false }));
    }
    assert!(bench.changes(Operation::Done { id: plain.id, attempt: 1, next: None, then: vec![then.clone()] }));
    assert_eq!(bench.attempt(then.id).traceparent.as_deref(), Some("then"), "{}", bench.name);
    assert!(bench.changes(Operation::Bury { id: then.id, attempt: 1, reason: String::new(), next: None }));
    assert!(bench.changes(Operation::Requeue { id: then.id, due, without_key: false }));
    assert_eq!(bench.attempt(then.id).traceparent, None, "{}", bench.name);
}

fn batches<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let future = bench.future();
    let ids: Vec<TimeoutId> = (0..6).map(|_| bench.insert(past)).collect();
    (2..5).for_each(|n| _ = bench.attempt(ids[n]));
    let new = Insert::new(TimeoutId::new(), future, "topic");
    let outcomes = bench.write(&[
        Operation::Begin(ids[5]),
        Operation::Insert(new),
        Operation::Done { id: ids[2], attempt: 1, next: None, then: Vec::new() },
        Operation::Reset { target: Target::Id(ids[0]), due: future },
        Operation::Cancel(Target::Id(ids[1])),
        Operation::Bury { id: ids[4], attempt: 1, reason: String::new(), next: None },
        Operation::Retry { id: ids[3], attempt: 1, due: future, forgive: false },
    ]);
    assert!(matches!(outcomes[0], Outcome::Begun(_)), "{outcomes:?}");
    assert_eq!(outcomes[1], Outcome::Created { replaced: None });
    assert_eq!(outcomes[2..], [2, 0, 1, 4, 3].map(|n| Outcome::Changed(ids[n])));
    assert_eq!(bench.pending().len(), 3);
}

fn all_or_none<S: Store>(bench: &mut Bench<S>) {
    let due = bench.future();
    let holder = keyed(due, IfPending::Keep);
    let plain = || Insert::new(TimeoutId::new(), due, "topic");
    let refused = [plain(), keyed(due, IfPending::Refuse)].map(Operation::Insert);
    bench.insert_as(holder.clone());
    assert_eq!(ok(bench.store.write_all(&refused), bench.name)[1], Outcome::Kept(holder.id), "{}", bench.name);
    assert_eq!(bench.pending(), [Position { due, id: holder.id }], "{}: none", bench.name);
    let [first, second] = [plain(), keyed(due + 1, IfPending::Later)];
    let accepted = [first, second].map(Operation::Insert);
    let outcomes = ok(bench.store.write_all(&accepted), bench.name);
    assert_eq!(outcomes, [Outcome::Created { replaced: None }, Outcome::Moved(holder.id, due + 1)], "{}", bench.name);
    assert_eq!(bench.pending().len(), 2, "{}: all", bench.name);
    let again = ok(bench.store.write_all(&accepted[..1]), bench.name);
    assert_eq!(again, [Outcome::Exists], "{}: a repeated call", bench.name);
}

fn empty_batches<S: Store>(bench: &mut Bench<S>) {
    assert_eq!(bench.write(&[]), []);
}

/// The keeper refuses to insert such a key, but a call may address one, and the message of a panic
/// may contain the character.
fn nul_characters<S: Store>(bench: &mut Bench<S>) {
    let due = bench.past();
    let id = bench.insert(due);
    let attempt = bench.attempt(id).attempt;
    let key = Target::Key { topic: "topic".to_owned(), key: "a\0b".to_owned() };
    let bury = Operation::Bury { id, attempt, reason: "bad\0reason".to_owned(), next: None };
    assert_eq!(bench.write(&[Operation::Cancel(key), bury]), [Outcome::NotFound, Outcome::Changed(id)]);
    let letters = ok(bench.store.dead_letters(None, None, 9), bench.name);
    assert!(letters[0].reason.starts_with("bad") && letters[0].reason.ends_with("reason"), "{letters:?}");
}

fn backups<S: Store>(bench: &mut Bench<S>) {
    let due = bench.future();
    bench.insert(due);
    let name = format!("timer-conformance-{}-{:x}", std::process::id(), fastrand::u64(..));
    let path = std::env::temp_dir().join(name);
    match bench.store.backup(&path) {
        Err(StoreError::Unsupported(_)) => return,
        result => ok(result, bench.name),
    }
    assert!(std::fs::metadata(&path).is_ok_and(|copy| copy.len() > 0), "{}: {}", bench.name, path.display());
    let _removed = std::fs::remove_file(&path);
    assert_eq!(bench.pending().len(), 1, "the store goes on");
}
