//! A connection that reads a file beside its owner.

use super::open;
use super::open_error::OpenError;
use super::owner::KnownFile;
use super::{SqliteStore, failed, read, unreadable};
use rusqlite::Connection;
use std::path::Path;
use timer_durable::store::{Micros, Reader, StoreClock, StoredPending};
use timer_durable::transaction::Target;
use timer_durable::{Counts, DeadLetter, Filter, PendingRow, StoreError, TimeoutId, TopicDue};

/// A connection that reads an SQLite file, which another process may own.
///
/// Each read sees everything that the owner has committed before, and neither waits for a commit
/// nor delays one. SQLite keeps a `-shm` file beside the file while it is in use.
///
/// # Examples
///
/// ```no_run
/// use timer_durable::Filter;
/// use timer_durable::store::Reader;
/// use timer_durable_sqlite::SqliteReader;
///
/// let mut file = SqliteReader::open("timeouts.db")?;
/// for row in file.list(&Filter::new().topic("order.close"), None, 100)? {
///     println!("{} {:?} {:?}", row.id, row.key, row.deadline());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SqliteReader {
    connection: Connection,
    /// The files that have to stay at their paths, if an owner in this process knows them.
    files: Vec<KnownFile>,
}

impl SqliteReader {
    /// Opens the existing file at `path`.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the file is not a database of timeouts, has another version, or cannot be
    /// read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Ok(Self { connection: open::open_to_read(path.as_ref())?, files: Vec::new() })
    }

    /// Opens the file of an owner in this process.
    pub(super) fn beside(path: &Path, files: &[KnownFile]) -> Result<Self, StoreError> {
        check(files)?;
        let connection = open::open_to_read(path).map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(Self { connection, files: files.to_vec() })
    }

    fn read<R>(&mut self, read: impl FnOnce(&Connection) -> rusqlite::Result<R>) -> Result<R, StoreError> {
        check(&self.files)?;
        read(&self.connection).map_err(failed)
    }

    /// Returns the time on the owner's clock.
    fn time(&mut self) -> Result<Micros, StoreError> {
        let floor = self.read(|db| db.query_row("select floor from timer_meta", [], |row| row.get(0)))?;
        Ok(StoreClock::new(floor).now())
    }
}

fn check(files: &[KnownFile]) -> Result<(), StoreError> {
    files.iter().try_for_each(KnownFile::check).map_err(|error| StoreError::Failed(error.to_string()))
}

impl SqliteStore {
    fn read<R>(&mut self, read: impl FnOnce(&Connection) -> rusqlite::Result<R>) -> Result<R, StoreError> {
        self.check()?;
        read(&self.connection).map_err(failed)
    }

    fn time(&self) -> Result<Micros, StoreError> {
        Ok(self.clock.now())
    }
}

/// Implements [`Reader`] by functions that take a connection.
macro_rules! reader {
    ($($type:ty),*) => {$(
        impl Reader for $type {
            fn get(&mut self, target: &Target) -> Result<Option<StoredPending>, StoreError> {
                self.read(|db| read::get(db, target))
            }

            fn list(
                &mut self,
                filter: &Filter,
                after: Option<&PendingRow>,
                limit: usize,
            ) -> Result<Vec<PendingRow>, StoreError> {
                self.read(|db| read::list(db, filter, after, limit))
            }

            fn due_within(&mut self, delays: &[Micros]) -> Result<Vec<TopicDue>, StoreError> {
                let now = self.time()?;
                self.read(|db| read::due_within(db, now, delays))
            }

            fn dead_letters(
                &mut self,
                topic: Option<&str>,
                after: Option<TimeoutId>,
                max: usize,
            ) -> Result<Vec<DeadLetter>, StoreError> {
                self.read(|db| unreadable::dead_letters(db, topic, after, max))
            }

            fn counts(&mut self) -> Result<Counts, StoreError> {
                self.read(read::counts)
            }
        }
    )*};
}

reader!(SqliteReader, SqliteStore);
