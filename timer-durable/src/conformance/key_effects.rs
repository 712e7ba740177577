//! The table of [`Insert::effect_on`], row by row, for timeouts in each state.

use super::{Bench, Check};
use crate::TimeoutId;
use crate::store::{Micros, Position, Store};
use crate::transaction::{IfPending, Insert, KeyEffect, KeyHolder, Operation, Outcome};

pub(super) fn checks<S: Store>() -> Vec<Check<S>> {
    vec![("a call has its effect on the timeout with its key", effects)]
}

const MINUTE: Micros = 60_000_000;
const HOUR: Micros = 60 * MINUTE;

/// The state of the timeout that has the key.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    New,
    Capped,
    Retried,
    Running,
}

/// Calls by their rules, their due times relative to that of the holder, their periods and their
/// caps.
const CALLS: [(IfPending, Micros, Option<Micros>, Option<Micros>); 17] = [
    (IfPending::Keep, 5, None, None),
    (IfPending::Refuse, 5, None, None),
    (IfPending::Earlier, -5, None, None),
    (IfPending::Earlier, 0, None, None),
    (IfPending::Earlier, 5, None, None),
    (IfPending::Later, -5, None, None),
    (IfPending::Later, 0, None, None),
    (IfPending::Later, 5, None, None),
    (IfPending::Update, -5, None, None),
    (IfPending::Update, 5, None, None),
    (IfPending::Update, 5, Some(MINUTE), None),
    (IfPending::Update, -5, Some(Micros::MAX), None),
    (IfPending::Debounce, -5, None, None),
    (IfPending::Debounce, 5, None, None),
    (IfPending::Debounce, 5, None, Some(2)),
    (IfPending::Replace, 5, None, None),
    (IfPending::Replace, 5, None, Some(7)),
];

fn effects<S: Store>(bench: &mut Bench<S>) {
    let mut pending = Vec::new();
    for state in [State::New, State::Capped, State::Retried, State::Running] {
        for (n, (if_pending, offset, period, cap)) in CALLS.into_iter().enumerate() {
            for due in [bench.past() - MINUTE, bench.future()] {
                let key = format!("{state:?} {n} {due}");
                let Some((id, holder)) = make_holder(bench, state, &key, due) else { continue };
                let call = Insert {
                    if_pending,
                    period,
                    cap: cap.map(|cap| due + cap),
                    format: 3,
                    payload: b"call".to_vec(),
                    max_lateness: Some(HOUR),
                    ..insert(&key, due + offset)
                };
                pending.extend(check(bench, &call, id, &holder));
            }
        }
    }
    pending.sort_unstable();
    assert_eq!(bench.pending(), pending, "{}: all others run", bench.name);
}

fn insert(key: &str, due: Micros) -> Insert {
    Insert { key: Some(key.to_owned()), ..Insert::new(TimeoutId::new(), due, "topic") }
}

/// Makes a timeout that is due at `due`. One that runs is not due in the future.
fn make_holder<S: Store>(bench: &mut Bench<S>, state: State, key: &str, due: Micros) -> Option<(TimeoutId, KeyHolder)> {
    let past = bench.past();
    let is_running = state == State::Running;
    if is_running && due > past {
        return None;
    }
    let cap = (state == State::Capped).then_some(due + 3);
    let begins = if state == State::Retried { past } else { due };
    let new = Insert { cap, ..insert(key, begins) };
    assert_eq!(bench.insert_as(new.clone()), Outcome::Created { replaced: None }, "{key}");
    if state == State::Retried || is_running {
        bench.attempt(new.id);
    }
    if state == State::Retried {
        assert!(bench.changes(Operation::Retry { id: new.id, attempt: 1, due, forgive: false }), "{key}");
    }
    let attempts = u32::from(state == State::Retried || is_running);
    let planned = if state == State::Retried { Some(begins) } else { cap };
    Some((new.id, KeyHolder { due, planned, attempts, is_running }))
}

/// Makes a call and compares its effect with the table. A new due time may depend on the time of
/// the call. Begins the timeout that has the key then, or returns its position if it is not due.
fn check<S: Store>(bench: &mut Bench<S>, call: &Insert, id: TimeoutId, holder: &KeyHolder) -> Option<Position> {
    let first = call.effect_on(holder, bench.store.now());
    let outcome = bench.insert_as(call.clone());
    let last = call.effect_on(holder, bench.store.now());
    let what = format!("{}: {:?} on {holder:?}, {outcome:?}", bench.name, call);
    let (id, due, planned) = match (first, last, outcome) {
        (KeyEffect::Kept, _, Outcome::Kept(kept)) if kept == id => (id, holder.due, holder.planned),
        (KeyEffect::Queued, _, Outcome::Queued(queued)) if queued == call.id => (id, holder.due, holder.planned),
        (KeyEffect::Moved { due }, _, Outcome::Moved(moved, now)) if moved == id && now == due => (id, due, None),
        (
            KeyEffect::Updated { due: first, planned },
            KeyEffect::Updated { due: last, .. },
            Outcome::Moved(moved, due),
        ) if moved == id && (first..=last).contains(&due) => (id, due, planned),
        (KeyEffect::Replaced, _, Outcome::Created { replaced: Some(replaced) }) if replaced == id => {
            (call.id, call.due, call.cap)
        }
        _ => panic!("{what}"),
    };
    if holder.is_running {
        return None;
    } else if due > bench.store.now() {
        return Some(Position { due, id });
    }
    let attempt = bench.attempt(id);
    // A cap ends with the first attempt. The next run of a periodic timeout counts from the due
    // time.
    assert_eq!((attempt.due, attempt.planned), (due, planned.map_or(due, |planned| planned.min(due))), "{what}");
    let has_contents = matches!(first, KeyEffect::Updated { .. } | KeyEffect::Replaced);
    assert_eq!(attempt.payload == call.payload, has_contents, "{what}");
    assert_eq!((attempt.period, attempt.format), if has_contents { (call.period, 3) } else { (None, 0) }, "{what}");
    assert_eq!((attempt.max_lateness, attempt.key), (has_contents.then_some(HOUR), call.key.clone()), "{what}");
    None
}
