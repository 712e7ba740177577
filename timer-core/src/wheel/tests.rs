//! Both raw wheels: whatever is done to them, the inner order holds after every step.

use super::{Levels, Places, RawWheel, Ring, Spot};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Places that remember everything.
#[derive(Default)]
pub(super) struct Tracked(BTreeMap<u32, Spot>);

impl Tracked {
    pub(super) fn spot(&self, value: u32) -> Spot {
        self.0.get(&value).copied().unwrap_or(Spot::NONE)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn forget(&mut self, value: u32) {
        self.0.remove(&value);
    }
}

impl Places<u32> for Tracked {
    fn put(&mut self, value: &u32, spot: Spot) {
        self.0.insert(*value, spot);
    }

    fn gone(&mut self, value: &u32) {
        assert!(self.0.remove(value).is_some(), "a value left that was not in");
    }
}

/// Looks into a wheel.
pub(super) trait Check: RawWheel<u32, Places = Tracked> {
    /// Asserts the inner order: every bit, every bound, every spot.
    fn check(&self);

    /// For how many entries there is room, and how many levels or pages are allocated.
    fn room(&self) -> (usize, usize);
}

#[derive(Clone, Debug)]
enum Op {
    /// So many values, from this delay on, so many ticks apart.
    Insert(u8, u64, u64),
    Remove(usize),
    Advance(u64),
    AdvanceToNext,
    /// `expired` panics after so many values.
    AdvancePanicking(u64, usize),
    Drain(bool),
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
        20 => (1u8..20, delay(), 0u64..600).prop_map(|(n, delay, apart)| Op::Insert(n, delay, apart)),
        40 => any::<usize>().prop_map(Op::Remove),
        10 => (0u64..5000).prop_map(Op::Advance),
        2 => (0u32..50).prop_map(|k| Op::Advance(1 << k)),
        10 => Just(Op::AdvanceToNext),
        6 => (delay(), 0usize..20).prop_map(|(by, after)| Op::AdvancePanicking(by, after)),
        1 => any::<bool>().prop_map(Op::Drain),
    ]
}

fn run<W: Check>(mut wheel: W, uptime: u64, ops: &[Op]) {
    let mut live: BTreeMap<u32, u64> = BTreeMap::new();
    let mut serial = 0;
    wheel.advance(uptime, |_| ());
    for op in ops {
        match *op {
            Op::Insert(count, delay, apart) => {
                for n in 0..u64::from(count) {
                    let deadline = wheel.now().saturating_add(delay).saturating_add(n * apart);
                    wheel.insert(deadline, serial);
                    live.insert(serial, deadline);
                    serial += 1;
                    wheel.check();
                }
            }
            Op::Remove(any) => {
                if let Some(value) = live.keys().nth(any % live.len().max(1)).copied() {
                    let spot = wheel.places().spot(value);
                    assert_eq!(wheel.deadline(spot), live.remove(&value));
                    assert_eq!(wheel.remove(spot), Some(value));
                    wheel.places_mut().forget(value);
                }
            }
            Op::Advance(by) => advance(&mut wheel, &mut live, by, usize::MAX),
            Op::AdvancePanicking(by, after) => advance(&mut wheel, &mut live, by, after),
            Op::AdvanceToNext => {
                if let Some(next) = wheel.next_expiry() {
                    let by = next - wheel.now();
                    advance(&mut wheel, &mut live, by, usize::MAX);
                }
            }
            Op::Drain(panicking) => {
                let mut taken = 0;
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    wheel.drain(|value| {
                        assert!(live.remove(&value).is_some());
                        taken += 1;
                        if panicking && taken == 3 {
                            resume_unwind(Box::new("drain"));
                        }
                    });
                }));
                assert!(panicking || live.is_empty());
                if !panicking {
                    assert_eq!(wheel.room(), (0, 0));
                }
            }
        }
        wheel.check();
        assert_eq!(wheel.len(), live.len());
        for (value, deadline) in &live {
            assert_eq!(wheel.deadline(wheel.places().spot(*value)), Some(*deadline));
        }
        let earliest = live.values().min().copied();
        assert_eq!(wheel.next_expiry().is_none(), earliest.is_none());
        assert_eq!(wheel.has_overdue(), earliest.is_some_and(|earliest| earliest <= wheel.now()));
        if let (Some(next), Some(earliest)) = (wheel.next_expiry(), earliest) {
            assert!(next <= earliest.max(wheel.now().saturating_add(1)));
            assert!(next > wheel.now() || next == u64::MAX);
        }
    }
}

