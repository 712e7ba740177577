//! Transactions of the user on the connection of a store.
//!
//! A [`SqliteHandle`] knows the file of its store. The connection that a timer passes to the work
//! knows its file, too. If the two differ, the work does not run.

use super::file_connection::FileConnection;
use super::owner::KnownFile;
use rusqlite::Connection;
use std::error::Error as StdError;
use std::fmt;
use std::ops::{Deref, DerefMut};
use timer_durable::{Call, Due, DurableTimer, Transaction};

/// An open transaction in the file of a store, with its connection.
///
/// The calls of [`Transaction`] schedule, cancel and move timeouts in it.
#[derive(Debug)]
pub struct SqliteTransaction<'a, 't> {
    inner: &'a mut Transaction<'t>,
    connection: &'t Connection,
}

impl<'t> SqliteTransaction<'_, 't> {
    /// Returns the connection to the file, inside the transaction.
    ///
    /// Names that begin with `timer_` belong to the store. A temporary table or view with such a
    /// name fails the transaction. Do not end the transaction by a statement.
    #[must_use]
    pub fn connection(&self) -> &'t Connection {
        self.connection
    }
}

impl<'t> Deref for SqliteTransaction<'_, 't> {
    type Target = Transaction<'t>;

    fn deref(&self) -> &Transaction<'t> {
        self.inner
    }
}

impl<'t> DerefMut for SqliteTransaction<'_, 't> {
    fn deref_mut(&mut self) -> &mut Transaction<'t> {
        self.inner
    }
}

/// A handle of the file of a store, which runs the user's work in transactions of its timer.
///
/// [`SqliteStore::handle`](crate::SqliteStore::handle) returns it, before the timer takes the store. It holds neither the file
/// nor the timer open.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, Topic};
/// use timer_durable_sqlite::SqliteStore;
///
/// const CLOSE: Topic<String> = Topic::new("order.close");
///
/// let store = SqliteStore::open("shop.db")?;
/// let sqlite = store.handle();
/// let timer = DurableTimer::builder().topic(CLOSE, |_: &Due<String>| Ok(())).open(store).wait()?;
/// sqlite.transaction(&timer, |tx| {
///     tx.connection().execute("create table orders(number text primary key)", ())?;
///     tx.connection().execute("insert into orders values ('17')", ())?;
///     tx.new_timeout(CLOSE, Duration::from_secs(1800), "17")?;
///     Ok(())
/// })
/// .wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteHandle {
    file: KnownFile,
}

/// The error of work on the connection.
type WorkError = Box<dyn StdError + Send + Sync>;

impl SqliteHandle {
    pub(super) fn new(file: KnownFile) -> Self {
        Self { file }
    }

    /// Runs `work` in a transaction of the timer's file and commits it if `work` returns a value.
    /// An order and the timeout that closes it are written together or not at all.
    ///
    /// The call answers when the transaction is durable. `work` runs on the keeper's thread and
    /// should only execute a few statements, because all other calls wait for it.
    ///
    /// # Errors
    ///
    /// As for [`DurableTimer::transaction`]. [`Error::Work`](timer_durable::Error::Work) with
    /// [`OtherStoreError`] if the timer has another store than the one of this handle. `work` has
    /// not run then.
    #[doc(alias = "with_connection")]
    pub fn transaction<R: Send + 'static>(
        &self,
        timer: &DurableTimer,
        work: impl FnOnce(&mut SqliteTransaction<'_, '_>) -> Result<R, WorkError> + Send + 'static,
    ) -> Call<R> {
        timer.transaction(self.typed(work))
    }

    /// Runs `work` in a transaction of the timer's file that ends the attempt, for an effect that
    /// happens exactly once. [`Due::complete_with`] tells how a handler goes on.
    ///
    /// # Errors
    ///
    /// As for [`Due::complete_with`]. [`Error::Work`](timer_durable::Error::Work) with
    /// [`OtherStoreError`] if the timer of the attempt has another store than the one of this
    /// handle. `work` has not run then.
    pub fn complete<P, R: Send + 'static>(
        &self,
        due: &Due<P>,
        work: impl FnOnce(&mut SqliteTransaction<'_, '_>) -> Result<R, WorkError> + Send + 'static,
    ) -> Call<R> {
        due.complete_with(self.typed(work))
    }

    /// Returns work for any store, which fails in another one than that of this handle.
    fn typed<R, W>(&self, work: W) -> impl FnOnce(&mut Transaction<'_>) -> Result<R, WorkError> + Send + use<R, W>
    where
        W: FnOnce(&mut SqliteTransaction<'_, '_>) -> Result<R, WorkError> + Send + 'static,
    {
        let handle = self.clone();
        move |transaction: &mut Transaction<'_>| {
            let opened = transaction.connection().and_then(|connection| connection.downcast_ref::<FileConnection>());
            let Some(opened) = opened.filter(|opened| opened.file == handle.file) else {
                return Err(OtherStoreError { handle }.into());
            };
            work(&mut SqliteTransaction { connection: &opened.connection, inner: transaction })
        }
    }
}

/// A handle that was used with a timer on another store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherStoreError {
    handle: SqliteHandle,
}

impl OtherStoreError {
    /// Returns the handle.
    #[must_use]
    pub fn into_inner(self) -> SqliteHandle {
        self.handle
    }
}

impl fmt::Display for OtherStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the handle belongs to {}, and the timer has another store", self.handle.file.path().display())
    }
}

impl StdError for OtherStoreError {}
