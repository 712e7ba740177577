//! The operations of a transaction, and their outcomes.
//!
//! The keeper collects the messages that arrive during a commit into one batch, a list of
//! [`Operation`]s. The store executes it as one transaction and returns an [`Outcome`] for each of
//! them. Each operation has the name of an action of the protocol, which the chapter
//! [protocol](crate::book::protocol) describes.

pub(crate) mod if_pending;
mod key_effect;

use crate::TimeoutId;
use crate::time::Micros;
pub(crate) use if_pending::IfPending;
pub use key_effect::{KeyEffect, KeyHolder};
use std::sync::Arc;

/// A new timeout.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Insert {
    /// The id. Nothing is inserted if the store has it already.
    pub id: TimeoutId,
    /// The due time on the store's clock.
    pub due: Micros,
    /// The topic, which selects the handler.
    pub topic: Arc<str>,
    /// The key, unique among the pending timeouts of the topic.
    pub key: Option<String>,
    /// The effect on a pending timeout with the same key.
    pub if_pending: IfPending,
    /// The latest due time of a timeout that this insert creates with [`IfPending::Debounce`]. The
    /// store keeps it as the planned time of the run until the first attempt.
    pub cap: Option<Micros>,
    /// The format of the payload, see [`Payload::FORMAT`](crate::Payload::FORMAT).
    pub format: i16,
    /// The payload.
    pub payload: Vec<u8>,
    /// The period of a periodic timeout in microseconds.
    pub period: Option<Micros>,
    /// The lateness in microseconds at which the timeout expires if it has not begun.
    pub max_lateness: Option<Micros>,
    /// The trace of the call, as a `traceparent` of the W3C. A later insert that gives the timeout
    /// another payload gives it its trace, too.
    pub traceparent: Option<String>,
}

impl Insert {
    /// Returns an insert without key, period and limit of lateness, with an empty payload.
    #[must_use]
    pub fn new(id: TimeoutId, due: Micros, topic: impl Into<Arc<str>>) -> Self {
        Self {
            id,
            due,
            topic: topic.into(),
            key: None,
            if_pending: IfPending::Keep,
            cap: None,
            format: 0,
            payload: Vec::new(),
            period: None,
            max_lateness: None,
            traceparent: None,
        }
    }

    /// Reports that a follow-up was not created, because another timeout has its key. A store calls
    /// this for each timeout of [`Operation::Done`] that it leaves out.
    pub fn report_taken_key(&self) {
        let topic = &*self.topic;
        tracing::info!(topic, id = %self.id, "a follow-up was not created, because another timeout has its key");
    }
}

/// The timeout that a call addresses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The timeout with this id.
    Id(TimeoutId),
    /// The pending timeout with this topic and key.
    Key {
        /// The topic.
        topic: String,
        /// The key.
        key: String,
    },
}

