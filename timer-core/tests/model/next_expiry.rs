//! The whole timer compared with a sorted map after every operation.
//!
//! The tests guard against B36, ten lost or wrong wake-ups after an insertion, a reset to earlier,
//! to later or to the past, the removal of the first or the last timeout, and a clear. They also
//! guard against B32 and B48, a wrong next expiry.

use crate::support::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_core::{ManualDriver, Timeout, Timer, WheelKind};

/// A number of timeouts in a bucket below which a removal leaves no lower bound behind.
const FEW_TIMEOUTS: usize = 8;

#[derive(Debug, Clone)]
enum Op {
    Schedule(Duration),
    /// The number is taken modulo the number of timeouts.
    Cancel(usize),
    CancelFirst,
    CancelLast,
    CancelAll,
    Reset(usize, Duration),
    ResetFirst(Duration),
    Advance(Duration),
    /// Moves time to the next expiry, or to that many nanoseconds before it.
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

/// The timer and its model.
struct Compared {
    timer: Timer,
    driver: ManualDriver,
    runs: Runs,
    timeouts: Vec<Timeout>,
    /// Deadlines of pending timeouts, counted from the start. `None` never comes.
    pending: BTreeMap<u32, Option<Duration>>,
    /// Whether the wheel may still hold an earlier deadline of a timeout that was moved to later.
    moved_later: bool,
    /// Former deadlines of timeouts that were cancelled or moved. A large bucket may keep one as
    /// its bound.
    removed: BTreeSet<Duration>,
}

impl Compared {
    fn new(wheel: WheelKind) -> Self {
        let (timer, driver) = manual(wheel);
        let (runs, timeouts) = (Arc::new(Mutex::new(Vec::new())), Vec::new());
        let (pending, removed) = (BTreeMap::new(), BTreeSet::new());
        Self { timer, driver, runs, timeouts, pending, moved_later: false, removed }
    }

    fn due(&self, delay: Duration) -> Option<Duration> {
        (delay != Duration::MAX).then(|| self.driver.elapsed() + delay)
    }

    /// Returns the pending timeout that is due first or last.
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
        assert_eq!(ran, due, "the timeouts that ran, and those that were due");
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
                // A timeout that never comes has an expiry at the end of time, which the test does
                // not wait for.
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
            (None, Some(_)) => assert!(!self.pending.is_empty(), "the driver is armed, although no timeout is pending"),
            (Some(_), None) => panic!("the driver is not armed"),
            (Some(earliest), Some(next)) if self.moved_later => assert!(next <= earliest),
            (Some(earliest), Some(next)) => {
                let left = next < earliest && self.pending.len() > FEW_TIMEOUTS && self.removed.contains(&(now + next));
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
    let mut both = Compared::new(wheel);
    for op in ops {
        both.apply(op);
        both.compare();
    }
    let left = both.pending.len();
    let Compared { timer, driver, .. } = both;
    assert_eq!(driver.stop().len(), left);
    assert_eq!(timer.pending_timeouts(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_hierarchical_timer_matches_a_sorted_map(ops in prop::collection::vec(op(), 0..150)) {
        run(WheelKind::Hierarchical, &ops);
    }

    #[test]
    fn a_hashed_timer_matches_a_sorted_map(
        slots in prop_oneof![Just(1usize), Just(8), Just(512)],
        ops in prop::collection::vec(op(), 0..150),
    ) {
        run(WheelKind::Hashed { ticks_per_wheel: slots }, &ops);
    }
}

/// Cancels the first of many timeouts in one bucket. Its deadline may remain as a bound while they
/// are many.
#[test]
fn the_first_of_many_can_be_cancelled() {
    for wheel in [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 1 }] {
        for many in 1..20 {
            let mut ops: Vec<_> = (0..many).map(|nth| Op::Schedule(HOUR + nth * NANO)).collect();
            ops.resize(ops.len() + 5, Op::CancelFirst);
            ops.resize(ops.len() + 20, Op::AdvanceToNext(Duration::ZERO));
            run(wheel, &ops);
        }
    }
}
