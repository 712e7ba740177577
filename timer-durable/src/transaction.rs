//! The parts of a transaction, and the store's answers to them.
//!
//! The keeper collects the messages that arrive during a commit into one [`Batch`], and the store
//! executes it as one transaction. Each part has the name of an action of the protocol, which the
//! chapter [protocol](crate::book::protocol) describes.

use crate::TimeoutId;
use crate::store::Micros;
use std::sync::Arc;

/// The effect of an insert if a timeout with the same topic and key is pending.
///
/// A pending timeout whose attempt is running is always kept, because only its handler can end it.
///
/// # Examples
///
/// A lease that is extended, but never shortened:
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, IfPending, MemoryStore};
///
/// let (timer, _driver) = DurableTimer::builder().topic("lease.end", |_: &Due<()>| Ok(())).build_manual(MemoryStore::new())?;
/// timer.new_timeout_keyed("lease.end", "node-7", Duration::from_secs(10), &(), IfPending::Later)?;
/// timer.new_timeout_keyed("lease.end", "node-7", Duration::from_secs(5), &(), IfPending::Later)?;
/// # Ok::<(), timer_durable::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum IfPending {
    /// Keeps the pending timeout and returns its id.
    #[default]
    Keep,
    /// Ends the pending timeout and creates the new one.
    Replace,
    /// Keeps the pending timeout and moves it to the earlier of both due times.
    Earlier,
    /// Keeps the pending timeout and moves it to the later of both due times.
    Later,
    /// Refuses the call.
    Refuse,
}

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
    /// The format of the payload, see [`Payload::FORMAT`](crate::Payload::FORMAT).
    pub format: i16,
    /// The payload.
    pub payload: Vec<u8>,
    /// The period of a periodic timeout in microseconds.
    pub period: Option<Micros>,
    /// The lateness in microseconds at which the timeout expires if it has not begun.
    pub max_lateness: Option<Micros>,
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
            format: 0,
            payload: Vec::new(),
            period: None,
            max_lateness: None,
        }
    }

    /// Returns the key, or the id if there is no key.
    pub(crate) fn target(&self) -> Target {
        match &self.key {
            Some(key) => Target::Key { topic: self.topic.to_string(), key: key.clone() },
            None => Target::Id(self.id),
        }
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

/// A new due time of a pending timeout, from which its run is planned anew.
#[derive(Clone, Debug)]
pub struct Reset {
    /// The timeout.
    pub target: Target,
    /// The new due time.
    pub due: Micros,
}

/// The successful end of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// The timeout.
    pub id: TimeoutId,
    /// The attempt. The store refuses an end of any attempt but the last one.
    pub attempt: u32,
    /// The due time of the next run of a periodic timeout.
    pub next: Option<Micros>,
}

/// The end of an attempt that is to be repeated. The run stays the same one, so its
/// [planned time](Attempt::planned) does not change.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// The timeout.
    pub id: TimeoutId,
    /// The attempt.
    pub attempt: u32,
    /// The new due time.
    pub due: Micros,
    /// Whether this attempt does not count towards the limit of attempts. Earlier attempts that
    /// have failed count nevertheless. A store adds one to [`Attempt::forgiven`].
    pub forgive: bool,
}

/// The end of an attempt that makes the timeout a dead letter.
#[derive(Clone, Debug)]
pub struct Bury {
    /// The timeout.
    pub id: TimeoutId,
    /// The attempt.
    pub attempt: u32,
    /// The reason, for people.
    pub reason: String,
}

/// A dead letter that becomes pending again.
#[derive(Clone, Copy, Debug)]
pub struct Requeue {
    /// The dead letter.
    pub id: TimeoutId,
    /// The new due time.
    pub due: Micros,
}

/// One transaction. No id occurs twice in it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Batch {
    /// New timeouts.
    pub inserts: Vec<Insert>,
    /// New due times.
    pub resets: Vec<Reset>,
    /// Timeouts to be cancelled.
    pub cancels: Vec<Target>,
    /// Attempts that succeeded.
    pub dones: Vec<Done>,
    /// Attempts to be repeated.
    pub retries: Vec<Retry>,
    /// Attempts that failed for good.
    pub buries: Vec<Bury>,
    /// Dead letters to be run again.
    pub requeues: Vec<Requeue>,
    /// Dead letters to be deleted.
    pub purges: Vec<TimeoutId>,
    /// Timeouts to begin.
    pub begins: Vec<TimeoutId>,
}

impl Batch {
    /// Returns the number of parts.
    #[must_use]
    pub fn len(&self) -> usize {
        let calls = self.inserts.len() + self.resets.len() + self.cancels.len();
        let ends = self.dones.len() + self.retries.len() + self.buries.len();
        calls + ends + self.requeues.len() + self.purges.len() + self.begins.len()
    }

    /// Returns `true` if there is nothing to execute.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The answer to an insert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The timeout was created. If it replaced another one, this is the id of that one.
    Created {
        /// The timeout that was ended.
        replaced: Option<TimeoutId>,
    },
    /// The store has this id already, so the call was executed before.
    Exists,
    /// The key has this pending timeout, which was left alone.
    Kept(TimeoutId),
    /// The key has this pending timeout, which was moved.
    Moved(TimeoutId, Micros),
    /// The id is older than the store accepts, so an earlier call with it may have been executed
    /// and ended.
    TooOld,
    /// The store refuses this insert, for example because a trigger of the user does, and has
    /// executed the rest of the batch.
    Refused(String),
    /// Another transaction has locked the pending timeout of the key. The store has executed the
    /// rest of the batch. The keeper writes this insert again later.
    Locked,
}

/// The answer to a reset or a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The timeout was pending and was changed.
    Changed(TimeoutId),
    /// An attempt has begun, and nothing was changed.
    Running,
    /// No timeout is pending under this id or key.
    Unknown,
}

/// The answer to a begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The attempt has begun.
    Attempt(Box<Attempt>),
    /// The timeout is pending in a shard of this instance, and due later than the keeper thought.
    NotYet(Micros),
    /// The timeout has ended, runs already, or belongs to another instance.
    Gone,
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
    /// The due time that the run had before its first [`Retry`]. A [`Reset`], an insert that moves
    /// the timeout, a [`Requeue`] and the end of a periodic run begin a new run. The next run of a
    /// periodic timeout counts from here, and so does the lateness until an attempt of the run has
    /// failed.
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
        }
    }
}

/// The answers to a batch, in the order of its parts. A store fills the fields of the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answers {
    /// To [`Batch::inserts`].
    pub inserts: Vec<Inserted>,
    /// To [`Batch::resets`].
    pub resets: Vec<Changed>,
    /// To [`Batch::cancels`].
    pub cancels: Vec<Changed>,
    /// To [`Batch::dones`]. `false` if the attempt is not the one that runs.
    pub dones: Vec<bool>,
    /// To [`Batch::retries`].
    pub retries: Vec<bool>,
    /// To [`Batch::buries`].
    pub buries: Vec<bool>,
    /// To [`Batch::requeues`]. `false` if there is no such dead letter.
    pub requeues: Vec<bool>,
    /// To [`Batch::purges`].
    pub purges: Vec<bool>,
    /// To [`Batch::begins`].
    pub begins: Vec<Begun>,
}
