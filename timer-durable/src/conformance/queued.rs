//! Checks of calls that are queued beside a running attempt.

use super::{Bench, Check, ok};
use crate::TimeoutId;
use crate::store::{Filter, Micros, PendingRow, Position, Store, StoreError, StoredPending, TimeoutState};
use crate::transaction::{Attempt, IfPending, Insert, KeyEffect, KeyHolder, NextRun, Operation, Outcome, Target};
use std::thread;
use std::time::{Duration, Instant};

pub(super) fn checks<S: Store>() -> Vec<Check<S>> {
    vec![
        ("a call beside a running attempt is queued", queues),
        ("a queued call is read back, and is not pending", reads),
        ("a further call changes the queued one", further_calls),
        ("a queued call becomes pending when the timeout ends", ends),
        ("a call in the batch of the end comes after the queued one", later_calls),
        ("a queued call has its effect on a timeout that waits", waits),
        ("the follow-up of an attempt comes before the queued call", follow_ups),
        ("a cancel and a reset act on the queued call", cancels),
        ("a queued call has its effect before a new instance begins its timeout", instances),
        ("work of the user comes before the queued call", works),
    ]
}

const MINUTE: Micros = 60_000_000;

/// The end of the first attempt, after which the timeout is due again.
type End = fn(TimeoutId, Micros) -> Operation;

const RULES: [IfPending; 5] =
    [IfPending::Earlier, IfPending::Later, IfPending::Update, IfPending::Debounce, IfPending::Replace];

fn keyed(key: &str, due: Micros) -> Insert {
    Insert { key: Some(key.to_owned()), ..Insert::new(TimeoutId::new(), due, "topic") }
}

fn call(key: &str, due: Micros, if_pending: IfPending) -> Insert {
    Insert { if_pending, format: 3, payload: due.to_string().into_bytes(), ..keyed(key, due) }
}

fn by_key(key: &str) -> Target {
    Target::Key { topic: "topic".to_owned(), key: key.to_owned() }
}

/// Makes a timeout whose attempt runs.
fn run<S: Store>(bench: &mut Bench<S>, key: &str) -> TimeoutId {
    let insert = keyed(key, bench.past() - MINUTE);
    let id = insert.id;
    assert_eq!(bench.insert_as(insert), Outcome::Created { replaced: None }, "{key}");
    bench.attempt(id);
    id
}

/// Queues a call beside the attempt that runs.
fn queue<S: Store>(bench: &mut Bench<S>, call: &Insert) -> TimeoutId {
    assert_eq!(bench.insert_as(call.clone()), Outcome::Queued(call.id), "{}: {call:?}", bench.name);
    call.id
}

fn done(id: TimeoutId) -> Operation {
    Operation::Done { id, attempt: 1, next: None, then: Vec::new() }
}

fn get<S: Store>(bench: &mut Bench<S>, id: TimeoutId) -> Option<StoredPending> {
    ok(bench.store.get(&Target::Id(id)), bench.name)
}

/// Keeps the store up until it has reported a timeout.
fn reported<S: Store>(bench: &mut Bench<S>, id: TimeoutId) -> Position {
    let limit = Instant::now() + Duration::from_secs(10);
    while Instant::now() < limit {
        let upkeep = ok(bench.store.upkeep(&[]), bench.name);
        if let Some((position, topic)) = upkeep.foreign.into_iter().find(|(position, _)| position.id == id) {
            assert_eq!(topic, "topic", "{}", bench.name);
            return position;
        }
        let next = bench.store.next_upkeep().unwrap_or(limit);
        thread::park_timeout(next.min(limit).saturating_duration_since(Instant::now()));
    }
    panic!("{}: the timeout of a queued call was not reported", bench.name);
}