/// An operation on one timeout.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Creates a timeout.
    Insert(Insert),
    /// Moves a pending timeout, whose run is then planned anew, or a call that is
    /// [queued](Outcome::Queued).
    Reset {
        /// The timeout.
        target: Target,
        /// The new due time.
        due: Micros,
    },
    /// Ends a pending timeout, or a call that is [queued](Outcome::Queued).
    Cancel(Target),
    /// Ends an attempt that has succeeded. A store refuses the end of any attempt but the last one.
    /// Like every end of an attempt, it makes a call that is [queued](Outcome::Queued) beside it
    /// take effect.
    Done {
        /// The timeout.
        id: TimeoutId,
        /// The attempt.
        attempt: u32,
        /// The due time of the next run of a periodic timeout. Its attempts count anew.
        next: Option<Micros>,
        /// Timeouts that are created if the attempt ends. One of them may have the key of this
        /// timeout, which has no next run then. One whose key is taken is not created, which the
        /// store [reports](Insert::report_taken_key).
        then: Vec<Insert>,
    },
    /// Ends an attempt that is to be repeated. The run stays the same one, so its
    /// [planned time](Attempt::planned) does not change.
    Retry {
        /// The timeout.
        id: TimeoutId,
        /// The attempt.
        attempt: u32,
        /// The new due time.
        due: Micros,
        /// Whether this attempt does not count towards the limit of attempts. Earlier attempts
        /// that have failed count nevertheless. A store adds one to [`Attempt::forgiven`].
        forgive: bool,
    },
    /// Ends an attempt that has neither succeeded nor failed. The attempts count anew. The run of a
    /// periodic timeout stays the same one, and the run of any other is planned anew.
    Postpone {
        /// The timeout.
        id: TimeoutId,
        /// The attempt.
        attempt: u32,
        /// The new due time.
        due: Micros,
        /// The format and the bytes of a new payload.
        payload: Option<(i16, Vec<u8>)>,
    },
    /// Ends an attempt and makes the timeout a dead letter. A timeout with a next run stays pending
    /// under its id, and the dead letter of the run that has failed gets another one.
    Bury {
        /// The timeout.
        id: TimeoutId,
        /// The attempt.
        attempt: u32,
        /// The reason, for people.
        reason: String,
        /// The next run of a periodic timeout. Its attempts count anew.
        next: Option<NextRun>,
    },
    /// Makes a dead letter pending again. If another timeout has its key, the outcome is
    /// [`Kept`](Outcome::Kept), and the letter stays.
    Requeue {
        /// The dead letter.
        id: TimeoutId,
        /// The new due time.
        due: Micros,
        /// Whether the timeout gives up its key.
        without_key: bool,
    },
    /// Deletes a dead letter.
    Purge(TimeoutId),
    /// Begins an attempt of a timeout that is due.
    Begin(TimeoutId),
}

impl Operation {
    /// Returns the id that the operation names, or `None` if it names a key. Only one operation of
    /// a batch names an id.
    #[must_use]
    pub fn id(&self) -> Option<TimeoutId> {
        match self {
            Self::Insert(insert) => Some(insert.id),
            Self::Reset { target, .. } | Self::Cancel(target) => match target {
                Target::Id(id) => Some(*id),
                Target::Key { .. } => None,
            },
            Self::Done { id, .. }
            | Self::Retry { id, .. }
            | Self::Postpone { id, .. }
            | Self::Bury { id, .. }
            | Self::Requeue { id, .. } => Some(*id),
            Self::Purge(id) | Self::Begin(id) => Some(*id),
        }
    }

    /// Returns the topic and the key that the operation names, if it names one. Only one operation
    /// of a batch names a key.
    #[must_use]
    pub fn key(&self) -> Option<(&str, &str)> {
        match self {
            Self::Insert(insert) => Some((&insert.topic, insert.key.as_deref()?)),
            Self::Reset { target: Target::Key { topic, key }, .. } | Self::Cancel(Target::Key { topic, key }) => {
                Some((topic, key))
            }
            _ => None,
        }
    }
}

/// The next run of a periodic timeout whose last run becomes a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NextRun {
    /// The due time of the next run.
    pub due: Micros,
    /// The id of the dead letter, which no call has used.
    pub letter: TimeoutId,
}

