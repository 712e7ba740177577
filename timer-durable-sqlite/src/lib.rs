//! A store of durable timeouts in an SQLite file, which one process owns.
//!
//! [`SqliteStore`] is a store for a [`DurableTimer`](timer_durable::DurableTimer). SQLite is
//! compiled in, so nothing has to be installed. The [book] covers backups and faults. The book of
//! `timer-durable` has the promises.
//!
//! ```no_run
//! use std::time::Duration;
//! use timer_durable::{Due, DurableTimer, Topic};
//! use timer_durable_sqlite::SqliteStore;
//!
//! const CLOSE: Topic<String> = Topic::new("order.close");
//!
//! let builder = DurableTimer::builder().topic(CLOSE, |due: &Due<String>| {
//!     println!("closing order {}", due.payload());
//!     Ok(())
//! });
//! let timer = builder.open(SqliteStore::open("timeouts.db")?).wait()?;
//! timer.new_timeout(CLOSE, Duration::from_secs(1800), "17").wait()?;
//! # Ok::<(), timer_durable::Error>(())
//! ```
//!
//! A [`SqliteHandle`] runs transactions with tables of the user in the same file.
//!
//! # How it works
//!
//! - The file is in WAL mode with `synchronous=FULL`, so each commit is synced. Both are read back
//!   when the file is opened.
//! - The process is the owner of the file. Another process that opens it gets an error that
//!   names the owner. If the path does not lead to the file any more, every call is an error.
//! - One connection on the keeper's thread writes, so no statement waits for another one. Others
//!   may read beside it, in this process or in any other.
//!
//! Times are the wall clock of the machine, but never less than the latest time in the file.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_docs)]

mod begun;
pub mod book;
mod create;
mod file_connection;
mod foreign;
mod handle;
mod holder;
mod ids;
mod lazy_statement;
mod log;
mod names;
mod open;
mod open_error;
mod owner;
mod put;
mod queued;
mod read;
mod reader;
mod rows;
mod schema;
mod slots;
mod store;
mod tally;
mod tombstones;
mod topics;
mod transaction;
mod unreadable;
mod version;

use begun::BegunSlot;
use file_connection::FileConnection;
use foreign::ForeignWrites;
pub use handle::{OtherStoreError, SqliteHandle, SqliteTransaction};
use log::Log;
use open::Opened;
pub use open_error::OpenError;
use owner::Owner;
use queued::QueuedCalls;
pub use reader::SqliteReader;
/// The crate of the connection of a [`SqliteTransaction`].
#[doc(no_inline)]
pub use rusqlite;

use rusqlite::ErrorCode;
use schema::{SCHEMA, Schema};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tally::Tally;
use timer_durable::StoreError;
use timer_durable::store::{Divider, Micros, Position, StoreClock};
use tombstones::Tombstones;
use unreadable::UnreadableRows;

/// The shortest time between two writes of the latest time. Only commits that happen anyway write
/// it.
const FLOOR_INTERVAL: Micros = 1_000_000;