/// Advances; what came out must have been due, what is left must not be, unless the closure has panicked.
fn advance<W: Check>(wheel: &mut W, live: &mut BTreeMap<u32, u64>, by: u64, panic_after: usize) {
    let (from, to) = (wheel.now(), wheel.now().saturating_add(by));
    let mut taken = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        wheel.advance(to, |value| {
            assert!(live.remove(&value).is_some_and(|deadline| deadline <= to), "early, or twice");
            taken += 1;
            if taken > panic_after {
                resume_unwind(Box::new("expired"));
            }
        });
    }));
    if outcome.is_ok() {
        assert_eq!(wheel.now(), to);
        assert!(live.values().all(|deadline| *deadline > to));
    } else {
        assert!(taken > panic_after, "an assertion failed inside");
        assert!((from..=to).contains(&wheel.now()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    // B61: the marks of what is occupied, after every operation.
    #[test]
    fn the_levels_stay_in_order_whatever_is_done(
        uptime in delay(),
        ops in prop::collection::vec(op(), 0..120),
    ) {
        run(Levels::new(Tracked::default()), uptime, &ops);
    }

    #[test]
    fn the_ring_stays_in_order_whatever_is_done(
        slots in prop::sample::select(vec![1usize, 2, 8, 64, 512, 1 << 15, 1 << 30]),
        uptime in delay(),
        ops in prop::collection::vec(op(), 0..120),
    ) {
        run(Ring::new(slots, Tracked::default()), uptime, &ops);
    }
}

/// The room after many values that came and were removed at once, under `standing` ones.
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
        wheel.insert(wheel.now() + 1 + random() % 3_600_000, value);
        waiting.push_back(value);
        if waiting.len() > 100
            && let Some(value) = waiting.pop_front()
        {
            let spot = wheel.places().spot(value);
            if wheel.remove(spot) == Some(value) {
                wheel.places_mut().forget(value);
            }
        }
        if passing {
            wheel.advance(wheel.now() + random() % 50, |_| ());
        }
    }
    wheel.check();
    wheel.room()
}

#[test]
fn values_that_are_removed_at_once_leave_no_memory_behind() {
    for passing in [false, true] {
        for standing in [0, 1000] {
            // Up to 100 values at a time pass through; the empty buckets keep four places each.
            let (room, levels) = churn(Levels::new(Tracked::default()), standing, passing);
            assert!(room < 4 * (standing as usize + 100) + 11 * 64 * 4 && levels <= 11, "{room}, {levels}");
            for slots in [1, 512, 1 << 20, 1 << 30] {
                let (room, pages) = churn(Ring::new(slots, Tracked::default()), standing, passing);
                assert!(room < 8 * (standing as usize + 100) + 16 * 64 * 4 + 512 * 4, "{room} of {slots}");
                assert!(pages < 16 + 4 * 100 + standing as usize, "{pages} pages of {slots}");
            }
        }
    }
}

#[test]
fn a_spot_in_no_wheel_names_nothing() {
    fn none<W: Check>(mut wheel: W) {
        wheel.insert(5, 1);
        let beyond = [Spot::NONE, Spot::new(u32::MAX - 1, 0), Spot::new(u32::MAX - 2, 0), Spot::new(5, 1)];
        for spot in beyond.into_iter().chain((6..2000).map(|bucket| Spot::new(bucket, 0))) {
            assert_eq!(wheel.deadline(spot), None);
            assert_eq!(wheel.remove(spot), None);
        }
        assert_eq!(wheel.len(), 1);
    }
    none(Levels::new(Tracked::default()));
    none(Ring::new(512, Tracked::default()));
}

#[test]
fn what_is_overdue_is_handed_out_as_it_came() {
    fn in_order<W: Check>(mut wheel: W) {
        wheel.advance(1000, |_| ());
        for value in 0..100 {
            wheel.insert(1000 - u64::from(value), value);
        }
        let mut due = Vec::new();
        wheel.advance(1000, |value| due.push(value));
        assert_eq!(due, (0..100).collect::<Vec<u32>>());
    }
    in_order(Levels::new(Tracked::default()));
    in_order(Ring::new(512, Tracked::default()));
}
