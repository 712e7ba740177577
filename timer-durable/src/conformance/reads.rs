//! Checks of reading back.

use super::{Bench, Check, ok};
use crate::TimeoutId;
use crate::store::{Filter, Micros, PendingRow, Store, TimeoutState};
use crate::transaction::{Insert, Operation, Target};

pub(super) fn checks<S: Store>() -> Vec<Check<S>> {
    vec![
        ("a timeout is read back with its state", states),
        ("a list shows the timeouts of its filter, page by page", lists),
        ("a list by state skips others", lists_by_state),
        ("timeouts that are due are counted by topic", due_by_topic),
    ]
}

fn keyed(due: Micros, topic: &str, key: Option<&str>) -> Insert {
    Insert { key: key.map(str::to_owned), ..Insert::new(TimeoutId::new(), due, topic) }
}

fn states<S: Store>(bench: &mut Bench<S>) {
    let name = bench.name;
    let due = bench.past();
    let target = || Target::Key { topic: "topic".to_owned(), key: "key".to_owned() };
    let get = |bench: &mut Bench<S>, target: Target| ok(bench.store.get(&target), name);
    assert_eq!(get(bench, target()), None, "{name}");
    let insert = Insert { period: Some(7), format: 3, payload: b"p\0".to_vec(), ..keyed(due, "topic", Some("key")) };
    let id = insert.id;
    bench.insert_as(insert);
    let found = get(bench, target()).unwrap_or_else(|| panic!("{name}: it is pending"));
    assert_eq!(get(bench, Target::Id(id)).as_ref(), Some(&found), "{name}");
    assert_eq!((found.id, &*found.topic, found.key.as_deref(), found.due), (id, "topic", Some("key"), due), "{name}");
    assert_eq!((found.period, &found.payload, found.attempt), (Some(7), &(3, b"p\0".to_vec()), 0), "{name}");
    assert_eq!((found.state, found.running_since), (TimeoutState::Pending, None), "{name}");

    let before = bench.store.now();
    let attempt = bench.attempt(id).attempt;
    let after = bench.store.now();
    let found = get(bench, target()).unwrap_or_else(|| panic!("{name}: it runs"));
    assert_eq!((found.state, found.attempt), (TimeoutState::Running, 1), "{name}");
    // The estimate of a server's clock may be off.
    let since = found.running_since.unwrap_or_default();
    assert!((before - 1_000_000..=after + 1_000_000).contains(&since), "{name}: {since} in {before}..={after}");

    let due = bench.future();
    assert!(bench.changes(Operation::Retry { id, attempt, due, forgive: false }));
    let found = get(bench, Target::Id(id)).unwrap_or_else(|| panic!("{name}: it waits"));
    assert_eq!((found.state, found.running_since, found.due), (TimeoutState::Retrying, None, due), "{name}");
    assert!(bench.changes(Operation::Cancel(Target::Id(id))));
    assert_eq!((get(bench, target()), get(bench, Target::Id(id))), (None, None), "{name}");
}

/// Reads all pages of a list.
fn list<S: Store>(bench: &mut Bench<S>, filter: &Filter, limit: usize) -> Vec<TimeoutId> {
    let mut rows: Vec<PendingRow> = Vec::new();
    loop {
        let page = ok(bench.store.list(filter, rows.last(), limit), bench.name);
        assert!(page.len() <= limit, "{}: {} rows instead of {limit}", bench.name, page.len());
        if page.is_empty() {
            return rows.into_iter().map(|row| row.id).collect();
        }
        rows.extend(page);
    }
}

