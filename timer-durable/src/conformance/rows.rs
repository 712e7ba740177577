//! Checks of rows: inserts, keys, resets, cancels and dead letters.

use super::{Bench, Check, ok};
use crate::TimeoutId;
use crate::store::{Counts, Position, Store, StoreError};
use crate::transaction::{Bury, Changed, Done, IfPending, Insert, Inserted, Requeue, Reset, Target};

pub(super) fn checks<S: Store>() -> Vec<Check<S>> {
    vec![
        ("an id is inserted once", ids),
        ("an id that has ended is not inserted again", ended_ids),
        ("an id that is too old is refused", old_ids),
        ("an id that is taken does not touch the timeout that has the key", taken_ids),
        ("a key keeps, moves or replaces its pending timeout", keys),
        ("a running timeout keeps its key", running_keys),
        ("a cancel and a reset address a timeout by id or key", targets),
        ("a dead letter can be listed, requeued and purged", dead_letters),
        ("payload, key and limits come back when a timeout begins", contents),
        ("all parts of a batch are executed", batches),
        ("an empty batch is executed", empty_batches),
        ("a NUL character harms nothing else", nul_characters),
        ("a backup is a file", backups),
    ]
}

fn ids<S: Store>(bench: &mut Bench<S>) {
    let due = bench.future();
    let id = bench.insert(due);
    assert_eq!(bench.insert_as(Insert::new(id, due + 1, "other")), Inserted::Exists);
    assert_eq!(bench.pending(), [Position { due, id }], "the first insert stays as it is");
}

