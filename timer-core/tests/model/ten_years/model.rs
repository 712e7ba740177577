//! A sorted set of the deadlines of all timeouts. A task that runs must be the first of the set, at
//! its deadline.
//!
//! The model keeps the faults that tasks notice, because the timer would catch their panics.

use std::collections::BTreeSet;
use timer_core::Timeout;

/// The action of a timeout when it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Once,
    /// Schedules the next link after that many nanoseconds, which shows the present that the task
    /// saw.
    Link(u64),
    /// Runs again after that many nanoseconds, counted from its deadline.
    Rate(u64),
    /// Runs again after that many nanoseconds, counted from the present.
    Delay(u64),
}

struct Slot {
    deadline: u64,
    kind: Kind,
    waits: bool,
    handle: Option<Timeout>,
}

#[derive(Default)]
pub(crate) struct Model {
    slots: Vec<Slot>,
    due: BTreeSet<(u64, usize)>,
    /// The start and the end of the current jump.
    from: u64,
    to: u64,
    pub(crate) runs: u64,
    pub(crate) cancelled: u64,
    pub(crate) resets: u64,
    faults: Vec<String>,
}

impl Model {
    /// Returns the number of a timeout that is about to be scheduled.
    pub(crate) fn open(&mut self, kind: Kind) -> usize {
        self.slots.push(Slot { deadline: 0, kind, waits: false, handle: None });
        self.slots.len() - 1
    }

    pub(crate) fn accepted(&mut self, id: usize, deadline: u64, handle: Timeout) {
        let slot = &mut self.slots[id];
        (slot.deadline, slot.waits, slot.handle) = (deadline, true, Some(handle));
        self.due.insert((deadline, id));
    }

    pub(crate) fn handle(&self, id: usize) -> Option<Timeout> {
        self.slots[id].handle.clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn pending(&self) -> usize {
        self.due.len()
    }

    pub(crate) fn first(&self) -> Option<u64> {
        self.due.first().map(|(deadline, _)| *deadline)
    }

    /// Returns a timeout that waits at `deadline` or after it.
    pub(crate) fn from(&self, deadline: u64) -> Option<usize> {
        self.due.range((deadline, 0)..).next().map(|(_, id)| *id)
    }

    pub(crate) fn periodic(&self) -> Vec<usize> {
        let of_set = self.due.iter().map(|(_, id)| *id);
        of_set.filter(|id| matches!(self.slots[*id].kind, Kind::Rate(_) | Kind::Delay(_))).collect()
    }

    pub(crate) fn depart(&mut self, from: u64, to: u64) {
        (self.from, self.to) = (from, to);
    }

    /// Records the run of a timeout with this deadline, and returns its kind.
    pub(crate) fn runs(&mut self, id: usize, deadline: u64) -> Kind {
        let (first, from, to) = (self.first(), self.from, self.to);
        let slot = &mut self.slots[id];
        let (waits, known, kind) = (slot.waits, slot.deadline, slot.kind);
        self.due.remove(&(known, id));
        slot.waits = false;
        if let Kind::Rate(period) | Kind::Delay(period) = kind {
            (slot.deadline, slot.waits) = (deadline + period, true);
            self.due.insert((deadline + period, id));
        } else if !id.is_multiple_of(16) {
            // Some handles are kept, so that late cancels and resets are tested too.
            slot.handle = None;
        }
        self.runs += 1;
        let right = waits && known == deadline && first == Some(deadline) && from < deadline && deadline <= to;
        self.check(right, || {
            format!(
                "{id} ran as one due at {deadline} between {from} and {to}: it waits {waits} for {known}, \
                 and the first is due at {first:?}"
            )
        });
        kind
    }

    /// Returns the answer that `cancel` must give.
    pub(crate) fn cancel(&mut self, id: usize) -> bool {
        let slot = &mut self.slots[id];
        let waits = std::mem::take(&mut slot.waits);
        if waits {
            self.cancelled += 1;
            self.due.remove(&(slot.deadline, id));
        }
        waits
    }

    /// Returns the answer that `reset` must give.
    pub(crate) fn reset(&mut self, id: usize, deadline: u64) -> bool {
        let slot = &mut self.slots[id];
        if slot.waits {
            self.resets += 1;
            self.due.remove(&(slot.deadline, id));
            slot.deadline = deadline;
            self.due.insert((deadline, id));
        }
        slot.waits
    }

    pub(crate) fn check(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        if !holds && self.faults.len() < 10 {
            self.faults.push(fault());
        }
    }

    #[track_caller]
    pub(crate) fn report(&self) {
        assert!(self.faults.is_empty(), "{}", self.faults.join("\n"));
    }
}
