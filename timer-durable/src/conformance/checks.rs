//! The checks, each of one promise of the trait.

use super::{Bench, new_insert};
use crate::row::Place;
use crate::store::{Batch, Begun, Bury, Changed, Done, Ended, IfPending, Inserted, Requeued, Reset, Retry, Target};

type Check = (&'static str, fn(&mut Bench<'_>));

pub(super) const ALL: &[Check] = &[
    ("an insert is in the list", |b| {
        let id = b.insert(None);
        let row = b.store.find(&id.into()).ok().flatten();
        assert!(
            row.is_some_and(|row| row.content.payload == [1, 2, 3] && row.attempt == 0 && !row.running),
            "{}",
            b.name
        );
    }),
    ("a repeated insert makes no second timeout", |b| {
        let insert = new_insert(Some("key"), 5, IfPending::Replace);
        let batch = Batch { inserts: vec![insert], ..Batch::default() };
        assert_eq!(b.write(batch.clone()).inserts, [Inserted::New], "{}", b.name);
        assert_eq!(b.write(batch).inserts, [Inserted::Exists], "{}", b.name);
        assert_eq!(b.store.count().map(|count| count.pending), Ok(1), "{}", b.name);
    }),
    ("begins count the attempts", |b| {
        let id = b.insert(None);
        for expected in 1..=3 {
            let Begun::Attempt(row) = b.begin(id) else { panic!("{}: no attempt", b.name) };
            assert_eq!((row.attempt, row.running), (expected, true), "{}", b.name);
            let due = b.store.now() - 1;
            let retry = Retry { id, attempt: expected, due, next_run: false, write: None };
            let retries = b.write(Batch { retries: vec![retry], ..Batch::default() }).retries;
            assert_eq!(retries, [Ended::Written], "{}", b.name);
        }
    }),
    ("a timeout is not begun twice", |b| {
        let id = b.insert(None);
        assert!(matches!(b.begin(id), Begun::Attempt(_)), "{}", b.name);
        assert_eq!(b.begin(id), Begun::Gone, "{}", b.name);
    }),
    ("a timeout is not begun early", |b| {
        let due = b.store.now() + 3_600_000_000;
        let (id, _) = b.insert_at(None, due, IfPending::Refuse);
        assert_eq!(b.begin(id), Begun::NotYet(due), "{}", b.name);
    }),
    ("a rejoin makes begun timeouts pending", |b| {
        let id = b.insert(None);
        assert!(matches!(b.begin(id), Begun::Attempt(_)), "{}", b.name);
        assert_eq!(b.store.rejoin(), Ok(()), "{}", b.name);
        assert!(matches!(b.begin(id), Begun::Attempt(row) if row.attempt == 2), "{}", b.name);
        let done = [1, 2].map(|attempt| {
            let done = vec![Done { id, attempt, write: None }];
            b.write(Batch { done, ..Batch::default() }).done.remove(0)
        });
        assert_eq!(done, [Ended::Stale, Ended::Written], "{}", b.name);
    }),
    ("a result that is repeated undoes nothing", |b| {
        let id = b.insert(None);
        b.begin(id);
        let retry = Retry { id, attempt: 1, due: 7, next_run: false, write: None };
        b.write(Batch { retries: vec![retry.clone()], ..Batch::default() });
        let reset = Reset { target: id.into(), due: 99 };
        assert_eq!(
            b.write(Batch { resets: vec![reset], ..Batch::default() }).resets,
            [Changed::Done(id)],
            "{}",
            b.name
        );
        assert_eq!(b.write(Batch { retries: vec![retry], ..Batch::default() }).retries, [Ended::Stale], "{}", b.name);
        assert!(b.store.find(&id.into()).is_ok_and(|row| row.is_some_and(|row| row.due == 99)), "{}", b.name);
    }),
    ("cancel and begin decide each other", |b| {
        let (first, second) = (b.insert(Some("a")), b.insert(Some("b")));
        let cancel = |target: Target| Batch { cancels: vec![target], ..Batch::default() };
        assert_eq!(b.write(cancel(first.into())).cancels, [Changed::Done(first)], "{}", b.name);
        assert_eq!(b.begin(first), Begun::Gone, "{}", b.name);
        b.begin(second);
        let key = Target::Key { topic: "topic".into(), key: "b".into() };
        assert_eq!(b.write(cancel(key)).cancels, [Changed::Running(second)], "{}", b.name);
        let key = Target::Key { topic: "topic".into(), key: "a".into() };
        assert_eq!(b.write(cancel(key)).cancels, [Changed::Unknown], "{}", b.name);
    }),
    ("the second insert of a key follows its rule", |b| {
        let (first, _) = b.insert_at(Some("key"), 100, IfPending::Refuse);
        let kept = Inserted::Kept { id: first, due: 100 };
        for (rule, due, expected) in [
            (IfPending::Keep, 50, kept),
            (IfPending::Refuse, 50, kept),
            (IfPending::Earlier, 100, kept),
            (IfPending::Later, 100, kept),
            (IfPending::Earlier, 99, Inserted::Replaced(first)),
        ] {
            assert_eq!(b.insert_at(Some("key"), due, rule).1, expected, "{}: {rule:?}", b.name);
        }
        let (last, inserted) = b.insert_at(Some("key"), 500, IfPending::Replace);
        assert!(matches!(inserted, Inserted::Replaced(id) if id != first), "{}", b.name);
        b.begin(last);
        assert_eq!(b.insert_at(Some("key"), 5, IfPending::Replace).1, Inserted::Running(last), "{}", b.name);
        assert_eq!(b.store.count().map(|count| count.pending), Ok(1), "{}", b.name);
    }),
    ("a dead letter keeps its content and can return", |b| {
        let id = b.insert(Some("key"));
        b.begin(id);
        let bury = Bury { id, attempt: 1, reason: "why".into() };
        assert_eq!(b.write(Batch { buries: vec![bury], ..Batch::default() }).buries, [Ended::Written], "{}", b.name);
        let letters = b.store.dead_letters(None, 10).unwrap_or_default();
        assert!(letters.len() == 1 && letters[0].reason == "why", "{}", b.name);
        assert_eq!(letters[0].row.content.payload, [1, 2, 3], "{}", b.name);
        assert_eq!(b.store.dead_letters(Some(id), 10), Ok(vec![]), "{}", b.name);
        let other = b.insert(Some("key"));
        let requeue = Batch { requeues: vec![(id, 5)], ..Batch::default() };
        assert_eq!(b.write(requeue.clone()).requeues, [Requeued::KeyTaken(other)], "{}", b.name);
        b.write(Batch { cancels: vec![other.into()], ..Batch::default() });
        assert_eq!(b.write(requeue.clone()).requeues, [Requeued::Pending], "{}", b.name);
        assert_eq!(b.write(requeue).requeues, [Requeued::Unknown], "{}", b.name);
        assert!(matches!(b.begin(id), Begun::Attempt(row) if (row.attempt, row.base) == (2, 1)), "{}", b.name);
        let purge = Batch { purges: vec![id], ..Batch::default() };
        assert_eq!(b.write(purge).purges, [false], "{}", b.name);
    }),
    ("pages come in order and without gaps", |b| {
        let mut expected = Vec::new();
        for due in [30, 10, 20, 10, 40] {
            expected.push(Place { due, id: b.insert_at(None, due, IfPending::Refuse).0 });
        }
        expected.sort_unstable();
        let (mut page, mut from) = (Vec::new(), Place::START);
        while page.len() < 5 {
            assert_eq!(b.store.load(from, 2, &mut page), Ok(()), "{}", b.name);
            from = page[page.len() - 1].next();
        }
        assert_eq!(page, expected, "{}", b.name);
    }),
];