fn queues<S: Store>(bench: &mut Bench<S>) {
    let future = bench.future();
    for rule in RULES {
        let key = rule.name();
        let running = run(bench, key);
        for keeps in [IfPending::Keep, IfPending::Refuse] {
            assert_eq!(bench.insert_as(call(key, future, keeps)), Outcome::Kept(running), "{}: {rule:?}", bench.name);
        }
        let first = call(key, future, rule);
        queue(bench, &first);
        assert_eq!(bench.insert_as(first), Outcome::Exists, "{}: the call is repeated", bench.name);
        assert_eq!(bench.insert_as(call(key, future, IfPending::Keep)), Outcome::Kept(running), "{}", bench.name);
    }
    let many = [Operation::Insert(call("earlier", future, IfPending::Later))];
    match bench.store.write_all(&many) {
        Err(StoreError::Unsupported(_)) => {}
        outcomes => assert!(matches!(ok(outcomes, bench.name)[..], [Outcome::Queued(_)]), "{}", bench.name),
    }
}

fn reads<S: Store>(bench: &mut Bench<S>) {
    let name = bench.name;
    let due = bench.past();
    let running = run(bench, "a");
    let last = keyed("b", bench.future());
    bench.insert_as(last.clone());
    let call = Insert { period: Some(MINUTE), ..call("a", due, IfPending::Update) };
    let queued = queue(bench, &call);
    let found = get(bench, queued).unwrap_or_else(|| panic!("{name}: the call is read back"));
    assert_eq!((found.state, found.running_since, found.due), (TimeoutState::Queued, None, due), "{name}");
    assert_eq!((found.key, found.period, found.attempt), (Some("a".to_owned()), Some(MINUTE), 0), "{name}");
    assert_eq!(found.payload, (3, call.payload), "{name}");
    let holder = ok(bench.store.get(&by_key("a")), name).map(|holder| (holder.id, holder.state));
    assert_eq!(holder, Some((running, TimeoutState::Running)), "{name}");

    let list = |bench: &mut Bench<S>, filter: &Filter, limit| {
        let mut rows: Vec<PendingRow> = Vec::new();
        loop {
            let page = ok(bench.store.list(filter, rows.last(), limit), name);
            rows.extend(page.iter().cloned());
            if page.is_empty() {
                return rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
            }
        }
    };
    for limit in [1, 2, 9] {
        for filter in [Filter::new(), Filter::new().topic("topic").key_prefix("")] {
            assert_eq!(list(bench, &filter, limit), [running, queued, last.id], "{name}: {filter:?}, {limit}");
        }
        assert_eq!(list(bench, &Filter::new().state(TimeoutState::Queued), limit), [queued], "{name}");
        assert_eq!(list(bench, &Filter::new().state(TimeoutState::Running), limit), [running], "{name}");
    }
    assert_eq!(ok(bench.store.counts(), name).pending, 3, "{name}");
    assert_eq!(bench.begin(queued), Outcome::NotFound, "{name}");
    let rest = [Position { due: last.due, id: last.id }];
    assert_eq!(bench.pending(), rest, "{name}");
    ok(bench.store.rejoin(), name);
    assert_eq!(bench.pending().last(), rest.last(), "{name}");
    assert_eq!(bench.pending().len(), 2, "{name}: a new instance begins the timeout and not the call");
}

