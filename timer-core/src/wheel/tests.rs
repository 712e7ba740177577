//! Tests of both raw wheels, among them random operations after each of which the invariants hold.

use super::bucket::MIN_CAPACITY;
use super::{Bucket, Location, RawHashed, RawHierarchical, RawWheel, Tracker};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;

/// A tracker that keeps the location of each value in the wheel.
#[derive(Default)]
pub(super) struct Tracked(BTreeMap<u32, Location>);

impl Tracked {
    pub(super) fn location(&self, value: u32) -> Location {
        self.0.get(&value).copied().unwrap_or(Location::NONE)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }

    pub(super) fn forget(&mut self, value: u32) {
        assert!(self.0.remove(&value).is_some(), "a value left that was not in the wheel");
    }
}

impl Tracker<u32> for Tracked {
    fn moved(&mut self, value: &u32, location: Location) {
        self.0.insert(*value, location);
    }
}

/// The parts of a wheel that only tests look at.
pub(super) trait Check: RawWheel<Value = u32, Tracker = Tracked> {
    /// Asserts the invariants of the marks, the bounds and the locations.
    fn check(&self);

    /// Returns the numbers of values and of levels or lists for which there is memory.
    fn room(&self) -> (usize, usize);
}

/// Moves the clock, takes out all due values, and checks the wheel.
pub(super) fn advance<W: Check>(wheel: &mut W, now: u64) -> Vec<u32> {
    let due = take_all_due(wheel, now, |_| ());
    wheel.check();
    due
}

/// Moves the clock and takes out all due values. Calls `step` after each step.
fn take_all_due<W: Check>(wheel: &mut W, now: u64, step: impl Fn(&W)) -> Vec<u32> {
    let (mut due, mut taken) = (Vec::new(), Bucket::default());
    wheel.base_mut().take_overdue(&mut taken);
    loop {
        let mut some = Vec::new();
        keep(&mut taken, &mut some);
        due.append(&mut gone(wheel, some));
        step(wheel);
        if !wheel.take_next(now, &mut taken) {
            assert!(taken.is_empty());
            return due;
        }
        drop(wheel.base_mut().take_discarded());
    }
}

/// Moves the values of a step to the end of `due`.
fn keep(taken: &mut Bucket<u32>, due: &mut Vec<(u64, u32)>) {
    taken.drain(|chunk| due.extend(chunk.drain()));
}

/// Takes out all values.
fn drain(wheel: &mut impl Check) -> Vec<u32> {
    let out = wheel.drain().collect();
    gone(wheel, out)
}

fn gone(wheel: &mut impl Check, out: Vec<(u64, u32)>) -> Vec<u32> {
    out.into_iter().inspect(|(_, value)| wheel.base_mut().tracker.forget(*value)).map(|(_, value)| value).collect()
}

#[derive(Clone, Debug)]
enum Op {
    /// The number of values, the delay of the first one, and the ticks between two of them.
    Insert(u8, u64, u64),
    Remove(usize),
    Advance(u64),
    AdvanceToNext,
    /// Takes some steps towards a tick, and puts back all due values but the first few.
    AdvanceHalf(u64, usize, usize),
    Drain,
}

fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 0u64..70,
        3 => (0u32..64, -1i64..2).prop_map(|(k, d)| (1u64 << k).wrapping_add_signed(d)),
        2 => 0u64..10_000,
        1 => Just(u64::MAX),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => (1u8..CROWD, delay(), 0u64..600).prop_map(|(n, delay, apart)| Op::Insert(n, delay, apart)),
        40 => any::<usize>().prop_map(Op::Remove),
        10 => (0u64..5000).prop_map(Op::Advance),
        2 => (0u32..50).prop_map(|k| Op::Advance(1 << k)),
        10 => Just(Op::AdvanceToNext),
        6 => (delay(), 1usize..5, 0usize..20).prop_map(|(by, steps, kept)| Op::AdvanceHalf(by, steps, kept)),
        1 => Just(Op::Drain),
    ]
}

/// An insertion of at least this many values is checked only after the last one.
const CROWD: u8 = 20;

/// Inserts enough values for a cascade of several steps.
fn crowd() -> impl Strategy<Value = Op> {
    (CROWD..100, delay(), 0u64..100).prop_map(|(n, delay, apart)| Op::Insert(n, delay, apart))
}

