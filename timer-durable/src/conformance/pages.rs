//! Checks of the list, read in pages.

use super::{Bench, Check, ok};
use crate::TimeoutId;
use crate::store::{Counts, Micros, Position, Store};
use crate::transaction::{Insert, Operation, Target};
use std::collections::BTreeSet;

pub(super) fn checks<S: Store>() -> Vec<Check<S>> {
    vec![
        ("pages are in the order of due time and id", pages),
        ("a page has timeouts of minutes, hours and weeks in order", distances),
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

/// Executes random inserts, resets and cancels, and compares pages with a sorted set.
fn distances<S: Store>(bench: &mut Bench<S>) {
    let mut random = fastrand::Rng::with_seed(7);
    let mut expected = BTreeSet::<Position>::new();
    let start = bench.future();
    for _ in 0..40 {
        let mut batch = Vec::new();
        let due = |random: &mut fastrand::Rng| -> Micros {
            let hours = random.choice([1, 3, 24, 24 * 60]).unwrap_or(1);
            start + random.i64(0..hours * 3_600_000_000)
        };
        let mut untouched: Vec<Position> = expected.iter().copied().collect();
        random.shuffle(&mut untouched);
        for _ in 0..random.usize(0..20) {
            let insert = Insert::new(TimeoutId::new(), due(&mut random), "topic");
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
            assert_eq!(bench.load(from..until, random.usize(1..50)), page, "{from:?}..{until:?}");
        }
    }
    let all: Vec<Position> = expected.iter().copied().collect();
    assert_eq!(bench.pending(), all);
    assert_eq!(ok(bench.store.counts(), bench.name), Counts { pending: all.len() as u64, dead: 0 });
}