/// Each pair of calls has the effect of the table, with the first call as the holder.
fn further_calls<S: Store>(bench: &mut Bench<S>) {
    let due = bench.future();
    for first_rule in RULES {
        for (rule, offset) in RULES.into_iter().flat_map(|rule| [(rule, -MINUTE), (rule, 0), (rule, MINUTE)]) {
            let key = format!("{first_rule:?} {rule:?} {offset}");
            let what = format!("{}: {key}", bench.name);
            run(bench, &key);
            let first = Insert { cap: Some(due + 5), ..call(&key, due, first_rule) };
            queue(bench, &first);
            let second = call(&key, due + offset, rule);
            let holder = KeyHolder { due, planned: first.cap, attempts: 0, is_running: false };
            let effect = second.effect_on(&holder, bench.store.now());
            let outcome = bench.insert_as(second.clone());
            let (id, due, payload) = match effect {
                KeyEffect::Moved { due } => (first.id, due, first.payload),
                KeyEffect::Updated { due, .. } => (first.id, due, second.payload),
                KeyEffect::Replaced => (second.id, second.due, second.payload),
                KeyEffect::Kept | KeyEffect::Queued => (first.id, due, first.payload),
            };
            assert_eq!(outcome, Outcome::Queued(id), "{what}");
            let found = get(bench, id).unwrap_or_else(|| panic!("{what}"));
            assert_eq!((found.state, found.due, found.payload.1), (TimeoutState::Queued, due, payload), "{what}");
            assert_eq!(get(bench, first.id).is_some(), id == first.id, "{what}");
        }
    }
}

fn ends<S: Store>(bench: &mut Bench<S>) {
    let past = bench.past();
    for rule in RULES {
        let bury = |id| Operation::Bury { id, attempt: 1, reason: "broken".to_owned(), next: None };
        for (n, end) in [done, bury].into_iter().enumerate() {
            let key = format!("{rule:?} {n}");
            let what = format!("{}: {key}", bench.name);
            let running = run(bench, &key);
            let call = Insert { period: Some(MINUTE), max_lateness: Some(9), ..call(&key, past, rule) };
            let id = queue(bench, &call);
            assert!(bench.changes(end(running)), "{what}");
            assert_eq!(reported(bench, id), Position { due: past, id }, "{what}");
            let expected = Attempt {
                key: call.key.clone(),
                format: 3,
                payload: call.payload.clone(),
                period: call.period,
                max_lateness: call.max_lateness,
                ..Attempt::new(1, past, "topic")
            };
            assert_eq!(bench.attempt(id), expected, "{what}");
            assert_eq!(bench.insert_as(call), Outcome::Exists, "{what}: the call is repeated");
            assert!(bench.changes(done(id)), "{what}");
        }
    }
    assert_eq!(bench.pending(), [], "{}", bench.name);
    let id = run(bench, "end");
    let queued = queue(bench, &call("end", past, IfPending::Debounce));
    let late = Operation::Done { id, attempt: 2, next: None, then: Vec::new() };
    assert_eq!(bench.execute(late), Outcome::NotFound, "{}", bench.name);
    assert_eq!(get(bench, queued).map(|call| call.state), Some(TimeoutState::Queued), "{}: it runs", bench.name);
}

fn later_calls<S: Store>(bench: &mut Bench<S>) {
    let future = bench.future();
    let running = run(bench, "key");
    let first = queue(bench, &call("key", future, IfPending::Debounce));
    let second = call("key", future + 5, IfPending::Debounce);
    let outcomes = bench.write(&[done(running), Operation::Insert(second.clone())]);
    assert_eq!(outcomes[0], Outcome::Changed(running), "{}", bench.name);
    assert!(matches!(outcomes[1], Outcome::Queued(id) | Outcome::Moved(id, _) if id == first), "{}", bench.name);
    let found = ok(bench.store.get(&by_key("key")), bench.name).map(|found| (found.id, found.due, found.payload.1));
    assert_eq!(found, Some((first, future + 5, second.payload)), "{}", bench.name);
    assert_eq!(bench.pending(), [Position { due: future + 5, id: first }], "{}", bench.name);
}

