//! Both wheels against a sorted map, after every operation.
//!
//! Guards, among others: deadlines on the boundaries of levels and rounds, uptimes just below each power of two, jumps
//! of any length, overdue insertions, keys of values that are gone.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use timer_core::wheel::{HashedWheel, HierarchicalWheel, Key, TimingWheel};

#[derive(Clone, Debug)]
enum Op {
    /// The deadline, from now on.
    Insert(u64),
    /// The deadline, so much before now.
    InsertOverdue(u64),
    /// The deadline, wherever now is.
    InsertAt(u64),
    Remove(usize),
    RemoveEarliest,
    RemoveStale(usize),
    Advance(u64),
    /// To so much before or after the next expiry.
    AdvanceToNext(i8),
    AdvanceBack(u64),
    /// The closure panics after so many values.
    AdvancePanicking(u64, usize),
}

/// 2^k and its neighbours, for every boundary of a level or a round; small numbers; the largest ones.
fn edge() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (0u32..49, -1i64..2).prop_map(|(k, d)| (1u64 << k).wrapping_add_signed(d)),
        2 => (0u32..8, 1u64..300, -1i64..2).prop_map(|(k, m, d)| (m << (k * 6)).wrapping_add_signed(d)),
        3 => 0u64..20,
        2 => 0u64..5000,
        1 => (0u64..3).prop_map(|d| u64::MAX - d),
        1 => any::<u64>(),
    ]
}

/// Jumps that leave something of u64 for later.
fn jump() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0u64..70,
        4 => (0u32..17, -1i64..2).prop_map(|(k, d)| (1u64 << k).wrapping_add_signed(d)),
        2 => (17u32..49, -1i64..2).prop_map(|(k, d)| (1u64 << k).wrapping_add_signed(d)),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => edge().prop_map(Op::Insert),
        1 => (0u64..3).prop_map(Op::InsertOverdue),
        1 => edge().prop_map(Op::InsertAt),
        4 => any::<usize>().prop_map(Op::Remove),
        1 => Just(Op::RemoveEarliest),
        1 => any::<usize>().prop_map(Op::RemoveStale),
        3 => jump().prop_map(Op::Advance),
        3 => (-1i8..2).prop_map(Op::AdvanceToNext),
        1 => edge().prop_map(Op::AdvanceBack),
        1 => (jump(), 0usize..5).prop_map(|(by, after)| Op::AdvancePanicking(by, after)),
    ]
}

/// Just below, at, and just above a power of two, or anywhere.
fn uptime() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0),
        6 => (0u32..64, 0u64..70).prop_map(|(k, d)| (1u64 << k).wrapping_sub(d)),
        1 => (0u64..70).prop_map(|d| u64::MAX - d),
        1 => any::<u64>(),
    ]
}

struct Model<W> {
    wheel: W,
    /// By deadline and serial number; the value in the wheel is the serial number.
    live: BTreeMap<(u64, u32), Key>,
    stale: Vec<Key>,
    serial: u32,
    now: u64,
    /// No removal so far: the next expiry is exact.
    exact: bool,
}

impl<W: TimingWheel<u32>> Model<W> {
    fn new(wheel: W) -> Self {
        Model { wheel, live: BTreeMap::new(), stale: Vec::new(), serial: 0, now: 0, exact: true }
    }

    fn insert(&mut self, deadline: u64) {
        let key = self.wheel.insert(deadline, self.serial);
        assert!(!self.stale.contains(&key), "a key came a second time");
        self.live.insert((deadline, self.serial), key);
        self.serial += 1;
    }

    fn remove(&mut self, entry: Option<(u64, u32)>) {
        if let Some(entry) = entry
            && let Some(key) = self.live.remove(&entry)
        {
            assert_eq!(self.wheel.remove(key), Some(entry.1));
            self.stale.push(key);
            self.exact = self.live.is_empty();
        }
    }

