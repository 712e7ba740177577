//! Calls that are written alone, each as one transaction.

use super::collection::insert;
use super::held::Subject;
use crate::TimeoutId;
use crate::answer::ScheduleAnswer;
use crate::message::{Message, Reply};
use crate::new_timeout::NewTimeout;
use crate::store::{Micros, StoreError};
use crate::transaction::Operation;
use crate::work::Work;
use std::sync::Arc;
use std::time::Instant;

/// A call that is written alone.
pub(in crate::engine) enum LoneCall {
    Many(Vec<Operation>, Reply<Vec<ScheduleAnswer>>),
    /// Work of the user, which ends an attempt first if one is given.
    Work(Option<(TimeoutId, u32)>, Work, Reply),
    /// Pauses or resumes a topic.
    Pause(Arc<str>, bool, Reply<()>),
}

impl LoneCall {
    pub(in crate::engine) fn many(
        many: Vec<NewTimeout>,
        reply: Reply<Vec<ScheduleAnswer>>,
        now: Micros,
        instance: u32,
    ) -> Self {
        let inserts = many.into_iter().map(|new| Operation::Insert(insert(new, now, instance)));
        Self::Many(inserts.collect(), reply)
    }

    /// Returns `true` if the future of the call was dropped.
    pub(in crate::engine) fn is_abandoned(&self) -> bool {
        match self {
            Self::Many(_, reply) => reply.is_abandoned(),
            Self::Work(_, _, reply) => reply.is_abandoned(),
            Self::Pause(_, _, reply) => reply.is_abandoned(),
        }
    }

    /// Returns the time since which the call waits for the store.
    pub(in crate::engine) fn waits_since(&self, now: Instant) -> Instant {
        match self {
            Self::Many(_, reply) => reply.waits_since(now),
            Self::Work(_, _, reply) => reply.waits_since(now),
            Self::Pause(_, _, reply) => reply.waits_since(now),
        }
    }

    /// Returns the attempt that the call ends.
    pub(in crate::engine) fn attempt(&self) -> Option<(TimeoutId, u32)> {
        if let Self::Work(attempt, ..) = self { *attempt } else { None }
    }

    /// Returns the number of timeouts that the call creates.
    pub(in crate::engine) fn len(&self) -> usize {
        if let Self::Many(batch, _) = self { batch.len() } else { 0 }
    }

    /// Returns the subject for which a message has to wait, because the call is about it.
    pub(super) fn conflict(&self, message: &Message) -> Option<Subject> {
        let Self::Many(batch, _) = self else { return None };
        let is_about = |subject: &Subject| batch.iter().flat_map(Subject::of_operation).any(|own| own == *subject);
        Subject::of(message).find(is_about)
    }

    pub(in crate::engine) fn fail(self, error: &StoreError) {
        match self {
            Self::Many(_, reply) => reply.fail(error),
            Self::Work(_, _, reply) => reply.fail(error),
            Self::Pause(_, _, reply) => reply.fail(error),
        }
    }
}
