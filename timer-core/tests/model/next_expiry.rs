//! The whole timer against a sorted map, after every operation.
//!
//! B36: ten separate lost or wrong wake-ups, after insert earlier, reset earlier, later or to the
//! past, remove first, remove last, clear. B32, B48: the wrong next expiry.

use crate::support::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_core::{ManualDriver, Timeout, Timer, WheelKind};

/// With so few in a bucket, a removal leaves no bound behind.
const FEW: usize = 8;

#[derive(Debug, Clone)]
enum Op {
    Schedule(Duration),
    /// The pick is taken modulo what there is.
    Cancel(usize),
    CancelFirst,
    CancelLast,
    CancelAll,
    Reset(usize, Duration),
    ResetFirst(Duration),
    Advance(Duration),
    /// To the next expiry, or short of it by so much.
    AdvanceToNext(Duration),
}

fn delay() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        (0u64..200).prop_map(Duration::from_nanos),
        (0u32..50, 0u64..3).prop_map(|(bit, more)| Duration::from_nanos((1u64 << bit) - 1 + more)),
        (0u64..3_600_000_000_000).prop_map(Duration::from_nanos),
        Just(Duration::MAX),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => delay().prop_map(Op::Schedule),
        2 => any::<usize>().prop_map(Op::Cancel),
        1 => Just(Op::CancelFirst),
        1 => Just(Op::CancelLast),
        1 => Just(Op::CancelAll),
        4 => (any::<usize>(), delay()).prop_map(|(pick, delay)| Op::Reset(pick, delay)),
        2 => delay().prop_map(Op::ResetFirst),
        2 => (0u64..1 << 40).prop_map(|nanos| Op::Advance(Duration::from_nanos(nanos))),
        1 => (0u64..2_000).prop_map(|nanos| Op::Advance(Duration::from_nanos(nanos))),
        3 => (0u64..3).prop_map(|short| Op::AdvanceToNext(Duration::from_nanos(short))),
    ]
}

/// The timer, and what it should be.
struct Both {
    timer: Timer,
    driver: ManualDriver,
    runs: Runs,
    timeouts: Vec<Timeout>,
    /// Deadlines of what is pending, from the beginning; `None` never comes.
    pending: BTreeMap<u32, Option<Duration>>,
    /// The wheel may still hold an earlier deadline of something that was moved to later.
    moved_later: bool,
    /// Deadlines of what was cancelled or moved to earlier: a bucket of many may keep one for a
    /// bound.
    removed: BTreeSet<Duration>,
}

impl Both {
    fn new(wheel: WheelKind) -> Self {
        let (timer, driver) = manual(wheel);
        let (runs, timeouts) = (Arc::new(Mutex::new(Vec::new())), Vec::new());
        let (pending, removed) = (BTreeMap::new(), BTreeSet::new());
        Self { timer, driver, runs, timeouts, pending, moved_later: false, removed }
    }

    fn due(&self, delay: Duration) -> Option<Duration> {
        (delay != Duration::MAX).then(|| self.driver.elapsed() + delay)
    }

    /// The pending timeout that is due first or last.
    fn edge(&self, last: bool) -> Option<u32> {
        let at = |(id, due): (&u32, &Option<Duration>)| (due.unwrap_or(Duration::MAX), *id);
        let edge = if last { self.pending.iter().map(at).max() } else { self.pending.iter().map(at).min() };
        edge.map(|(_, id)| id)
    }

    fn cancel(&mut self, id: u32) {
        let due = self.pending.remove(&id);
        assert_eq!(self.timeouts[id as usize].cancel(), due.is_some(), "cancel of {id}");
        self.removed.extend(due.flatten());
    }

    fn reset(&mut self, id: u32, delay: Duration) {
        let due = self.due(delay);
        assert_eq!(self.timeouts[id as usize].reset(delay), self.pending.contains_key(&id), "reset of {id}");
        if let Some(before) = self.pending.get_mut(&id) {
            let never = Duration::MAX;
            self.moved_later |= due.unwrap_or(never) > before.unwrap_or(never);
            self.removed.extend(*before);
            *before = due;
        }
    }