    /// What was handed out before the panic is gone; everything else is still there.
    fn advance_panicking(&mut self, to: u64, after: usize) {
        let mut due = Vec::new();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            self.wheel.advance(to, |serial| {
                due.push(serial);
                if due.len() > after {
                    resume_unwind(Box::new("expired"));
                }
            });
        }));
        assert_eq!(outcome.is_err(), due.len() > after);
        let now = self.wheel.now();
        assert!(self.now <= now && now <= to.max(self.now));
        self.now = now;
        for serial in due {
            let entry = self.live.keys().find(|entry| entry.1 == serial).copied();
            let entry = entry.unwrap_or_else(|| panic!("{serial} came twice"));
            assert!(entry.0 <= now, "early");
            self.stale.extend(self.live.remove(&entry));
        }
        self.exact = self.live.is_empty();
    }

    fn advance(&mut self, to: u64) {
        let mut due = Vec::new();
        self.wheel.advance(to, |serial| due.push(serial));
        self.now = self.now.max(to);
        let later = match self.now.checked_add(1) {
            Some(next) => self.live.split_off(&(next, 0)),
            None => BTreeMap::new(),
        };
        let mut expected: Vec<u32> = self.live.keys().map(|entry| entry.1).collect();
        self.stale.extend(self.live.values());
        self.live = later;
        self.exact |= self.live.is_empty();
        due.sort_unstable();
        expected.sort_unstable();
        assert_eq!(due, expected);
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Insert(delay) => self.insert(self.now.saturating_add(delay)),
            Op::InsertOverdue(by) => self.insert(self.now.saturating_sub(by)),
            Op::InsertAt(deadline) => self.insert(deadline),
            Op::Remove(any) => {
                let at = any % self.live.len().max(1);
                self.remove(self.live.keys().nth(at).copied());
            }
            Op::RemoveEarliest => self.remove(self.live.keys().next().copied()),
            Op::RemoveStale(any) => {
                if let Some(key) = self.stale.get(any % self.stale.len().max(1)) {
                    assert_eq!(self.wheel.remove(*key), None);
                }
            }
            Op::Advance(by) => self.advance(self.now.saturating_add(by)),
            Op::AdvanceToNext(by) => {
                if let Some(next) = self.wheel.next_expiry() {
                    self.advance(next.saturating_add_signed(by.into()));
                }
            }
            Op::AdvancePanicking(by, after) => self.advance_panicking(self.now.saturating_add(by), after),
            Op::AdvanceBack(by) => self.advance(self.now.saturating_sub(by)),
        }
    }

    /// What must hold at any time.
    fn compare(&self) {
        assert_eq!(self.wheel.len(), self.live.len());
        assert_eq!(self.wheel.is_empty(), self.live.is_empty());
        assert_eq!(self.wheel.now(), self.now);
        match (self.wheel.next_expiry(), self.live.keys().next()) {
            (None, None) => {}
            (Some(next), Some(&(earliest, _))) if earliest <= self.now => {
                assert_eq!(next, self.now.saturating_add(1))
            }
            (Some(next), Some(&(earliest, _))) if self.exact => assert_eq!(next, earliest),
            (Some(next), Some(&(earliest, _))) => {
                assert!(self.now < next && next <= earliest, "{next} for {earliest}")
            }
            (next, earliest) => panic!("{next:?} for {earliest:?}"),
        }
    }

    /// Every key finds its value, and afterwards nothing more.
    fn finish(mut self) {
        for (entry, key) in std::mem::take(&mut self.live) {
            assert_eq!(self.wheel.remove(key), Some(entry.1));
            self.stale.push(key);
        }
        assert!(self.wheel.is_empty());
        assert_eq!(self.wheel.next_expiry(), None);
        for key in self.stale {
            assert_eq!(self.wheel.remove(key), None);
        }
    }
}

fn run<W: TimingWheel<u32>>(wheel: W, uptime: u64, removals: bool, ops: &[Op]) {
    let mut model = Model::new(wheel);
    model.advance(uptime);
    for op in ops.iter().filter(|op| removals || !matches!(op, Op::Remove(_) | Op::RemoveEarliest)) {
        model.apply(op);
        model.compare();
    }
    model.finish();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn hierarchical_wheel_does_what_a_sorted_map_does(uptime in uptime(), removals: bool, ops in prop::collection::vec(op(), 0..250)) {
        run(HierarchicalWheel::new(), uptime, removals, &ops);
    }

    #[test]
    fn hashed_wheel_does_what_a_sorted_map_does(
        slots in prop::sample::select(vec![1usize, 2, 8, 512, 1 << 20]),
        uptime in uptime(),
        removals: bool,
        ops in prop::collection::vec(op(), 0..250),
    ) {
        run(HashedWheel::new(slots), uptime, removals, &ops);
    }
}