/// A commit that begins within this time after a check of the files does not check them again. The
/// check after a commit is never left out.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// A store in an SQLite file.
///
/// The file and its `-wal` file belong to one process at a time, which has a lock on an `-owner`
/// file beside them. Other programs may read the file, by [`SqliteReader`] or by the view
/// `timer_pending`, but must not write it. A new file can be read and written by its user alone
/// (mode 600). The tables of the user can be in the same file, see
/// [`SqliteHandle`].
///
/// If one of these files is removed, renamed or replaced while it is open, every later call is an
/// error and no timeout begins, until the file is opened again.
///
/// # Examples
///
/// ```no_run
/// use timer_durable::{Due, DurableTimer, Topic};
/// use timer_durable_sqlite::SqliteStore;
///
/// const CLOSE: Topic<String> = Topic::new("order.close");
///
/// let store = SqliteStore::open("timeouts.db")?;
/// let sqlite = store.handle();
/// let timer = DurableTimer::builder()
///     .topic(CLOSE, move |due: &Due<String>| {
///         // The order and the end of its timeout are written in one transaction.
///         let order = due.payload().clone();
///         sqlite.complete(due, move |tx| {
///             tx.connection().execute("update orders set closed = 1 where number = ?1", [order])?;
///             Ok(())
///         })
///         .wait()?;
///         Ok(())
///     })
///     .open(store)
///     .wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SqliteStore {
    /// The connection is closed before another process may own the file.
    connection: FileConnection,
    owner: Owner,
    /// The time of the last check that found the files at their paths.
    checked: Option<Instant>,
    /// The error of each call once the path does not lead to the file any more.
    lost: Option<String>,
    log: Log,
    path: PathBuf,
    epoch: i64,
    clock: StoreClock,
    /// The latest time that the file contains.
    written: Micros,
    tally: Tally,
    divider: Divider,
    begun_slot: BegunSlot,
    /// The schema to which [`upgrade`](Self::upgrade) leads.
    schema: Schema,
    foreign: ForeignWrites,
    /// The timeouts that queued calls have created or changed since the last upkeep.
    settled: Vec<(Position, String)>,
}

