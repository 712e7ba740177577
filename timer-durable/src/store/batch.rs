//! A batch: the changes that a store commits together, and its answers.
//!
//! The parts have the names of the model's transactions (`tests/model`). A batch is one commit. The store executes
//! the parts in the order of the fields of [`Batch`], and answers each part by itself in [`Answers`], in the same order.
//!
//! Promise of the engine: no [tag](crate::Id::tag) is in a batch twice, whichever parts. Each part therefore decides about a
//! row that no other part of the batch changes, so that a store may execute all of them as one statement on one snapshot.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::row::{Attempt, Content, Id, Micros, Row, key_tag};

/// The changes of one commit.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// New timeouts.
    pub inserts: Vec<Insert>,
    /// New due times of pending timeouts.
    pub resets: Vec<Reset>,
    /// Pending timeouts to delete.
    pub cancels: Vec<Target>,
    /// Attempts that have succeeded.
    pub done: Vec<Done>,
    /// Attempts whose timeout is pending again.
    pub retries: Vec<Retry>,
    /// Attempts whose timeout becomes a dead letter.
    pub buries: Vec<Bury>,
    /// Dead letters that become pending again, with their due times.
    pub requeues: Vec<(Id, Micros)>,
    /// Dead letters to delete.
    pub purges: Vec<Id>,
    /// Timeouts to begin, which are due by the engine's estimate of the clock.
    pub begins: Vec<Id>,
}

impl Batch {
    /// Returns the number of parts.
    pub fn len(&self) -> usize {
        let changes = self.inserts.len() + self.resets.len() + self.cancels.len();
        let results = self.done.len() + self.retries.len() + self.buries.len();
        changes + results + self.requeues.len() + self.purges.len() + self.begins.len()
    }

    /// Returns `true` if there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Creates a timeout.
///
/// If the id is in the store, the insert is a repetition and changes nothing ([`Inserted::Exists`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Insert {
    /// The identity.
    pub id: Id,
    /// The due time.
    pub due: Micros,
    /// Topic, key and payload.
    pub content: Content,
    /// The effect if the key has a pending timeout.
    pub if_pending: IfPending,
}

/// The effect of a new timeout whose key has a pending timeout already.
///
/// If an attempt of that timeout runs, the call fails with [`Error::Running`](crate::Error::Running) instead, because
/// neither of the two could then be kept to one per key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum IfPending {
    /// The pending timeout stays, and the new one is dropped.
    Keep,
    /// The new timeout takes the place of the pending one, with its own id, payload and due time.
    Replace,
    /// As `Replace` if the new due time is earlier, else as `Keep`.
    Earlier,
    /// As `Replace` if the new due time is later, else as `Keep`.
    Later,
    /// The call fails with [`Error::KeyTaken`](crate::Error::KeyTaken).
    #[default]
    Refuse,
}

impl IfPending {
    /// Returns `true` if a timeout that is due at `new` replaces a pending one that is due at `old`.
    pub fn replaces(self, old: Micros, new: Micros) -> bool {
        match self {
            Self::Replace => true,
            Self::Earlier => new < old,
            Self::Later => new > old,
            Self::Keep | Self::Refuse => false,
        }
    }
}

/// The name by which a call finds a timeout.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// By its id.
    Id(Id),
    /// By topic and key.
    Key {
        /// The topic.
        topic: String,
        /// The key.
        key: String,
    },
}

impl Target {
    /// Returns the tag of the row, if there is one. See [`Id::tag`].
    pub fn tag(&self) -> u32 {
        match self {
            Self::Id(id) => id.tag(),
            Self::Key { topic, key } => key_tag(topic, key),
        }
    }
}

impl From<Id> for Target {
    fn from(id: Id) -> Self {
        Self::Id(id)
    }
}

/// Sets the due time of a timeout that is pending, and moves it into a shard of this node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reset {
    /// The timeout.
    pub target: Target,
    /// The new due time.
    pub due: Micros,
}

