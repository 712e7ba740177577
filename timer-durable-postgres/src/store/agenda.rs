//! The times at which the store does something by itself.

use std::time::{Duration, Instant};

/// A task of the store that wakes the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// The renewal of the lease.
    Renewal,
    /// The look for the work of others. A notification brings it forward.
    Look,
    /// The removal of more tombstones, if the last one has met its limit.
    Removal,
    /// The time from which attempts may begin again after the server's clock was set back.
    EndOfHold,
}

/// The time of each task that waits.
#[derive(Debug)]
pub(super) struct Agenda {
    times: [Option<Instant>; 4],
    /// An upkeep that has failed is not repeated before this time.
    rest_until: Instant,
}

impl Agenda {
    /// Creates an agenda with a renewal and a look that are due.
    pub(super) fn new(now: Instant) -> Self {
        let mut agenda = Self { times: [None; 4], rest_until: now };
        agenda.set(Task::Renewal, now);
        agenda.set(Task::Look, now);
        agenda
    }

    pub(super) fn set(&mut self, task: Task, at: Instant) {
        self.times[task as usize] = Some(at);
    }

    /// Sets the time of a task unless it is earlier.
    pub(super) fn bring_forward(&mut self, task: Task, at: Instant) {
        let time = &mut self.times[task as usize];
        *time = Some(time.map_or(at, |time| time.min(at)));
    }

    pub(super) fn clear(&mut self, task: Task) {
        self.times[task as usize] = None;
    }

    /// Returns `true` if a task waits and its time has come.
    pub(super) fn is_due(&self, task: Task, now: Instant) -> bool {
        self.times[task as usize].is_some_and(|time| time <= now)
    }

    /// Returns `true` if a task waits for a later time.
    pub(super) fn is_ahead(&self, task: Task, now: Instant) -> bool {
        self.times[task as usize].is_some_and(|time| time > now)
    }

    /// Does nothing for a while, and then renews and looks, because an upkeep has failed.
    pub(super) fn rest(&mut self, until: Instant) {
        self.rest_until = until;
        self.set(Task::Renewal, until);
        self.set(Task::Look, until);
    }

    /// Returns the time of the next task, or the first of `others` if it is earlier.
    pub(super) fn next(&self, others: [Option<Instant>; 2]) -> Instant {
        let first = self.times.into_iter().chain(others).flatten().min();
        first.map_or(self.rest_until, |first| first.max(self.rest_until))
    }
}

/// An event that happens at most once in a period.
#[derive(Debug)]
pub(super) struct Interval {
    next: Instant,
    period: Duration,
}

impl Interval {
    /// Creates an interval that begins at `next`.
    pub(super) fn new(next: Instant, period: Duration) -> Self {
        Self { next, period }
    }

    /// Returns `true` once in a period.
    pub(super) fn begins(&mut self, now: Instant) -> bool {
        let begins = self.next <= now;
        if begins {
            self.next = now + self.period;
        }
        begins
    }
}
