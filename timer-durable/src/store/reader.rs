//! Reading a store.

use super::{Counts, DeadLetter, Filter, Micros, PendingRow, StoreError, StoredPending, TopicDue};
use crate::TimeoutId;
use crate::transaction::Target;

/// The reads of a store. They change nothing and see everything that was committed before.
pub trait Reader: Send {
    /// Returns a timeout that has not ended, or a queued call by its id.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn get(&mut self, target: &Target) -> Result<Option<StoredPending>, StoreError> {
        let _ = target;
        Err(StoreError::Unsupported("reading back"))
    }

    /// Returns up to `limit` timeouts that the filter shows, behind the row `after`. They are
    /// ordered by due time and id, or by key if the filter has a prefix. Such a filter has a topic.
    /// A queued call is then behind the timeout that has its key.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn list(
        &mut self,
        filter: &Filter,
        after: Option<&PendingRow>,
        limit: usize,
    ) -> Result<Vec<PendingRow>, StoreError> {
        let _ = (filter, after, limit);
        Err(StoreError::Unsupported("reading back"))
    }

    /// Counts the timeouts of each topic that are due within each of `delays` from now, in the
    /// order of topics. The delays ascend from zero or more. Timeouts that run do not count. A
    /// queued call may count.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn due_within(&mut self, delays: &[Micros]) -> Result<Vec<TopicDue>, StoreError> {
        let _ = delays;
        Err(StoreError::Unsupported("counting by topic"))
    }

    /// Returns up to `max` dead letters whose ids are greater than `after`, ordered by id. With a
    /// topic, returns only those of that topic.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn dead_letters(
        &mut self,
        topic: Option<&str>,
        after: Option<TimeoutId>,
        max: usize,
    ) -> Result<Vec<DeadLetter>, StoreError>;

    /// Counts the timeouts. May take time proportional to their number.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn counts(&mut self) -> Result<Counts, StoreError>;
}

/// A function that makes a connection for reads.
pub type Connect = Box<dyn FnMut() -> Result<Box<dyn Reader>, StoreError> + Send>;