/// After an end that leaves the timeout pending, the call has the effect of the table.
fn waits<S: Store>(bench: &mut Bench<S>) {
    let due = bench.future();
    let ends: [(&str, End); 4] = [
        ("retry", |id, due| Operation::Retry { id, attempt: 1, due, forgive: false }),
        ("later", |id, due| Operation::Postpone { id, attempt: 1, due, payload: None }),
        ("period", |id, due| Operation::Done { id, attempt: 1, next: Some(due), then: Vec::new() }),
        ("letter", |id, due| {
            let next = Some(NextRun { due, letter: TimeoutId::new() });
            Operation::Bury { id, attempt: 1, reason: "broken".to_owned(), next }
        }),
    ];
    for (kind, end) in ends {
        for (rule, offset) in RULES.into_iter().flat_map(|rule| [(rule, -MINUTE), (rule, MINUTE)]) {
            let key = format!("{kind} {rule:?} {offset}");
            let what = format!("{}: {key}", bench.name);
            let running = run(bench, &key);
            let call = call(&key, due + offset, rule);
            queue(bench, &call);
            assert!(bench.changes(end(running, due)), "{what}");
            let holder = KeyHolder { due, planned: None, attempts: 1, is_running: false };
            let (id, due, has_contents) = match call.effect_on(&holder, bench.store.now()) {
                KeyEffect::Moved { due } => (running, due, false),
                KeyEffect::Updated { due, .. } => (running, due, true),
                KeyEffect::Replaced => (call.id, call.due, true),
                KeyEffect::Kept | KeyEffect::Queued => (running, due, false),
            };
            let found = ok(bench.store.get(&by_key(&key)), bench.name).unwrap_or_else(|| panic!("{what}"));
            assert_eq!((found.id, found.due, found.payload.1 == call.payload), (id, due, has_contents), "{what}");
            assert!(matches!(found.state, TimeoutState::Pending | TimeoutState::Retrying), "{what}");
            let other = if id == running { call.id } else { running };
            assert_eq!(get(bench, other), None, "{what}");
            if due != holder.due || id != running {
                assert_eq!(reported(bench, id), Position { due, id }, "{what}");
            }
            assert_eq!(bench.insert_as(call), Outcome::Exists, "{what}: the call is repeated");
        }
    }
}

fn follow_ups<S: Store>(bench: &mut Bench<S>) {
    let future = bench.future();
    for (rule, is_replaced) in [(IfPending::Debounce, false), (IfPending::Replace, true)] {
        let running = run(bench, rule.name());
        let call = call(rule.name(), future + 5, rule);
        queue(bench, &call);
        let then = keyed(rule.name(), future);
        let end = Operation::Done { id: running, attempt: 1, next: None, then: vec![then.clone()] };
        assert!(bench.changes(end), "{}", bench.name);
        let id = if is_replaced { call.id } else { then.id };
        let found = ok(bench.store.get(&by_key(rule.name())), bench.name);
        let found = found.map(|found| (found.id, found.due, found.payload.1));
        assert_eq!(found, Some((id, future + 5, call.payload)), "{}: {rule:?}", bench.name);
        assert_eq!(reported(bench, id), Position { due: future + 5, id }, "{}: {rule:?}", bench.name);
    }
    assert_eq!(bench.pending().len(), 2, "{}", bench.name);
}

fn cancels<S: Store>(bench: &mut Bench<S>) {
    let name = bench.name;
    let future = bench.future();
    let id = run(bench, "key");
    for target in [by_key("key"), Target::Id(id)] {
        assert_eq!(bench.execute(Operation::Cancel(target.clone())), Outcome::Running, "{name}");
        let call = call("key", future, IfPending::Debounce);
        let queued = queue(bench, &call);
        let reset = |target, due| Operation::Reset { target, due };
        assert_eq!(bench.execute(reset(target.clone(), future + 7)), Outcome::Queued(queued), "{name}: {target:?}");
        assert_eq!(get(bench, queued).map(|call| call.due), Some(future + 7), "{name}");
        assert_eq!(bench.execute(reset(Target::Id(queued), future + 9)), Outcome::Queued(queued), "{name}");
        assert_eq!(get(bench, queued).map(|call| call.due), Some(future + 9), "{name}");
        assert_eq!(bench.execute(Operation::Cancel(target.clone())), Outcome::Queued(queued), "{name}: {target:?}");
        assert_eq!(get(bench, queued), None, "{name}");
        assert_eq!(bench.insert_as(call), Outcome::Exists, "{name}: the call is repeated");
        assert_eq!(bench.execute(reset(target, future)), Outcome::Running, "{name}");
    }
    let queued = queue(bench, &call("key", future, IfPending::Later));
    assert_eq!(bench.execute(Operation::Cancel(Target::Id(queued))), Outcome::Changed(queued), "{name}");
    assert_eq!(ok(bench.store.counts(), name).pending, 1, "{name}");
    assert_eq!(bench.execute(Operation::Cancel(by_key("key"))), Outcome::Running, "{name}");
    queue(bench, &call("key", future, IfPending::Later));
    bench.execute(Operation::Cancel(by_key("key")));
    assert!(bench.changes(done(id)), "{name}");
    assert_eq!(bench.pending(), [], "{name}: no call has an effect");
}