/// The outcome of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The operation has changed this timeout or dead letter, as a reset, a cancel, an end, a
    /// requeue or a purge does.
    Changed(TimeoutId),
    /// An insert has created the timeout. If it replaced another one, this is the id of that one.
    Created {
        /// The timeout that was ended.
        replaced: Option<TimeoutId>,
    },
    /// The store has the id of the insert already, so the call was executed before.
    Exists,
    /// The key of the insert, or of the dead letter to requeue, has this pending timeout. Nothing
    /// was changed.
    Kept(TimeoutId),
    /// The key of the insert has this pending timeout, which was moved or updated. Its due time
    /// follows.
    Moved(TimeoutId, Micros),
    /// The attempt of the timeout with the key runs, and the operation has changed this call, which
    /// is queued beside it. An insert is queued under its own id, or has changed the call that was
    /// queued before. A reset has moved the queued call, and a cancel has ended it.
    ///
    /// A queued call is a row of the store, which [`get`](crate::store::Reader::get) and
    /// [`list`](crate::store::Reader::list) show, and which is not pending. In the transaction that ends
    /// the attempt, and after the timeouts that the end creates, the call has its effect as an
    /// insert at that time. If no timeout has the key then, the call becomes the pending one under
    /// its id, and otherwise [`Insert::effect_on`] has the rule. The end has the outcome that it
    /// has without the call. The next [`Upkeep`](crate::store::Upkeep) reports the timeout that the
    /// call has created or changed.
    ///
    /// An attempt of an earlier instance has ended when the store is to [begin](Operation::Begin) the
    /// timeout again. The store then lets the call have its effect and answers
    /// [`NotFound`](Self::NotFound).
    Queued(TimeoutId),
    /// The id of the insert is older than the store accepts, so an earlier call with it may have
    /// been executed and ended.
    TooOld,
    /// The attempt has begun.
    Begun(Box<Attempt>),
    /// The timeout to begin is pending in a shard of this instance, and due later than the keeper
    /// thought.
    NotYet(Micros),
    /// An attempt has begun and no call is queued beside it, so a reset or a cancel has changed
    /// nothing.
    Running,
    /// There is nothing to change: no timeout is pending under this id or key, the attempt to end
    /// is not the last one, or there is no such dead letter. A timeout to begin has ended, runs
    /// already, belongs to another instance, or has been changed by a call that was queued.
    NotFound,
    /// The store does not accept this operation, and has executed the rest of the batch. For
    /// example, a trigger of the user refuses the row, or the row has a value of another type than
    /// the store has written. A call fails with the reason. The keeper repeats an operation that
    /// begins or ends an attempt apart from all others, after pauses that grow.
    Refused(String),
    /// The store has not executed this operation before the deadline of the batch. The keeper
    /// writes it again in the next turn.
    NotReached,
    /// Another transaction has locked the timeout, and the store has executed the rest of the
    /// batch. The keeper repeats the operation later.
    Locked,
}

/// Returns `true` if all inserts were accepted, so that [`Store::write_all`] keeps them.
///
/// [`Store::write_all`]: crate::store::Store::write_all
#[must_use]
pub fn are_accepted(inserts: &[Operation], outcomes: &[Outcome]) -> bool {
    inserts.iter().zip(outcomes).all(|pair| match pair {
        (Operation::Insert(insert), Outcome::Kept(_)) => insert.if_pending != IfPending::Refuse,
        (_, outcome) => {
            matches!(outcome, Outcome::Created { .. } | Outcome::Exists | Outcome::Moved(..) | Outcome::Queued(_))
        }
    })
}

/// A timeout whose attempt has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The number of earlier attempts that do not count towards the limit.
    pub forgiven: u32,
    /// The due time.
    pub due: Micros,
    /// The due time that the run had before its first [retry](Operation::Retry). A reset, an insert
    /// that moves the timeout, a requeue and the end of a periodic run begin a new run. The next
    /// run of a periodic timeout counts from here, and so does the lateness until an attempt of the
    /// run has failed.
    pub planned: Micros,
    /// The topic.
    pub topic: String,
    /// The key.
    pub key: Option<String>,
    /// The format of the payload.
    pub format: i16,
    /// The payload.
    pub payload: Vec<u8>,
    /// The period of a periodic timeout.
    pub period: Option<Micros>,
    /// The limit of lateness.
    pub max_lateness: Option<Micros>,
    /// The trace of the insert. A timeout that was requeued has none.
    pub traceparent: Option<String>,
}

impl Attempt {
    /// Returns an attempt that is planned for its due time, without key, period and limit of
    /// lateness, with an empty payload.
    #[must_use]
    pub fn new(attempt: u32, due: Micros, topic: impl Into<String>) -> Self {
        Self {
            attempt,
            forgiven: 0,
            due,
            planned: due,
            topic: topic.into(),
            key: None,
            format: 0,
            payload: Vec::new(),
            period: None,
            max_lateness: None,
            traceparent: None,
        }
    }

    /// Returns the number of the try, from 1. Earlier attempts that were forgiven do not count.
    /// Another program may have written any number.
    pub(crate) fn tries(&self) -> u32 {
        self.attempt.saturating_sub(self.forgiven)
    }
}
