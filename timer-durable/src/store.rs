//! The trait of stores.
//!
//! A store has a list of timeouts for each topic, sorted by due time and id. One thread, the
//! keeper, uses it. It writes batches, each as one transaction, and reads pages from the lists. The
//! clock of the store decides when a timeout is due.
//!
//! Several instances may share a store. Then its timeouts are divided into shards, and an instance
//! owns some of them under a lease. [`Store::upkeep`] renews it, and every batch of an instance
//! that was taken over answers [`StoreError::Fenced`]. A store that belongs to one process, such as
//! an SQLite file, owns everything and needs no upkeep.
//!
//! # A store of your own
//!
//! A store implements [`Reader`] and [`Store`], in the order of the chapter
//! [write a store](crate::book::write_a_store). The module [`transaction`](crate::transaction) has
//! the meaning of each operation, and `conformance` (feature `conformance`) checks an
//! implementation. These parts are the same in every store, so it takes them from here:
//!
//! | rule | part |
//! |---|---|
//! | all operations, in a database that finds values by keys | [`RowBatch`] |
//! | the inserts that a caller may repeat, and the time for which the tombstone of an id lasts | [`TimeoutId::repeatable_until`], [`TimeoutId::oldest_repeatable`] |
//! | the effect of an insert on the pending timeout with its key | [`Insert::effect_on`] |
//! | the operation that a database refuses without naming it | [`Divider`] |
//! | whether a batch of all or none is kept | [`are_accepted`](crate::transaction::are_accepted) |
//! | the id and the key that an operation names | [`Operation::id`], [`Operation::key`] |
//! | the rows of a list | [`Filter::shows`], [`Filter::keys`] |
//! | the numbers of timeouts of each topic by due time | [`DueCounts`] |
//! | the wall clock that never goes back, and virtual time | [`StoreClock`] |
//! | the end of a lease, also while the machine is suspended | [`LeaseTime`] |
//! | the start of virtual time on a clock of your own, and lengths of time in microseconds | [`VIRTUAL_START`], [`micros`], [`between`] |

mod clock;
pub(crate) mod dead_letter;
mod divider;
pub(crate) mod due;
pub(crate) mod error;
pub(crate) mod figures;
pub(crate) mod pending;
mod position;
mod reader;
mod row;
mod row_batch;

pub use crate::time::{LeaseTime, Micros, VIRTUAL_START, between, micros};
pub use clock::StoreClock;
pub(crate) use dead_letter::{DeadFilter, DeadLetter};
pub use divider::{Divided, Divider};
pub use due::DueCounts;
pub(crate) use due::TopicDue;
pub(crate) use error::StoreError;
pub use figures::SHARDS;
pub(crate) use figures::{Counts, Membership};
pub use pending::StoredPending;
pub(crate) use pending::{Filter, Pending, PendingRow, TimeoutState};
pub use position::Position;
pub use reader::{Connect, Reader};
pub use row::Row;
pub use row_batch::{RowBatch, Rows};

use crate::TimeoutId;
#[cfg(doc)]
use crate::transaction::Insert;
use crate::transaction::{Operation, Outcome, Target};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The findings of [`Store::upkeep`]. A store fills the fields of the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Upkeep {
    /// Whether this instance owns a shard that it did not own before. The keeper then drops its
    /// memory and loads from the beginning.
    pub shards_gained: bool,
    /// Timeouts in this instance's shards that other instances or transactions of the user have
    /// written without [`Store::transact`], and those that a
    /// [queued](crate::transaction::Outcome::Queued) call has created or changed. Each comes with
    /// its topic.
    pub foreign: Vec<(Position, String)>,
    /// Whether another instance may have paused or resumed a topic.
    pub pauses_changed: bool,
}

/// An open transaction of a store, for the work of [`Store::transact`].
pub trait StoreTransaction {
    /// Executes an operation.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the operation has failed. The work may ignore the error and go on, so the
    /// operation has changed nothing, or the commit fails.
    fn execute(&mut self, operation: &Operation) -> Result<Outcome, StoreError>;

    /// Returns the current time on the store's clock, from which the relative delays of the work
    /// count. The default is `None`. The time is then that of the store at the beginning of the
    /// transaction, plus the time for which the work has run since.
    fn time(&self) -> Option<Micros> {
        None
    }
}

/// The work of [`Store::transact`]. Its second argument is the connection inside the transaction,
/// if the store's crate gives it to the user.
/// [`Transaction::connection`](crate::Transaction::connection) passes it on to that crate, which
/// knows the type.
pub type TransactionWork<'w> =
    &'w mut dyn for<'t> FnMut(&'t mut dyn StoreTransaction, Option<&'t dyn Any>) -> Result<(), StoreError>;