fn instances<S: Store>(bench: &mut Bench<S>) {
    let future = bench.future();
    let past = bench.past();
    for key in ["by key", "by id"] {
        let running = run(bench, key);
        let queued = queue(bench, &call(key, future, IfPending::Debounce));
        let target = if key == "by id" { Target::Id(queued) } else { by_key(key) };
        bench.execute(Operation::Cancel(target));
        ok(bench.store.rejoin(), bench.name);
        assert_eq!(bench.attempt(running).attempt, 2, "{}: the call is cancelled {key}", bench.name);
    }
    for (rule, due) in [(IfPending::Debounce, future), (IfPending::Replace, future), (IfPending::Earlier, past)] {
        let what = format!("{}: {rule:?}", bench.name);
        let running = run(bench, rule.name());
        let call = call(rule.name(), due, rule);
        queue(bench, &call);
        ok(bench.store.rejoin(), bench.name);
        assert_eq!(bench.begin(running), Outcome::NotFound, "{what}");
        let id = if rule == IfPending::Replace { call.id } else { running };
        let due = if rule == IfPending::Earlier { past - 1_000_000 } else { due };
        let reported = reported(bench, id);
        assert_eq!(reported.id, id, "{what}");
        if rule == IfPending::Earlier {
            assert!(reported.due <= due, "{what}: it was due earlier");
            assert_eq!(bench.attempt(id).attempt, 2, "{what}");
        } else {
            assert_eq!(reported.due, due, "{what}");
            assert_eq!(bench.begin(id), Outcome::NotYet(due), "{what}");
        }
    }
}

/// The work makes a call, so the queued call has its effect on the timeout of that call.
fn works<S: Store>(bench: &mut Bench<S>) {
    let future = bench.future();
    let id = run(bench, "key");
    let queued = call("key", future, IfPending::Debounce);
    queue(bench, &queued);
    let next = keyed("key", future + 5);
    let mut fails = true;
    for outcome in [false, true] {
        let result = bench.store.transact(&mut |tx, _| {
            assert_eq!(tx.execute(&done(id)), Ok(Outcome::Changed(id)));
            assert_eq!(tx.execute(&Operation::Insert(next.clone())), Ok(Outcome::Created { replaced: None }));
            if fails { Err(StoreError::Failed("the work fails".to_owned())) } else { Ok(()) }
        });
        match result {
            Err(StoreError::Unsupported(_)) => return,
            result => assert_eq!(result.is_ok(), outcome, "{}: {result:?}", bench.name),
        }
        fails = false;
    }
    let found = ok(bench.store.get(&by_key("key")), bench.name).map(|found| (found.id, found.due, found.payload.1));
    assert_eq!(found, Some((next.id, future, queued.payload)), "{}", bench.name);
    assert_eq!(reported(bench, next.id), Position { due: future, id: next.id }, "{}", bench.name);
    assert_eq!(bench.pending().len(), 1, "{}", bench.name);
}
