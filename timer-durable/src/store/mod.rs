//! The trait of stores, its errors, and the store in memory.
//!
//! A store is a list of timeouts sorted by [`Place`], and a list of dead letters. One thread, the keeper, owns a store and
//! makes all calls, so a store needs no lock. All times are those of the store's clock.
//!
//! [`conformance`](crate::conformance) tests whether an implementation keeps the promises of this trait.
//!
//! # Shards and instances
//!
//! A store that several nodes share divides its list into shards. A node reads and begins the rows of the shards that it
//! owns by a lease, and writes into these. Each owner has an *epoch* per shard, which grows with each take-over. An open
//! store is an *instance*; [`rejoin`](Store::rejoin) makes it a new one. A store that one process owns has one shard, which
//! it always owns, and its epoch grows with each open and each rejoin.
//!
//! A row is *pending* if no attempt has begun, if the last one has ended by a retry, or if an older epoch has begun it.

mod batch;
mod error;
pub(crate) mod memory;

use std::path::Path;
use std::time::Instant;

pub use batch::{
    Answers, Batch, Begun, Bury, Changed, Done, Ended, IfPending, Insert, Inserted, Requeued, Reset, Retry, Target,
    UserWrite,
};
pub use error::StoreError;
pub use memory::{Fault, MemoryStore, MemoryStoreControl};

use crate::row::{DeadLetter, Id, Micros, Place, Row};

/// A list of timeouts that survives the process.
pub trait Store: Send + 'static {
    /// Returns the store's clock, or an estimate that the store improves with each answer.
    ///
    /// It never goes back. An estimate that is ahead does no harm, because a begin decides by the clock itself.
    fn now(&self) -> Micros;

    /// Commits the batch and returns the answers.
    ///
    /// The store executes the parts in the order of the fields. It checks for each begin, by its own clock, that the row is
    /// due, is pending, and is in a shard of this instance; it then counts the attempt and writes the epoch.
    ///
    /// # Errors
    ///
    /// In case of an error either the whole batch is committed or nothing of it. See [`StoreError`].
    fn write(&mut self, batch: &Batch) -> Result<Answers, StoreError>;

    /// Appends the first `max` pending rows of this instance's shards from `from` on, in their order.
    ///
    /// Rows of which an attempt runs may be among them, because their begin answers [`Begun::Gone`].
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write). The content of `page` is then not defined.
    fn load(&mut self, from: Place, max: usize, page: &mut Vec<Place>) -> Result<(), StoreError>;

    /// Returns the timeout, if it is in the list.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    fn find(&mut self, target: &Target) -> Result<Option<Row>, StoreError>;

    /// Returns the first `max` dead letters with an id greater than `after`, by id.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    fn dead_letters(&mut self, after: Option<Id>, max: usize) -> Result<Vec<DeadLetter>, StoreError>;

    /// Returns the number of timeouts in the list and of dead letters. It may read the whole list.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    fn count(&mut self) -> Result<Count, StoreError>;

    /// Copies the store to a new file. Provided: answers that this store cannot do it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] if the file exists or cannot be written.
    fn backup(&mut self, path: &Path) -> Result<(), StoreError> {
        Err(StoreError::Failed(format!("cannot back up to {}: this store has its own means of backup", path.display())))
    }

    /// Returns the instant at which [`upkeep`](Self::upkeep) wants to be called. Provided: never.
    fn next_upkeep(&self) -> Option<Instant> {
        None
    }

    /// Renews the lease, takes over shards, gives shards back, and collects the rows that others wrote into its shards.
    ///
    /// `running` are the timeouts whose handlers run here. A store that gives a shard back keeps these, by moving them into
    /// a shard that it keeps; if it keeps none, it waits with the release until none runs.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    fn upkeep(&mut self, _running: &[Id]) -> Result<Upkeep, StoreError> {
        Ok(Upkeep::default())
    }

    /// Returns `true` while handlers may be started: the lease is valid by the monotonic clock, counted from before the
    /// store was asked for it. Provided: always.
    fn may_start(&self) -> bool {
        true
    }

    /// Becomes a new instance, after an error. If it returns `Ok`, the fate of all that was under way is decided: each
    /// earlier batch is committed or will never be. Rows that the old instance has begun are pending again.
    ///
    /// # Errors
    ///
    /// The store is not reachable. The keeper tries again.
    fn rejoin(&mut self) -> Result<(), StoreError>;

    /// Hands all shards back, when the timer stops. No handler runs.
    fn leave(&mut self) {}
}

/// The result of [`Store::upkeep`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Upkeep {
    /// Whether the instance owns a shard that it did not own before. Memory starts again from the beginning of the list.
    pub more_shards: bool,
    /// Rows that other instances or other programs wrote into shards of this instance.
    pub foreign: Vec<Place>,
}

/// The result of [`Store::count`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Timeouts in the list, pending and running.
    pub pending: u64,
    /// Dead letters.
    pub dead: u64,
}
