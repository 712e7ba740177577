//! The database file, which is opened here, and its transactions.

use crate::rows::RedbRows;
use crate::tables::{FLOOR, META, PAUSED, VERSION};
use redb::{
    Builder, Database, DatabaseError, Durability, Error, ReadTransaction, ReadableDatabase, ReadableTable,
    TransactionError, WriteTransaction,
};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use timer_durable::StoreError;
use timer_durable::store::Micros;

/// The version of the tables.
const THIS_VERSION: i64 = 1;

/// The memory that redb may use for pages, in bytes.
const CACHE: usize = 64 << 20;

/// A file that this process owns while it is open. The store opens and closes it, and its readers
/// share it.
#[derive(Debug)]
pub(crate) struct File {
    path: PathBuf,
    database: Mutex<Option<Database>>,
}

impl File {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), database: Mutex::new(None) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file, or opens it again. After a failure of the disk, redb does not use a file
    /// until it is opened again. Returns the latest time on the store's clock.
    pub(crate) fn open(&self) -> Result<Micros, OpenError> {
        self.close();
        let database = Builder::new().set_cache_size(CACHE).create(&self.path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => OpenError::InUse(self.path.clone()),
            error => OpenError::Failed(self.path.clone(), error.into()),
        })?;
        let prepared = prepare(&database).map_err(|error| OpenError::Failed(self.path.clone(), error));
        let (version, floor) = prepared?;
        if version != Some(THIS_VERSION) {
            return Err(OpenError::Version(self.path.clone(), version));
        }
        *self.lock() = Some(database);
        Ok(floor)
    }

    /// Closes the file. Reads that are under way fail.
    pub(crate) fn close(&self) {
        let database = self.lock().take();
        drop(database);
    }

    pub(crate) fn begin_read(&self) -> Result<ReadTransaction, StoreError> {
        self.begin(Database::begin_read)
    }

    /// Begins a transaction. Only the thread of the keeper writes, so this never waits for another
    /// transaction.
    pub(crate) fn begin_write(&self) -> Result<WriteTransaction, StoreError> {
        self.begin(Database::begin_write)
    }

    fn begin<T>(&self, begin: fn(&Database) -> Result<T, TransactionError>) -> Result<T, StoreError> {
        let database = self.lock();
        let closed = || StoreError::Disconnected("the file is closed".to_owned());
        begin(database.as_ref().ok_or_else(closed)?).map_err(failed)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Database>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates the tables in a new file. Returns the version of the tables, or `None` if the file has
/// only tables of another program, and the latest time on the store's clock.
fn prepare(database: &Database) -> Result<(Option<i64>, Micros), Error> {
    let transaction = database.begin_write()?;
    let is_new = transaction.list_tables()?.next().is_none() && transaction.list_multimap_tables()?.next().is_none();
    let (version, floor) = {
        let mut meta = transaction.open_table(META)?;
        if is_new {
            meta.insert(VERSION, THIS_VERSION)?;
        }
        let number = |name| meta.get(name).map(|number| number.map(|number| number.value()));
        (number(VERSION)?, number(FLOOR)?.unwrap_or(0))
    };
    // A file that is refused stays as it is.
    if version == Some(THIS_VERSION) {
        // A read fails if its table does not exist.
        RedbRows::open(&transaction)?;
        transaction.open_table(PAUSED)?;
        transaction.commit()?;
    }
    Ok((version, floor))
}

/// Commits a transaction. The file is synced before this returns, unless the clock is virtual.
pub(crate) fn commit(mut transaction: WriteTransaction, is_virtual: bool) -> Result<(), StoreError> {
    // A test on virtual time does not go on after a crash of its machine.
    let durability = if is_virtual { Durability::None } else { Durability::Immediate };
    transaction.set_durability(durability).map_err(failed)?;
    transaction.commit().map_err(|error| StoreError::InDoubt(error.to_string()))
}

/// Returns the error of a transaction that was not committed. The keeper then calls `rejoin`, which
/// opens the file again.
pub(crate) fn failed<E: Into<Error>>(error: E) -> StoreError {
    StoreError::Disconnected(error.into().to_string())
}

/// The reason why a file cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another store of this process, has the file open.
    InUse(PathBuf),
    /// The file has tables of this other version. If it is `None`, the file has only tables of
    /// another program.
    Version(PathBuf, Option<i64>),
    /// The file cannot be used, or it is no file of redb.
    Failed(PathBuf, Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(f, "{} is in use; a file has one owner at a time", path.display()),
            Self::Version(path, Some(found)) => {
                write!(f, "{} has tables of version {found}; allowed: {THIS_VERSION}", path.display())
            }
            Self::Version(path, None) => write!(f, "{} is a database of another program", path.display()),
            Self::Failed(path, error) => write!(f, "{} cannot be opened: {error}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}
