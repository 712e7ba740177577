//! A wheel beside a sorted map. Each operation is applied to both, and all visible results are
//! compared after it.

use super::ops::Op;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use timer_core::wheel::{Key, TimingWheel};

/// Runs one case. Without removals and interrupted advances the next expiry is exact.
pub(crate) fn run<W: TimingWheel<u32>>(wheel: W, uptime: u64, removals: bool, ops: &[Op]) {
    let mut model = Model::new(wheel);
    model.advance(uptime);
    for op in ops.iter().filter(|op| removals || !matches!(op, Op::Remove(_) | Op::RemoveEarliest)) {
        model.apply(op);
        model.compare();
    }
    model.finish();
}

struct Model<W> {
    wheel: W,
    /// Keys by deadline and serial number. The wheel's value is the serial number.
    live: BTreeMap<(u64, u32), Key>,
    stale: Vec<Key>,
    serial: u32,
    now: u64,
    /// Whether nothing was removed and no advance was interrupted since the wheel was empty, so
    /// that the next expiry is exact.
    exact: bool,
    /// Whether the last advance ended with a panic. Then the next one continues its work, and the
    /// next expiry is a lower bound until then.
    is_interrupted: bool,
}

impl<W: TimingWheel<u32>> Model<W> {
    fn new(wheel: W) -> Self {
        Model { wheel, live: BTreeMap::new(), stale: Vec::new(), serial: 0, now: 0, exact: true, is_interrupted: false }
    }

    fn insert(&mut self, deadline: u64) {
        let key = self.wheel.insert(deadline, self.serial);
        assert!(!self.stale.contains(&key), "the wheel returned a key twice");
        self.live.insert((deadline, self.serial), key);
        self.serial += 1;
    }

    fn remove(&mut self, entry: Option<(u64, u32)>) {
        if let Some(entry) = entry
            && let Some(key) = self.live.remove(&entry)
        {
            assert_eq!(self.wheel.remove(key), Some(entry.1));
            self.stale.push(key);
            self.exact = self.live.is_empty() && !self.is_interrupted;
        }
    }

    /// Advances with a closure that panics. The values handed out before the panic are gone, and
    /// all others remain.
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
        self.is_interrupted = outcome.is_err();
        assert_eq!(self.is_interrupted, due.len() > after);
        let now = self.wheel.now();
        assert!(self.now <= now && now <= to.max(self.now));
        self.now = now;
        for serial in due {
            let entry = self.live.keys().find(|entry| entry.1 == serial).copied();
            let entry = entry.unwrap_or_else(|| panic!("{serial} came twice"));
            assert!(entry.0 <= now, "early");
            self.stale.extend(self.live.remove(&entry));
        }
        self.exact = self.live.is_empty() && !self.is_interrupted;
    }

    fn advance(&mut self, to: u64) {
        let mut due = Vec::new();
        self.wheel.advance(to, |serial| due.push(serial));
        self.is_interrupted = false;
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

    /// Returns a tick beside the next multiple of 2^k.
    fn edge(&self, k: u32, beside: i8) -> u64 {
        (self.now | ((1 << k) - 1)).saturating_add(1).saturating_add_signed(beside.into())
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Insert(delay) => self.insert(self.now.saturating_add(delay)),
            Op::InsertMany(delay, apart, many) => {
                let first = self.now.saturating_add(delay);
                (0..u64::from(many)).for_each(|nth| self.insert(first.saturating_add(nth * apart)));
            }
            Op::InsertOverdue(by) => self.insert(self.now.saturating_sub(by)),
            Op::InsertAt(deadline) => self.insert(deadline),
            Op::InsertAtEdge(k, beside) => self.insert(self.edge(k, beside)),
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
            Op::AdvanceToEdge(k, beside) => self.advance(self.edge(k, beside)),
            Op::AdvanceToNext(by) => {
                if let Some(next) = self.wheel.next_deadline() {
                    self.advance(next.saturating_add_signed(by.into()));
                }
            }
            Op::AdvancePanicking(by, after) => self.advance_panicking(self.now.saturating_add(by), after),
            Op::AdvanceBack(by) => self.advance(self.now.saturating_sub(by)),
        }
    }

    /// Checks conditions that hold at any time.
    fn compare(&self) {
        assert_eq!(self.wheel.len(), self.live.len());
        assert_eq!(self.wheel.is_empty(), self.live.is_empty());
        assert_eq!(self.wheel.now(), self.now);
        match (self.wheel.next_deadline(), self.live.keys().next()) {
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

    /// Checks that every key finds its value once.
    fn finish(mut self) {
        for (entry, key) in std::mem::take(&mut self.live) {
            assert_eq!(self.wheel.remove(key), Some(entry.1));
            self.stale.push(key);
        }
        assert!(self.wheel.is_empty());
        assert_eq!(self.wheel.next_deadline(), None);
        for key in self.stale {
            assert_eq!(self.wheel.remove(key), None);
        }
    }
}