    fn advance(&mut self, by: Duration) {
        let now = self.driver.elapsed() + by;
        let mut due: Vec<(Duration, u32)> =
            self.pending.iter().filter_map(|(id, due)| Some(((*due)?, *id))).filter(|(due, _)| *due <= now).collect();
        assert_eq!(self.driver.advance(by), due.len());
        let ran = take_runs(&self.runs);
        let deadlines: Vec<_> = ran.iter().map(|id| self.pending[id].unwrap()).collect();
        assert!(deadlines.is_sorted_by_key(|due| (*due).max(now - by)), "out of order: {deadlines:?}");
        for id in &ran {
            self.pending.remove(id);
        }
        due.sort_unstable();
        let mut ran: Vec<u32> = ran;
        ran.sort_unstable();
        let mut due: Vec<u32> = due.into_iter().map(|(_, id)| id).collect();
        due.sort_unstable();
        assert_eq!(ran, due, "what ran, and what was due");
    }

    fn apply(&mut self, op: &Op) {
        let pick = |pick: usize, all: usize| (all > 0).then(|| (pick % all) as u32);
        match *op {
            Op::Schedule(delay) => {
                let id = self.timeouts.len() as u32;
                self.pending.insert(id, self.due(delay));
                self.timeouts.push(record(&self.timer, delay, &self.runs, id));
            }
            Op::Cancel(any) => pick(any, self.timeouts.len()).into_iter().for_each(|id| self.cancel(id)),
            Op::CancelFirst => self.edge(false).into_iter().for_each(|id| self.cancel(id)),
            Op::CancelLast => self.edge(true).into_iter().for_each(|id| self.cancel(id)),
            Op::CancelAll => (0..self.timeouts.len() as u32).for_each(|id| self.cancel(id)),
            Op::Reset(any, delay) => pick(any, self.timeouts.len()).into_iter().for_each(|id| self.reset(id, delay)),
            Op::ResetFirst(delay) => self.edge(false).into_iter().for_each(|id| self.reset(id, delay)),
            Op::Advance(by) => self.advance(by),
            Op::AdvanceToNext(short) => {
                // What never comes has an expiry at the end of time, which is not waited for.
                let next = self.driver.next_expiry().filter(|next| *next < YEAR).unwrap_or_default();
                self.advance(next.saturating_sub(short));
            }
        }
    }

    fn compare(&mut self) {
        assert_eq!(self.timer.pending_timeouts(), self.pending.len());
        let now = self.driver.elapsed();
        let earliest = self.pending.values().flatten().min().map(|due| due.saturating_sub(now));
        let next = self.driver.next_expiry();
        match (earliest, next) {
            (None, None) => assert!(self.pending.is_empty()),
            (None, Some(_)) => assert!(!self.pending.is_empty(), "armed for nothing"),
            (Some(_), None) => panic!("not armed"),
            (Some(earliest), Some(next)) if self.moved_later => assert!(next <= earliest),
            (Some(earliest), Some(next)) => {
                let left = next < earliest && self.pending.len() > FEW && self.removed.contains(&(now + next));
                assert!(left || next == earliest, "next expiry {next:?}, but the earliest is {earliest:?}");
            }
        }
        if self.pending.is_empty() {
            self.removed.clear();
        }
        self.moved_later &= !self.pending.is_empty();
        for (timeout, id) in self.timeouts.iter().zip(0..) {
            assert!(!self.pending.contains_key(&id) || !(timeout.is_expired() || timeout.is_cancelled()));
        }
    }
}

fn run(wheel: WheelKind, ops: &[Op]) {
    let mut both = Both::new(wheel);
    for op in ops {
        both.apply(op);
        both.compare();
    }
    let left = both.pending.len();
    let Both { timer, driver, .. } = both;
    assert_eq!(driver.stop().len(), left);
    assert_eq!(timer.pending_timeouts(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_timer_with_levels_does_what_a_sorted_map_does(ops in prop::collection::vec(op(), 0..150)) {
        run(WheelKind::Hierarchical, &ops);
    }

    #[test]
    fn a_timer_with_rounds_does_what_a_sorted_map_does(
        slots in prop_oneof![Just(1usize), Just(8), Just(512)],
        ops in prop::collection::vec(op(), 0..150),
    ) {
        run(WheelKind::Hashed { ticks_per_wheel: slots }, &ops);
    }
}

/// The first of many that wait in one bucket is cancelled: its deadline may be left for a bound, as
/// long as they are many.
#[test]
fn the_first_of_many_is_cancelled() {
    for wheel in [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 1 }] {
        for many in 1..20 {
            let mut ops: Vec<_> = (0..many).map(|nth| Op::Schedule(HOUR + nth * NANO)).collect();
            ops.resize(ops.len() + 5, Op::CancelFirst);
            ops.resize(ops.len() + 20, Op::AdvanceToNext(Duration::ZERO));
            run(wheel, &ops);
        }
    }
}
