//! A row of a memory store.

use crate::TimeoutId;
use crate::store::{Micros, Pending, TimeoutState};
use crate::transaction::{Insert, KeyHolder};

/// A timeout that has not ended, or a call that is queued.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) insert: Insert,
    pub(super) attempt: u32,
    pub(super) forgiven: u32,
    /// The due time of the run before its first retry, or `None` if it has not been moved.
    pub(super) planned: Option<Micros>,
    /// The epoch that has begun the last attempt, if it has not been put back.
    pub(super) begun: Option<u32>,
    /// The time at which the last attempt began.
    pub(super) started: Micros,
    /// The call that is queued beside the attempt. It may have ended.
    pub(super) queued: Option<TimeoutId>,
}

impl Row {
    /// Returns a timeout that is pending.
    pub(super) fn new(insert: Insert) -> Self {
        let planned = insert.cap;
        Self { insert, attempt: 0, forgiven: 0, planned, begun: None, started: 0, queued: None }
    }

    /// Returns `true` if an attempt of `epoch` may begin.
    pub(super) fn is_pending(&self, epoch: u32) -> bool {
        self.begun.is_none_or(|begun| begun < epoch)
    }

    pub(super) fn as_holder(&self) -> KeyHolder {
        let is_running = self.begun.is_some() && !self.is_queued();
        KeyHolder { due: self.insert.due, planned: self.planned, attempts: self.attempt, is_running }
    }

    pub(super) fn read<P>(&self, payload: P, epoch: u32) -> Pending<P> {
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
}