/// Deletes the row if this attempt is its last one and runs.
#[derive(Clone, Debug)]
pub struct Done {
    /// The timeout.
    pub id: Id,
    /// The attempt that has ended.
    pub attempt: Attempt,
    /// The user's own change, in the same transaction.
    pub write: Option<UserWrite>,
}

/// A change of the user, which a store executes inside its own transaction.
///
/// A store passes its connection: [`SqliteStore`](crate::SqliteStore) passes a `rusqlite::Connection`. If the closure returns an error, the
/// store undoes its change and that of the part, and answers [`Ended::Failed`]. It is called again if a commit is repeated
/// after a failure that undid it.
#[derive(Clone)]
pub struct UserWrite(pub Arc<dyn Fn(&dyn Any) -> Result<(), String> + Send + Sync>);

impl fmt::Debug for UserWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserWrite(..)")
    }
}

/// Makes the row pending again if this attempt is its last one and runs, and moves it into a shard of this node.
#[derive(Clone, Debug)]
pub struct Retry {
    /// The timeout.
    pub id: Id,
    /// The attempt that has ended.
    pub attempt: Attempt,
    /// The due time of the next attempt.
    pub due: Micros,
    /// Whether the attempt was a success and the next one belongs to the next run of a periodic timeout. The store then
    /// sets [`Row::base`](crate::Row::base) to the attempt.
    pub next_run: bool,
    /// The user's own change, in the same transaction.
    pub write: Option<UserWrite>,
}

/// Moves the row to the dead letters if this attempt is its last one and runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bury {
    /// The timeout.
    pub id: Id,
    /// The attempt that has ended.
    pub attempt: Attempt,
    /// The reason, for people.
    pub reason: String,
}

/// The answers to a [`Batch`], in its order.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// The answers to `inserts`.
    pub inserts: Vec<Inserted>,
    /// The answers to `resets`.
    pub resets: Vec<Changed>,
    /// The answers to `cancels`.
    pub cancels: Vec<Changed>,
    /// The answers to `done`.
    pub done: Vec<Ended>,
    /// The answers to `retries`.
    pub retries: Vec<Ended>,
    /// The answers to `buries`.
    pub buries: Vec<Ended>,
    /// The answers to `requeues`.
    pub requeues: Vec<Requeued>,
    /// The answers to `purges`: whether there was such a dead letter.
    pub purges: Vec<bool>,
    /// The answers to `begins`.
    pub begins: Vec<Begun>,
}

/// The answer to an [`Insert`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inserted {
    /// The timeout is in the list.
    New,
    /// The id was in the store already, so this was a repetition.
    Exists,
    /// The timeout is in the list, and the one with this id is not.
    Replaced(Id),
    /// The key has this pending timeout, which stays.
    Kept {
        /// The id of the pending timeout.
        id: Id,
        /// Its due time.
        due: Micros,
    },
    /// The key has this timeout, of which an attempt runs. Nothing was changed.
    Running(Id),
}

/// The answer to a [`Reset`] or a cancel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Changed {
    /// It has happened to the timeout with this id.
    Done(Id),
    /// An attempt has begun and has not ended. Nothing was changed.
    Running(Id),
    /// There is no such timeout.
    Unknown,
}

/// The answer to [`Done`], [`Retry`] and [`Bury`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It is written.
    Written,
    /// The attempt is not the last one, or it has ended already. Nothing was changed.
    Stale,
    /// The user's change returned this error. Nothing was changed, and the attempt still counts as running.
    Failed(String),
}

/// The answer to a requeue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Requeued {
    /// The timeout is in the list again.
    Pending,
    /// The key has another timeout now, with this id.
    KeyTaken(Id),
    /// There is no such dead letter.
    Unknown,
}

/// The answer to a begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Begun {
    /// The attempt has begun. The row has its number.
    Attempt(Row),
    /// The row is pending and in a shard of this node, but due later. It must go back into memory.
    NotYet(Micros),
    /// The row is gone, in another node's shard, or already begun. Memory must forget it.
    Gone,
}