fn run<W: Check>(mut wheel: W, uptime: u64, ops: &[Op]) {
    let mut live: BTreeMap<u32, u64> = BTreeMap::new();
    let mut serial = 0;
    advance(&mut wheel, uptime);
    for op in ops {
        match *op {
            Op::Insert(count, delay, apart) => {
                for n in 0..u64::from(count) {
                    let deadline = wheel.base().now.saturating_add(delay).saturating_add(n * apart);
                    wheel.insert(deadline, serial);
                    live.insert(serial, deadline);
                    serial += 1;
                    if count < CROWD {
                        wheel.check();
                    }
                }
            }
            Op::Remove(any) => {
                if let Some(value) = live.keys().nth(any % live.len().max(1)).copied() {
                    let location = wheel.base().tracker.location(value);
                    assert_eq!(wheel.get(location), live.remove(&value).map(|deadline| (deadline, &value)));
                    assert_eq!(wheel.remove(location, |_| false), None);
                    assert_eq!(wheel.remove(location, |at| *at == value), Some(value));
                    wheel.base_mut().tracker.forget(value);
                }
            }
            Op::Advance(by) => advance_model(&mut wheel, &mut live, by),
            Op::AdvanceToNext => {
                if let Some(next) = wheel.next_deadline() {
                    let by = next - wheel.base().now;
                    advance_model(&mut wheel, &mut live, by);
                }
            }
            Op::AdvanceHalf(by, steps, kept) => {
                let (from, to) = (wheel.base().now, wheel.base().now.saturating_add(by));
                let (mut due, mut taken) = (Vec::new(), Bucket::default());
                for _ in 0..steps {
                    let more = wheel.take_next(to, &mut taken);
                    assert!(more || taken.is_empty());
                    assert!((from..=to).contains(&wheel.base().now));
                    keep(&mut taken, &mut due);
                }
                for (nth, (deadline, value)) in due.into_iter().enumerate() {
                    assert!(deadline <= to && live.get(&value) == Some(&deadline), "early, or twice");
                    wheel.base_mut().tracker.forget(value);
                    if nth < kept {
                        live.remove(&value);
                    } else {
                        wheel.insert(deadline, value);
                    }
                }
            }
            Op::Drain => {
                let mut all = drain(&mut wheel);
                all.sort_unstable();
                assert!(all.iter().eq(live.keys()), "a drain returns all values");
                live.clear();
                assert_eq!(wheel.room(), (0, 0));
            }
        }
        wheel.check();
        assert_eq!(wheel.base().len, live.len());
        for (value, deadline) in &live {
            assert_eq!(wheel.get(wheel.base().tracker.location(*value)), Some((*deadline, value)));
        }
        let earliest = live.values().min().copied();
        assert_eq!(wheel.next_deadline().is_none(), earliest.is_none());
        let due = earliest.is_some_and(|earliest| earliest <= wheel.base().now);
        assert!(due || !wheel.base().has_overdue(), "an overdue value is due");
        assert!(
            !due || wheel.base().has_overdue() || wheel.earliest().is_some_and(|earliest| earliest <= wheel.base().now)
        );
        if let (Some(next), Some(earliest)) = (wheel.next_deadline(), earliest) {
            assert!(next <= earliest.max(wheel.base().now.saturating_add(1)));
            assert!(next > wheel.base().now || next == u64::MAX);
        }
    }
}

/// Advances the clock and asserts that exactly the due values come out.
fn advance_model<W: Check>(wheel: &mut W, live: &mut BTreeMap<u32, u64>, by: u64) {
    let to = wheel.base().now.saturating_add(by);
    let steps = Cell::new(0);
    let check = |wheel: &W| {
        if steps.replace(steps.get() + 1) < 4 {
            wheel.check();
        }
    };
    for value in take_all_due(wheel, to, check) {
        assert!(live.remove(&value).is_some_and(|deadline| deadline <= to), "early, or twice");
    }
    assert_eq!(wheel.base().now, to);
    assert!(live.values().all(|deadline| *deadline > to));
}

/// The invariants are checked after each operation, which takes most of the time. The optimized
/// tests of `ci --long` have time for more.
const CASES: u32 = if cfg!(debug_assertions) { 48 } else { 1_000 };

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    // Guards against a fault in which a removal did not clear the mark of an occupied bucket.
    #[test]
    fn random_operations_keep_the_invariants_of_the_levels(
        uptime in delay(),
        ops in prop::collection::vec(prop_oneof![40 => op(), 1 => crowd()], 0..120),
    ) {
        run(RawHierarchical::new(Tracked::default()), uptime, &ops);
    }

    #[test]
    fn random_operations_keep_the_invariants_of_the_ring(
        slots in prop::sample::select(vec![1usize, 2, 8, 64, 512, 1 << 14, 1 << 16]),
        uptime in delay(),
        ops in prop::collection::vec(op(), 0..120),
    ) {
        run(RawHashed::new(slots, Tracked::default()), uptime, &ops);
    }
}

/// Inserts and soon removes many values beside `standing` ones. Returns the memory that is left, as
/// [`Check::room`] does.
fn churn<W: Check>(mut wheel: W, standing: u32, passing: bool) -> (usize, usize) {
    let mut seed = 1u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        seed >> 33
    };
    for value in 0..standing {
        wheel.insert((1 << 40) + u64::from(value), value);
    }
    let mut waiting = std::collections::VecDeque::new();
    for value in standing..standing + 10_000 {
        wheel.insert(wheel.base().now + 1 + random() % 3_600_000, value);
        waiting.push_back(value);
        if waiting.len() > 100
            && let Some(value) = waiting.pop_front()
        {
            let location = wheel.base().tracker.location(value);
            if wheel.remove(location, |at| *at == value).is_some() {
                wheel.base_mut().tracker.forget(value);
            }
        }
        if passing {
            let now = wheel.base().now + random() % 50;
            take_all_due(&mut wheel, now, |_| ());
        }
    }
    wheel.check();
    wheel.room()
}