/// The ids are made by a caller, because ids that the store's own instance has made leave no
/// tombstone.
fn ended_ids<S: Store>(bench: &mut Bench<S>) {
    let (past, future) = (bench.past(), bench.future());
    let cancelled = keyed(future, IfPending::Keep);
    bench.insert_as(cancelled.clone());
    bench.write(|batch| batch.cancels.push(Target::Id(cancelled.id)));
    let replaced = keyed(future, IfPending::Keep);
    bench.insert_as(replaced.clone());
    let last = keyed(future, IfPending::Replace);
    assert_eq!(bench.insert_as(last.clone()), Inserted::Created { replaced: Some(replaced.id) });
    bench.write(|batch| {
        let (topic, key) = (last.topic.to_string(), last.key.clone().unwrap_or_default());
        batch.cancels.push(Target::Key { topic, key });
    });
    let done = Insert::new(TimeoutId::new(), past, "topic");
    bench.insert_as(done.clone());
    let attempt = bench.attempt(done.id).attempt;
    bench.write(|batch| batch.dones.push(Done { id: done.id, attempt, next: None }));
    let dead = Insert::new(TimeoutId::new(), past, "topic");
    bench.insert_as(dead.clone());
    let attempt = bench.attempt(dead.id).attempt;
    bench.write(|batch| batch.buries.push(Bury { id: dead.id, attempt, reason: String::new() }));
    bench.write(|batch| batch.purges.push(dead.id));
    for again in [cancelled, replaced, last, done, dead] {
        assert_eq!(bench.insert_as(again), Inserted::Exists);
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
    assert_eq!(bench.insert_as(Insert::new(old, due, "topic")), Inserted::TooOld);
    for id in [young, own] {
        assert_eq!(bench.insert_as(Insert::new(id, due, "topic")), Inserted::Created { replaced: None });
        assert_eq!(bench.insert_as(Insert::new(id, due, "topic")), Inserted::Exists);
    }
    assert_eq!(bench.pending().len(), 2, "the old one was not inserted");
}

fn taken_ids<S: Store>(bench: &mut Bench<S>) {
    let (past, future) = (bench.past(), bench.future());
    let dead = keyed(past, IfPending::Keep);
    bench.insert_as(dead.clone());
    let attempt = bench.attempt(dead.id).attempt;
    bench.write(|batch| batch.buries.push(Bury { id: dead.id, attempt, reason: String::new() }));
    let pending = bench.insert(future + 1);
    let own = TimeoutId::made_by(bench.store.instance());
    bench.insert_as(Insert::new(own, future + 3, "topic"));
    let holder = keyed(future, IfPending::Keep);
    bench.insert_as(holder.clone());
    for id in [dead.id, pending, own] {
        for if_pending in [IfPending::Keep, IfPending::Replace, IfPending::Earlier, IfPending::Later] {
            let again = Insert { id, ..keyed(future + 2, if_pending) };
            assert_eq!(bench.insert_as(again), Inserted::Exists, "{if_pending:?}");
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
    assert_eq!(bench.insert_as(other_topic), Inserted::Created { replaced: None }, "keys belong to topics");
    for (due, if_pending, expected) in [
        (10, IfPending::Keep, Inserted::Kept(holder)),
        (10, IfPending::Refuse, Inserted::Kept(holder)),
        (60, IfPending::Earlier, Inserted::Kept(holder)),
        (40, IfPending::Earlier, Inserted::Moved(holder, start + 40)),
        (30, IfPending::Later, Inserted::Kept(holder)),
        (70, IfPending::Later, Inserted::Moved(holder, start + 70)),
    ] {
        assert_eq!(bench.insert_as(keyed(start + due, if_pending)), expected, "{if_pending:?} at {due}");
    }
    let new = keyed(start + 20, IfPending::Replace);
    let id = new.id;
    assert_eq!(bench.insert_as(new), Inserted::Created { replaced: Some(holder) });
    assert_eq!(bench.pending()[0], Position { due: start + 20, id });
    assert_eq!(bench.pending().len(), 2, "the replaced timeout has ended");
}

fn running_keys<S: Store>(bench: &mut Bench<S>) {
    let due = bench.past();
    let first = keyed(due, IfPending::Keep);
    let holder = first.id;
    bench.insert_as(first);
    bench.attempt(holder);
    for if_pending in [IfPending::Keep, IfPending::Replace, IfPending::Earlier, IfPending::Later, IfPending::Refuse] {
        let due = bench.future();
        assert_eq!(bench.insert_as(keyed(due, if_pending)), Inserted::Kept(holder), "{if_pending:?}");
    }
}

fn targets<S: Store>(bench: &mut Bench<S>) {
    let (past, future) = (bench.past(), bench.future());
    let key = || Target::Key { topic: "topic".to_owned(), key: "key".to_owned() };
    let cancel = |bench: &mut Bench<S>, target: Target| bench.write(|batch| batch.cancels.push(target)).cancels[0];
    let reset = |bench: &mut Bench<S>, target: Target, due| {
        bench.write(|batch| batch.resets.push(Reset { target, due })).resets[0]
    };
    assert_eq!((cancel(bench, key()), reset(bench, key(), 1)), (Changed::Unknown, Changed::Unknown));
    let new = keyed(past, IfPending::Keep);
    let id = new.id;
    bench.insert_as(new);
    assert_eq!(reset(bench, key(), future), Changed::Changed(id));
    assert_eq!(bench.pending(), [Position { due: future, id }]);
    assert_eq!(reset(bench, Target::Id(id), past), Changed::Changed(id));
    bench.attempt(id);
    assert_eq!((cancel(bench, key()), reset(bench, Target::Id(id), 1)), (Changed::Running, Changed::Running));
    let other = bench.insert(past);
    assert_eq!(cancel(bench, Target::Id(other)), Changed::Changed(other));
    assert_eq!(cancel(bench, Target::Id(other)), Changed::Unknown);
    assert_eq!(bench.begin(other), crate::transaction::Begun::Gone, "it was cancelled");
}

fn dead_letters<S: Store>(bench: &mut Bench<S>) {
    let due = bench.past();
    let id = bench.insert(due);
    let attempt = bench.attempt(id).attempt;
    let bury = |attempt| Bury { id, attempt, reason: "broken".to_owned() };
    assert!(!bench.write(|batch| batch.buries.push(bury(attempt + 1))).buries[0], "not the last attempt");
    assert!(bench.write(|batch| batch.buries.push(bury(attempt))).buries[0]);
    assert_eq!(bench.pending(), []);
    let letters = ok(bench.store.dead_letters(Some("topic"), None, 9), bench.name);
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].id, &*letters[0].reason, &*letters[0].payload), (id, "broken", &b"payload"[..]));
    assert_eq!(ok(bench.store.dead_letters(Some("other"), None, 9), bench.name), []);
    assert_eq!(ok(bench.store.dead_letters(None, Some(id), 9), bench.name), [], "behind the id");
    assert_eq!(bench.insert_as(Insert::new(id, due, "topic")), Inserted::Exists);
    assert!(bench.write(|batch| batch.requeues.push(Requeue { id, due })).requeues[0]);
    let again = bench.attempt(id);
    assert_eq!((again.attempt, again.forgiven), (attempt + 1, attempt), "attempts go on, and count anew");
    bench.write(|batch| batch.buries.push(bury(again.attempt)));
    assert_eq!(ok(bench.store.counts(), bench.name), Counts { pending: 0, dead: 1 });
    assert!(bench.write(|batch| batch.purges.push(id)).purges[0]);
    assert!(!bench.write(|batch| batch.purges.push(id)).purges[0]);
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

fn batches<S: Store>(bench: &mut Bench<S>) {
    let (past, future) = (bench.past(), bench.future());
    let ids: Vec<TimeoutId> = (0..6).map(|_| bench.insert(past)).collect();
    (2..5).for_each(|n| _ = bench.attempt(ids[n]));
    let answers = bench.write(|batch| {
        batch.inserts.push(Insert::new(TimeoutId::new(), future, "topic"));
        batch.resets.push(Reset { target: Target::Id(ids[0]), due: future });
        batch.cancels.push(Target::Id(ids[1]));
        batch.dones.push(crate::transaction::Done { id: ids[2], attempt: 1, next: None });
        batch.retries.push(crate::transaction::Retry { id: ids[3], attempt: 1, due: future, forgive: false });
        batch.buries.push(Bury { id: ids[4], attempt: 1, reason: String::new() });
        batch.begins.push(ids[5]);
    });
    assert_eq!(answers.resets, [Changed::Changed(ids[0])]);
    assert_eq!(answers.cancels, [Changed::Changed(ids[1])]);
    assert_eq!((answers.dones, answers.retries, answers.buries), (vec![true], vec![true], vec![true]));
    assert!(matches!(answers.begins[0], crate::transaction::Begun::Attempt(_)));
    assert_eq!(bench.pending().len(), 3);
}

fn empty_batches<S: Store>(bench: &mut Bench<S>) {
    assert_eq!(bench.write(|_| ()), crate::transaction::Answers::default());
}

/// The keeper refuses to insert such a key, but a call may address one, and the message of a panic
/// may contain the character.
fn nul_characters<S: Store>(bench: &mut Bench<S>) {
    let due = bench.past();
    let id = bench.insert(due);
    let attempt = bench.attempt(id).attempt;
    let key = Target::Key { topic: "topic".to_owned(), key: "a\0b".to_owned() };
    let answers = bench.write(|batch| {
        batch.cancels.push(key);
        batch.buries.push(Bury { id, attempt, reason: "bad\0reason".to_owned() });
    });
    assert_eq!((answers.cancels, answers.buries), (vec![Changed::Unknown], vec![true]));
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
