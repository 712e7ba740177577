//! A timeout as a store keeps it.

use super::pending::{Pending, TimeoutState};
use super::position::Position;
use crate::TimeoutId;
use crate::time::Micros;
use crate::transaction::{Attempt, Insert, KeyHolder};

/// A timeout that has not ended, or a call that is [queued](crate::transaction::Outcome::Queued),
/// as [`Rows`](super::Rows) keeps it.
///
/// A store that reads a row back creates it by [`new`](Self::new) and then sets its fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Row {
    /// The contents, with the id and the due time of the row. A store need not keep its
    /// [`cap`](Insert::cap), but must keep [`planned`](Self::planned). Its `if_pending` matters
    /// only for a queued call.
    pub insert: Insert,
    /// The due time of the run before its first retry, or `None` if it is the due time. Before the
    /// first attempt, this is the cap of the insert.
    pub planned: Option<Micros>,
    /// The number of attempts that have begun.
    pub attempt: u32,
    /// The number of attempts that do not count.
    pub forgiven: u32,
    /// The epoch of the instance that has begun the last attempt, or [`ENDED`](Self::ENDED), or
    /// [`QUEUED`](Self::QUEUED).
    pub begun: i64,
    /// The time at which the last attempt began.
    pub started: Micros,
    /// The call that is queued beside the attempt. It may have ended since.
    pub queued: Option<TimeoutId>,
}

impl Row {
    /// The value of [`begun`](Self::begun) if no attempt runs. It is less than all epochs.
    pub const ENDED: i64 = 0;
    /// The value of [`begun`](Self::begun) of a queued call. It is greater than all epochs, so no
    /// instance begins the call.
    pub const QUEUED: i64 = i64::MAX;

    /// Returns a timeout that is pending and has no attempt.
    #[must_use]
    pub fn new(insert: Insert) -> Self {
        let planned = insert.cap;
        Self { insert, planned, attempt: 0, forgiven: 0, begun: Self::ENDED, started: 0, queued: None }
    }

    /// Returns the place in the list of the topic. A queued call has one as well.
    #[must_use]
    pub fn position(&self) -> Position {
        Position { due: self.insert.due, id: self.insert.id }
    }

    /// Returns the key, unless another timeout holds it because this is a queued call.
    #[must_use]
    pub fn held_key(&self) -> Option<&str> {
        self.insert.key.as_deref().filter(|_| !self.is_queued())
    }

    /// Returns `true` for a queued call.
    #[must_use]
    pub const fn is_queued(&self) -> bool {
        self.begun == Self::QUEUED
    }

    /// Returns `true` if an instance with this epoch may begin an attempt, for
    /// [`Store::load`](super::Store::load) and [`Reader::due_within`](super::Reader::due_within).
    #[must_use]
    pub const fn is_pending(&self, epoch: i64) -> bool {
        self.begun < epoch
    }

    /// Returns the timeout as it is read back on an instance with this epoch.
    #[must_use]
    pub fn read<P>(&self, epoch: i64, payload: P) -> Pending<P> {
        let state = match self.planned {
            _ if self.is_queued() => TimeoutState::Queued,
            _ if !self.is_pending(epoch) => TimeoutState::Running,
            Some(_) if self.attempt > self.forgiven => TimeoutState::Retrying,
            _ => TimeoutState::Pending,
        };
        let Insert { id, due, topic, key, period, .. } = &self.insert;
        Pending {
            key: key.clone(),
            attempt: self.attempt,
            period: *period,
            state,
            running_since: (state == TimeoutState::Running).then_some(self.started),
            ..Pending::new(*id, *due, &**topic, payload)
        }
    }

    /// Returns `true` if an attempt has begun and has not ended. Its instance may be dead.
    pub(super) const fn is_running(&self) -> bool {
        self.begun != Self::ENDED && !self.is_queued()
    }

    pub(super) fn as_holder(&self) -> KeyHolder {
        let is_running = self.is_running();
        KeyHolder { due: self.insert.due, planned: self.planned, attempts: self.attempt, is_running }
    }

    /// Gives the row the contents of a call with its key.
    pub(super) fn update(&mut self, call: &Insert, due: Micros, planned: Option<Micros>) {
        let Insert { id, if_pending: rule, .. } = self.insert;
        self.insert = Insert { id, due, if_pending: call.if_pending.after(rule), ..call.clone() };
        self.planned = planned;
    }

    /// Begins the next attempt. A planned time behind the due time is a cap, which ends with it.
    pub(super) fn begin(&mut self, epoch: i64, now: Micros) -> Attempt {
        self.planned = self.planned.filter(|planned| *planned < self.insert.due);
        self.attempt += 1;
        self.begun = epoch;
        self.started = now;
        let insert = &self.insert;
        Attempt {
            forgiven: self.forgiven,
            planned: self.planned.unwrap_or(insert.due),
            key: insert.key.clone(),
            format: insert.format,
            payload: insert.payload.clone(),
            period: insert.period,
            max_lateness: insert.max_lateness,
            traceparent: insert.traceparent.clone(),
            ..Attempt::new(self.attempt, insert.due, &*insert.topic)
        }
    }
}