/// A store of timeouts. One thread uses it, and all calls may block.
///
/// A timer takes any store, or a `Box<dyn Store>` that is chosen while the program runs.
pub trait Store: Reader + 'static {
    /// Returns a description for log events and metrics, such as `sqlite:timeouts.db`.
    fn describe(&self) -> String;

    /// Returns a number that differs from the one of any other instance that lived at the same
    /// time, and is neither 0 nor `u32::MAX`. It becomes part of the ids that this instance makes.
    fn instance(&self) -> u32;

    /// Returns the current time on the store's clock, or an estimate of it. Never goes back while
    /// the process lives, and in a store without a server not over restarts either.
    fn now(&self) -> Micros;

    /// Returns how long the store's clock will take to reach `time`. A store whose clock stands
    /// still after a step back adds the time until it moves again.
    fn time_until(&self, time: Micros) -> Duration {
        Duration::from_micros(u64::try_from(time.saturating_sub(self.now())).unwrap_or(0))
    }

    /// Returns the longest time that the keeper may sleep while it waits for a due time, or `None`
    /// if it may trust [`time_until`](Self::time_until). A store whose clock may step forward
    /// limits the sleep, because nothing else tells the keeper.
    fn max_sleep(&self) -> Option<Duration> {
        None
    }

    /// Moves the store's clock forward by `by`. From the first call on, the clock stands still
    /// between these calls. A timer on virtual time makes them.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unsupported`] if the clock belongs to somebody else, such as a server.
    fn advance_time(&mut self, by: Duration) -> Result<(), StoreError> {
        let _ = by;
        Err(StoreError::Unsupported("virtual time"))
    }

    /// Executes the batch durably, as one transaction if it can. Returns one outcome for each
    /// operation, in the same order.
    ///
    /// No two operations name the same id or the same key, but one may name the key of a timeout
    /// that another one names by its id. The store may execute operations in any order.
    ///
    /// An error is for the batch as a whole. A fault that belongs to one operation, because its row
    /// cannot be read or the user's own triggers refuse it, is the [`Outcome::Refused`] of that
    /// operation. A [`Divider`] finds it if the database does not name it. From `until` on, no
    /// further transaction begins, and the operations that are left are [`Outcome::NotReached`].
    ///
    /// # Errors
    ///
    /// On [`StoreError::InDoubt`] each operation was executed or not. On all other errors nothing
    /// was written.
    fn write(&mut self, batch: &[Operation], until: Instant) -> Result<Vec<Outcome>, StoreError>;

    /// Executes inserts as [`write`](Self::write) does, or none of them if one has another outcome
    /// than `Created`, `Exists`, `Moved`, `Queued`, or `Kept` without
    /// [`IfPending::Refuse`](crate::IfPending::Refuse). Returns the outcomes in both cases. The
    /// keeper tells by them whether anything was written.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write), and [`StoreError::Locked`] if another transaction has locked
    /// a timeout.
    fn write_all(&mut self, inserts: &[Operation]) -> Result<Vec<Outcome>, StoreError> {
        let _ = inserts;
        Err(StoreError::Unsupported("inserts of all or none"))
    }

    /// Appends the first pending timeouts of a topic in `range` to `out`, in order and at most
    /// `max`, of this instance's shards. Timeouts that run here are not pending.
    ///
    /// Returns the position before which `out` lacks nothing of the range. The keeper asks for the
    /// rest of the range from there, so a call may end early, even without a timeout. A store can
    /// use that to sort its rows step by step.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn load(
        &mut self,
        topic: &str,
        range: Range<Position>,
        max: usize,
        out: &mut Vec<Position>,
    ) -> Result<Position, StoreError>;

    /// Returns the topics that have timeouts in this instance's shards, in any order, and maybe
    /// some without. The keeper asks after it has emptied its memory, and then loads each of them.
    /// It learns of a further topic by its own writes and by [`Upkeep::foreign`].
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn topics(&mut self) -> Result<Vec<String>, StoreError>;

    /// Appends the topics of the timeouts in `ids` to `out`, in any order. An id that is not in the
    /// store is left out. The keeper asks for timeouts that a call has moved by their ids and that
    /// it does not have in memory. The default reads each of them by [`get`](Reader::get).
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn find_topics(&mut self, ids: &[TimeoutId], out: &mut Vec<(TimeoutId, String)>) -> Result<(), StoreError> {
        for id in ids {
            out.extend(self.get(&Target::Id(*id))?.map(|timeout| (*id, timeout.topic)));
        }
        Ok(())
    }

    /// Pauses a topic for all instances, or resumes it. The keepers do not begin its timeouts. The
    /// keeper of another instance learns of it by [`Upkeep::pauses_changed`].
    ///
    /// # Errors
    ///
    /// [`StoreError`] if nothing was written.
    fn set_paused(&mut self, topic: &str, is_paused: bool) -> Result<(), StoreError> {
        let _ = (topic, is_paused);
        Err(StoreError::Unsupported("topics that are paused"))
    }

    /// Returns the topics that are paused, in order.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn paused_topics(&mut self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// Connects to the store. The open of a timer calls this once, before all other methods but
    /// [`describe`](Self::describe) and [`connect_reader`](Self::connect_reader), on the thread of
    /// the keeper. So a program that opens a timer waits for the store as for any call. The default
    /// does nothing, for a store that its constructor has opened.
    ///
    /// # Errors
    ///
    /// The error of the store's crate, which the open of the timer returns as
    /// [`Error::Open`](crate::Error::Open).
    fn open(&mut self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }

    /// Returns the ids of up to `max` dead letters of a topic that died before `time`, in any
    /// order. The keeper asks once an hour if the topic has a [limit](crate::Topic::keep_dead). The
    /// default reads the dead letters of the topic.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn dead_before(&mut self, topic: &str, time: Micros, max: usize) -> Result<Vec<TimeoutId>, StoreError> {
        let mut found = Vec::new();
        let mut after = None;
        while found.len() < max {
            let letters = self.dead_letters(Some(topic), after, max)?;
            let Some(last) = letters.last() else { break };
            after = Some(last.id);
            found.extend(letters.iter().filter(|letter| letter.died < time).map(|letter| letter.id));
        }
        found.truncate(max);
        Ok(found)
    }

    /// Becomes a new instance. The keeper calls this when the timer is opened, and again after
    /// [`StoreError::Fenced`], [`StoreError::InDoubt`] or [`StoreError::Disconnected`]. When this
    /// returns, nothing that the old instance has sent can be executed any more, and all timeouts
    /// that it has begun are pending again.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be reached. The open of the timer then fails, and a
    /// running timer tries again later.
    fn rejoin(&mut self) -> Result<(), StoreError>;

    /// Returns a function that connects to the store for reads beside the keeper, or `None` if the
    /// keeper has to read. It may be called after the store has failed or was closed.
    fn connect_reader(&self) -> Option<Connect> {
        None
    }

    /// Returns the number of timeouts that are pending or running, of all instances, if the store
    /// knows it without counting. It may be an estimate, and it may be a minute old.
    ///
    /// The keeper calls this after each of its turns, so it must not read the store.
    fn pending(&self) -> Option<u64> {
        None
    }

    /// Returns the instant of the next [`upkeep`](Self::upkeep), or `None` if the store needs none.
    fn next_upkeep(&self) -> Option<Instant> {
        None
    }

    /// Returns `true` if the store can write nothing before it has joined again, for example
    /// because a read has found the connection broken. The keeper asks before it writes.
    fn must_rejoin(&self) -> bool {
        false
    }

    /// Receives a function that lets the keeper ask for [`next_upkeep`](Self::next_upkeep) again. A
    /// store calls it from another thread when it learns of a change, for example by a
    /// notification.
    fn set_waker(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        let _ = wake;
    }

    /// Returns the place of this instance among the others, or `None` if the store belongs to one
    /// process.
    fn membership(&self) -> Option<Membership> {
        None
    }

    /// Renews the lease, takes over shards, and collects what others have written. `running` are
    /// the timeouts whose handlers run here.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fenced`] if this instance was taken over.
    fn upkeep(&mut self, running: &[TimeoutId]) -> Result<Upkeep, StoreError> {
        let _ = running;
        Ok(Upkeep::default())
    }

    /// Returns `true` if attempts may begin, that is, if the lease holds by this machine's
    /// monotonic clock.
    fn may_begin(&self) -> bool {
        true
    }

    /// Returns the end of the lease by this machine's monotonic clock, or `None` if the store needs
    /// no lease. A handler that still waits for a thread of the executor does not start after this
    /// time. The keeper asks after each [`rejoin`](Self::rejoin) and [`upkeep`](Self::upkeep).
    ///
    /// There is no default, because a store around another one has to pass on the lease.
    fn lease_end(&self) -> Option<Instant>;

    /// Calls `work` once in a transaction, and commits its operations if it returns `Ok`.
    ///
    /// # Errors
    ///
    /// The error of `work`, after which nothing is written, and the errors of
    /// [`write`](Self::write).
    fn transact(&mut self, work: TransactionWork<'_>) -> Result<(), StoreError> {
        let _ = work;
        Err(StoreError::Unsupported("transactions of the user"))
    }

    /// Writes a copy of the store to `path` while it is in use.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] if the copy cannot be written.
    fn backup(&mut self, path: &std::path::Path) -> Result<(), StoreError> {
        let _ = path;
        Err(StoreError::Unsupported("backups"))
    }

    /// Hands everything back before the process ends. The store is not used after this.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if shards could not be handed back. They are taken over when the lease is
    /// over.
    fn leave(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl<S: Store> From<S> for Box<dyn Store> {
    fn from(store: S) -> Self {
        Box::new(store)
    }
}