impl SqliteStore {
    /// Opens the file at `path`, or creates it if there is none. Creates the tables if the file has
    /// none of them, also beside tables of the user. Their names begin with `timer_`. The store
    /// neither reads nor writes `user_version` and `application_id`, which belong to the user.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the file is not a database, has another table by a name of the store, has
    /// another version or another name, is damaged, belongs to another process, or cannot be
    /// written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_as(path.as_ref(), SCHEMA)
    }

    fn open_as(path: &Path, schema: Schema) -> Result<Self, OpenError> {
        let Opened { connection, owner, floor } = open::open(path, schema)?;
        let connection = FileConnection { connection, file: owner.file().clone() };
        Ok(Self {
            connection,
            checked: None,
            lost: None,
            log: Log::new(owner.path()),
            owner,
            path: path.to_owned(),
            epoch: 0,
            clock: StoreClock::new(floor),
            written: floor,
            tally: Tally::default(),
            divider: Divider::new(),
            begun_slot: BegunSlot::default(),
            schema,
            foreign: ForeignWrites::default(),
            settled: Vec::new(),
        })
    }

    /// Turns a file of an earlier version of the schema into one of this program's version, which
    /// earlier programs refuse. Does nothing if it has this version. So far there is only one. See
    /// the chapter [upgrades](timer_durable::book::upgrades).
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the file cannot be written.
    pub fn upgrade(&mut self) -> Result<(), OpenError> {
        self.schema.upgrade(&self.connection, &self.path)
    }

    /// Returns a handle for transactions with tables of the user in the same file. A program takes
    /// it before it opens the timer on the store.
    #[must_use]
    pub fn handle(&self) -> SqliteHandle {
        SqliteHandle::new(self.connection.file.clone())
    }

    /// Returns the path that was given to [`open`](Self::open).
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns an error once the path does not lead to the file any more, because other programs
    /// find another file there, or none.
    fn check(&mut self) -> Result<(), StoreError> {
        if self.lost.is_none() {
            let Err(error) = self.owner.check() else {
                self.checked = Some(Instant::now());
                return Ok(());
            };
            self.checked = None;
            let why = format!("{error}; open it again");
            if error.kind() != std::io::ErrorKind::NotFound {
                return Err(StoreError::Failed(why));
            }
            tracing::error!(path = %self.path.display(), %error, "the file is not at its path any more");
            self.lost = Some(why);
        }
        self.lost.clone().map_or(Ok(()), |why| Err(StoreError::Failed(why)))
    }

    /// Executes the batch and the commit. The first error before the commit undoes everything.
    fn commit<R>(
        &mut self,
        body: impl FnOnce(&mut FileConnection, i64, &StoreClock) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        // The check after each commit protects its callers. This one only keeps the store from
        // going on with files that are gone.
        if self.checked.is_none_or(|checked| checked.elapsed() >= CHECK_INTERVAL) {
            self.check()?;
        }
        let now = self.clock.now();
        let epoch = self.epoch;
        let writes_floor = now - self.written >= FLOOR_INTERVAL;
        self.connection.prepare_cached("begin immediate").and_then(|mut begin| begin.execute([])).map_err(failed)?;
        let looked = self.foreign.look(&self.connection).map_err(failed);
        let result = looked.and_then(|()| body(&mut self.connection, epoch, &self.clock));
        let result = result.and_then(|result| {
            if writes_floor {
                let mut floor = self.connection.prepare_cached("update timer_meta set floor = ?1").map_err(failed)?;
                floor.execute([now]).map_err(failed)?;
            }
            Ok(result)
        });
        let result = match result {
            Ok(result) => {
                let commit = self.connection.prepare_cached("commit").and_then(|mut commit| commit.execute([]));
                commit.map_err(|error| self.undo(&error))?;
                result
            }
            Err(error) => {
                self.roll_back();
                return Err(error);
            }
        };
        if writes_floor {
            self.written = now;
        }
        // The file may have been replaced before it was written.
        self.check().map_err(|error| StoreError::InDoubt(error.to_string()))?;
        self.log.look(&self.connection);
        Ok(result)
    }

    /// Decides whether a failed commit was executed. SQLite keeps the transaction open if it wrote
    /// nothing.
    fn undo(&mut self, error: &rusqlite::Error) -> StoreError {
        if self.connection.is_autocommit() {
            return StoreError::InDoubt(error.to_string());
        }
        self.roll_back();
        failed(error)
    }

    /// Lets queued calls take effect if another program has deleted their attempts. The calls stay
    /// queued if a row cannot be read or written.
    fn settle_orphans(&mut self) -> Result<(), StoreError> {
        let orphans = queued::find_orphans(&self.connection).map_err(failed)?;
        if orphans.is_empty() {
            return Ok(());
        }
        let settled = self.commit(|connection, epoch, clock| {
            let tombstones = Tombstones::new(connection, epoch, clock.now());
            QueuedCalls::settle_orphans(tombstones, orphans).map_err(failed)
        });
        match settled {
            Ok(calls) => self.settled.extend(calls.settled),
            Err(StoreError::Refused(error)) => tracing::warn!(error, "calls whose attempts were deleted stay queued"),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes rows that cannot be read dead letters, and counts the others anew.
    fn bury(&mut self, rows: UnreadableRows) -> Result<(), StoreError> {
        if !rows.is_empty() {
            let calls = self.commit(|connection, epoch, clock| {
                QueuedCalls::bury(Tombstones::new(connection, epoch, clock.now()), &rows).map_err(failed)
            })?;
            self.settled.extend(calls.settled);
        }
        self.tally = Tally::start(&self.connection).map_err(failed)?;
        Ok(())
    }

    fn roll_back(&mut self) {
        if !self.connection.is_autocommit() {
            let _rolled_back = self.connection.execute_batch("rollback");
        }
    }
}

fn failed(error: impl std::borrow::Borrow<rusqlite::Error>) -> StoreError {
    let error = error.borrow();
    match error.sqlite_error_code() {
        _ if unreadable::is_of_row(error) => StoreError::Refused(error.to_string()),
        Some(ErrorCode::DatabaseBusy) => StoreError::Busy,
        Some(ErrorCode::DiskFull) => StoreError::Failed(format!("the disk is full: {error}")),
        _ => StoreError::Failed(error.to_string()),
    }
}

impl From<OpenError> for timer_durable::Error {
    fn from(error: OpenError) -> Self {
        Self::Open(Box::new(error))
    }
}

/// Compiles and runs the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