fn lists<S: Store>(bench: &mut Bench<S>) {
    let name = bench.name;
    let start = bench.future();
    let mut random = fastrand::Rng::with_seed(5);
    let mut rows: Vec<Insert> = Vec::new();
    for n in 0..60 {
        // Some are due within an hour, some within weeks, and some at the same time.
        let due = start + random.choice([1, 2, 48, 24 * 30]).unwrap_or(1) * 3_600_000_000 + random.i64(0..3);
        let topic = random.choice(["a", "b"]).unwrap_or("a");
        let key = format!("{}/{n}", random.choice(["7", "70", "8", "\u{10ffff}"]).unwrap_or("7"));
        rows.push(keyed(due, topic, Some(&key).filter(|_| n % 5 > 0).map(String::as_str)));
    }
    bench.write(&rows.iter().cloned().map(Operation::Insert).collect::<Vec<_>>());
    rows.sort_by_key(|row| (row.due, row.id));
    let ids = |filter: &dyn Fn(&Insert) -> bool, rows: &[Insert]| -> Vec<TimeoutId> {
        rows.iter().filter(|row| filter(row)).map(|row| row.id).collect()
    };
    for limit in [1, 7, 100] {
        assert_eq!(list(bench, &Filter::new(), limit), ids(&|_| true, &rows), "{name}");
        assert_eq!(list(bench, &Filter::new().topic("a"), limit), ids(&|row| &*row.topic == "a", &rows), "{name}");
        let mut due = Filter::new();
        due.due = rows[10].due..rows[40].due;
        assert_eq!(list(bench, &due, limit), ids(&|row| due.due.contains(&row.due), &rows), "{name}");
    }
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    for prefix in ["", "7", "7/", "\u{10ffff}", "9"] {
        let shown = |row: &Insert| &*row.topic == "a" && row.key.as_deref().is_some_and(|key| key.starts_with(prefix));
        let filter = Filter::new().topic("a").key_prefix(prefix);
        assert_eq!(list(bench, &filter, 3), ids(&shown, &rows), "{name}: {prefix}");
    }
    assert_eq!(list(bench, &Filter::new().topic("a\0"), 9), [], "{name}");
}

fn due_by_topic<S: Store>(bench: &mut Bench<S>) {
    const HOUR: Micros = 3_600_000_000;
    let name = bench.name;
    let past = bench.past();
    let now = bench.store.now();
    for (topic, due) in
        [("a", past), ("a", now + HOUR), ("b", now + 2 * HOUR), ("b", now + 48 * HOUR), ("c", now + 72 * HOUR)]
    {
        bench.insert_as(keyed(due, topic, None));
    }
    let running = keyed(past, "b", None);
    let id = running.id;
    bench.insert_as(running);
    bench.attempt(id);
    let counts = |bench: &mut Bench<S>, delays: &[Micros]| {
        let due = ok(bench.store.due_within(delays), name);
        due.into_iter().map(|due| (due.topic, due.counts)).collect::<Vec<_>>()
    };
    let due = counts(bench, &[0, HOUR / 2, HOUR, 2 * HOUR, 49 * HOUR]);
    assert_eq!(due, [("a".to_owned(), vec![1, 1, 2, 2, 2]), ("b".to_owned(), vec![0, 0, 0, 1, 2])], "{name}");
    assert_eq!(counts(bench, &[]), [], "{name}");
}

fn lists_by_state<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    let future = bench.future();
    let pending = [bench.insert(past), bench.insert(future), bench.insert(future + 24 * 3_600_000_000)];
    let running = bench.insert(past);
    let retrying = bench.insert(past);
    bench.attempt(running);
    let attempt = bench.attempt(retrying).attempt;
    assert!(bench.changes(Operation::Retry { id: retrying, attempt, due: future, forgive: false }));
    for (state, ids) in [
        (TimeoutState::Pending, &pending[..]),
        (TimeoutState::Running, &[running]),
        (TimeoutState::Retrying, &[retrying]),
    ] {
        assert_eq!(list(bench, &Filter::new().state(state), 2), ids, "{}: {state:?}", bench.name);
    }
    ok(bench.store.rejoin(), bench.name);
    assert_eq!(list(bench, &Filter::new().state(TimeoutState::Running), 2), [], "{}: by an old instance", bench.name);
}
