//! A batch that is collected from messages.

use super::subject::Subject;
use crate::TimeoutId;
use crate::answer::ScheduleAnswer;
use crate::engine::id_map::IdHasher;
use crate::error::Error;
use crate::message::{Answer, AttemptEnd, Message, Reply, Request};
use crate::schedule::CheckedTimeout;
use crate::store::{Micros, StoreError};
use crate::transaction::{IfPending, Insert, Operation, Outcome};
use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::time::{Duration, Instant};

/// The number of payload bytes from which no operation is added to a batch. The last payload may
/// exceed the limit.
const MAX_BYTES: usize = 16 << 20;

/// The message from which an operation comes.
pub(crate) enum Origin {
    /// A call, with the way back to the caller.
    Call(Reply),
    /// The end of an attempt. It is written again if the commit fails.
    End(AttemptEnd),
    /// A timeout that follows an attempt which a transaction of the user has ended. It is written
    /// again if the commit fails.
    FollowUp,
    /// A timeout in memory is due.
    Begin,
}

/// A batch that is being collected.
///
/// No id and no key occurs twice in it, because a store may execute all operations at once. A
/// second message with the same id or key waits for the next batch. An operation with a key and one
/// with an id may concern the same timeout, and the keeper accepts either order.
#[derive(Default)]
pub(crate) struct Collection {
    pub(crate) batch: Vec<Operation>,
    /// The origin of each operation.
    pub(crate) origins: Vec<Origin>,
    subjects: HashSet<Subject, BuildHasherDefault<IdHasher>>,
    bytes: usize,
}

impl Collection {
    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Returns `true` if the batch can take another operation.
    pub(crate) fn has_room(&self, max_batch: usize) -> bool {
        self.batch.len() < max_batch && self.bytes < MAX_BYTES
    }

    /// Returns `true` if an operation of the batch names this id.
    pub(crate) fn has(&self, id: TimeoutId) -> bool {
        self.subjects.contains(&Subject::Id(id))
    }

    /// Returns the subject for which a message has to wait, because it occurs in the batch already.
    pub(crate) fn conflict(&self, message: &Message) -> Option<Subject> {
        Subject::of(message).find(|subject| self.subjects.contains(subject))
    }

    /// Adds an operation.
    pub(crate) fn push(&mut self, operation: Operation, origin: Origin) {
        self.subjects.extend(Subject::of_operation(&operation));
        if let Operation::Insert(insert) = &operation {
            self.bytes += insert.payload.len();
        }
        self.batch.push(operation);
        self.origins.push(origin);
    }

    /// Adds the operation of a call.
    pub(crate) fn add(&mut self, request: Request, reply: Reply, now: Micros, instance: u32) {
        let operation = match request {
            Request::Insert(new) => Operation::Insert(insert(*new, now, instance)),
            Request::Reset(target, when) => Operation::Reset { target, due: when.from(now) },
            Request::Cancel(target) => Operation::Cancel(target),
            Request::Requeue { id, without_key } => Operation::Requeue { id, due: now, without_key },
            Request::Purge(id) => Operation::Purge(id),
            // The keeper runs it at once.
            Request::Transact(..) => return,
        };
        let id = if let Operation::Insert(insert) = &operation { Some(insert.id) } else { None };
        self.push(operation, Origin::Call(reply.about(id)));
    }

    /// Removes the operations with their origins.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (Operation, Origin)> + use<> {
        std::mem::take(&mut self.batch).into_iter().zip(std::mem::take(&mut self.origins))
    }

    /// Divides a batch into the operations for which `is_first` returns `true`, and all others.
    pub(crate) fn divide(mut self, mut is_first: impl FnMut(&Operation, &Origin) -> bool) -> [Self; 2] {
        let mut parts = [Self::default(), Self::default()];
        for (operation, origin) in self.take() {
            let part = usize::from(!is_first(&operation, &origin));
            parts[part].push(operation, origin);
        }
        parts
    }

    /// Adds the operations of another batch. Returns that batch if they do not fit.
    pub(super) fn absorb(&mut self, mut other: Self, max_batch: usize) -> Option<Self> {
        let has_room = self.batch.len() + other.batch.len() <= max_batch && self.bytes + other.bytes <= MAX_BYTES;
        if !has_room || !self.subjects.is_disjoint(&other.subjects) {
            return Some(other);
        }
        for (operation, origin) in other.take() {
            self.push(operation, origin);
        }
        None
    }

    /// Returns the time since which the first of its calls waits.
    pub(super) fn calls_wait_since(&self, now: Instant) -> Option<Instant> {
        let since =
            |origin: &Origin| if let Origin::Call(reply) = origin { Some(reply.waits_since(now)) } else { None };
        self.origins.iter().filter_map(since).min()
    }

    /// Fails the calls that have waited for `limit`. Without an error, their callers find the timer
    /// stopped. Returns the other operations.
    pub(crate) fn fail_calls(mut self, now: Instant, limit: Duration, error: Option<&StoreError>) -> Self {
        if self.calls_wait_since(now).is_none_or(|since| now < since + limit) {
            return self;
        }
        let mut rest = Self::default();
        for (operation, origin) in self.take() {
            match origin {
                Origin::Call(reply) if now >= reply.waits_since(now) + limit => {
                    if let Some(error) = error {
                        reply.fail(error);
                    }
                }
                origin => rest.push(operation, origin),
            }
        }
        rest
    }
}

pub(crate) fn insert(new: CheckedTimeout, now: Micros, instance: u32) -> Insert {
    let id = new.id.unwrap_or_else(|| TimeoutId::made_at(now, instance));
    let (due, cap) = new.times(now);
    Insert {
        cap,
        key: new.key,
        if_pending: new.if_pending,
        format: new.format,
        payload: new.payload,
        period: new.period,
        max_lateness: new.max_lateness,
        traceparent: new.traceparent,
        ..Insert::new(id, due, new.topic)
    }
}

/// Returns the answer to a call.
pub(crate) fn answer_of(operation: &Operation, outcome: &Outcome) -> Result<Answer, Error> {
    match (outcome, operation) {
        (Outcome::Created { .. } | Outcome::Exists, Operation::Insert(insert)) => {
            Ok(Answer::Scheduled(ScheduleAnswer::Created(insert.id)))
        }
        (Outcome::Kept(id), Operation::Insert(insert)) if insert.if_pending == IfPending::Refuse => {
            Err(Error::KeyTaken { id: *id })
        }
        (Outcome::Kept(id), _) => Ok(Answer::Scheduled(ScheduleAnswer::Kept(*id))),
        (Outcome::Moved(id, _), _) => Ok(Answer::Scheduled(ScheduleAnswer::Moved(*id))),
        (Outcome::Queued(id), Operation::Insert(_)) => Ok(Answer::Scheduled(ScheduleAnswer::Queued(*id))),
        (Outcome::Queued(_), _) => Ok(Answer::QueuedChanged),
        (Outcome::TooOld, _) => Err(Error::IdTooOld),
        (Outcome::Refused(why), _) => Err(Error::Store(StoreError::Refused(why.clone()))),
        (Outcome::Changed(_), _) => Ok(Answer::Changed),
        (Outcome::Running, _) => Ok(Answer::Running),
        _ => Ok(Answer::Unknown),
    }
}