#[test]
fn values_removed_at_once_leave_no_memory() {
    for passing in [false, true] {
        for standing in [0, 1000] {
            // Up to 100 values at a time are in the wheel beside the standing ones. Each empty
            // bucket keeps four slots.
            let (room, levels) = churn(RawHierarchical::new(Tracked::default()), standing, passing);
            assert!(room < 4 * (standing as usize + 100) + 11 * 64 * 4 && levels <= 11, "{room}, {levels}");
            for (slots, lists) in [(1, 1), (512, 512), (1 << 20, 1 << 14), (1 << 30, 1 << 14)] {
                let (room, _) = churn(RawHashed::new(slots, Tracked::default()), standing, passing);
                assert!(room < 4 * (standing as usize + 100) + 4 * lists, "{room} of {slots}");
            }
        }
    }
}

#[test]
fn a_location_in_no_wheel_names_nothing() {
    fn none<W: Check>(mut wheel: W) {
        wheel.insert(5, 1);
        let beyond =
            [Location::NONE, Location::new(u32::MAX - 1, 0), Location::new(u32::MAX - 2, 0), Location::new(5, 1)];
        for location in beyond.into_iter().chain((6..2000).map(|bucket| Location::new(bucket, 0))) {
            assert_eq!(wheel.get(location), None);
            assert_eq!(wheel.remove(location, |_| true), None);
        }
        assert_eq!(wheel.base().len, 1);
    }
    none(RawHierarchical::new(Tracked::default()));
    none(RawHashed::new(512, Tracked::default()));
}

#[test]
fn overdue_values_come_in_the_order_of_their_insertion() {
    fn in_order<W: Check>(mut wheel: W) {
        advance(&mut wheel, 1000);
        for value in 0..100 {
            wheel.insert(1000 - u64::from(value), value);
        }
        assert_eq!(advance(&mut wheel, 1000), (0..100).collect::<Vec<u32>>());
    }
    in_order(RawHierarchical::new(Tracked::default()));
    in_order(RawHashed::new(512, Tracked::default()));
}

#[test]
fn values_come_in_order_if_the_clock_moves_to_each_expiry() {
    fn in_order<W: Check>(mut wheel: W) {
        advance(&mut wheel, 123);
        let mut expected: Vec<(u64, u32)> = (0..1_500u32).map(|v| (124 + u64::from(v) * 7_919 % 510, v)).collect();
        for (deadline, value) in &expected {
            wheel.insert(*deadline, *value);
        }
        expected.sort_unstable();
        let mut due = Vec::new();
        while let Some(next) = wheel.next_deadline() {
            let mut values = advance(&mut wheel, next);
            values.sort_unstable();
            due.extend(values.into_iter().map(|value| (next, value)));
        }
        assert!(due == expected);
    }
    in_order(RawHierarchical::new(Tracked::default()));
    in_order(RawHashed::new(512, Tracked::default()));
}

#[test]
fn a_drain_takes_everything_and_the_clock_stays() {
    fn all<W: Check>(mut wheel: W) {
        advance(&mut wheel, 1000);
        for value in 0..100 {
            wheel.insert(990 + (1 << (value % 64)), value);
        }
        let mut taken = drain(&mut wheel);
        taken.sort_unstable();
        assert_eq!(taken, (0..100).collect::<Vec<u32>>());
        assert_eq!((wheel.base().len, wheel.next_deadline(), wheel.base().now, wheel.room()), (0, None, 1000, (0, 0)));
        wheel.insert(1001, 5);
        assert_eq!(advance(&mut wheel, 1001), [5]);
    }
    all(RawHierarchical::new(Tracked::default()));
    all(RawHashed::new(512, Tracked::default()));
}

#[test]
fn removals_free_no_memory_but_small_arrays() {
    fn none<W: Check>(mut wheel: W, delays: u64) {
        for value in 0..3_000 {
            wheel.insert(100 + u64::from(value) % delays, value);
        }
        let (mut before, mut values) = (wheel.room().0, (0..3_000).collect::<Vec<u32>>());
        fastrand::Rng::with_seed(5).shuffle(&mut values);
        for value in values {
            let location = wheel.base().tracker.location(value);
            assert_eq!(wheel.remove(location, |at| *at == value), Some(value));
            wheel.base_mut().tracker.forget(value);
            let (after, discarded) = (wheel.room().0, wheel.base_mut().take_discarded().room().1);
            // A short array may be freed, and a shorter one allocated.
            assert!(after + discarded + MIN_CAPACITY >= before, "{before} slots, {after} left, {discarded} given up");
            before = after;
        }
        assert!(before <= 512 * MIN_CAPACITY);
    }
    for delays in [1, 60, 3_000] {
        none(RawHierarchical::new(Tracked::default()), delays);
        none(RawHashed::new(512, Tracked::default()), delays);
    }
}
