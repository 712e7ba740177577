//! A connection that reads a database beside its nodes.

use super::connect;
use super::connect_error::ConnectError;
use super::connection::{Access, PostgresConnection};
use super::lease::Lease;
use super::query_error::QueryError;
use super::{PostgresOptions, PostgresStore, link, read};
use std::fmt;
use std::time::Duration;
use timer_durable::store::{Micros, Reader, StoredPending};
use timer_durable::transaction::Target;
use timer_durable::{Counts, DeadLetter, Filter, PendingRow, StoreError, TimeoutId, TopicDue};

/// A connection that reads a PostgreSQL database, which nodes may use.
///
/// It installs nothing, joins nothing, and needs no right but to read the tables of the schema. On
/// a replica it reads the rows that have arrived there. It keeps no settings, so it works behind a
/// pooler. A read that takes more than 7.5 s fails.
///
/// # Examples
///
/// ```no_run
/// use timer_durable::Filter;
/// use timer_durable::store::Reader;
/// use timer_durable_postgres::PostgresReader;
///
/// let mut database = PostgresReader::connect("postgres://shop@db.example/shop")?;
/// for row in database.list(&Filter::new().topic("order.close"), None, 100)? {
///     println!("{} {:?} {:?}", row.id, row.key, row.deadline());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PostgresReader(PostgresConnection);

impl fmt::Debug for PostgresReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresReader")
    }
}

impl PostgresReader {
    /// Connects to a server whose database has the schema `timer`.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if the server cannot be reached, or if the database has no schema `timer`
    /// or one of another version.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let limit = Lease::new().limit();
        let connection = connect::connect_to_read(&PostgresOptions::from_url(url)?.access()?, limit + link::MARGIN)?;
        Ok(Self::with(connection, limit))
    }

    /// Connects to the server of a store in this process.
    pub(super) fn beside(access: &Access, limit: Duration) -> Result<Self, StoreError> {
        let connection = PostgresConnection::open(access, limit + link::MARGIN)
            .map_err(|error| StoreError::Disconnected(error.to_string()))?;
        Ok(Self::with(connection, limit))
    }

    fn with(mut connection: PostgresConnection, limit: Duration) -> Self {
        let settings = link::settings(&connection, "set local", limit, false);
        connection.set_settings(Some(format!("{settings}; set transaction read only")));
        Self(connection)
    }

    fn read<R>(
        &mut self,
        read: impl FnOnce(&mut PostgresConnection) -> Result<R, QueryError>,
    ) -> Result<R, StoreError> {
        // A read leaves nothing in doubt.
        read(&mut self.0).map_err(|error| StoreError::Failed(error.to_string()))
    }
}

/// Implements [`Reader`] by functions that take a connection.
macro_rules! reader {
    ($($type:ty),*) => {$(
        impl Reader for $type {
            fn get(&mut self, target: &Target) -> Result<Option<StoredPending>, StoreError> {
                self.read(|connection| read::get(connection, target))
            }

            fn list(
                &mut self,
                filter: &Filter,
                after: Option<&PendingRow>,
                limit: usize,
            ) -> Result<Vec<PendingRow>, StoreError> {
                self.read(|connection| read::list(connection, filter, after, limit))
            }

            fn due_within(&mut self, delays: &[Micros]) -> Result<Vec<TopicDue>, StoreError> {
                self.read(|connection| read::due_within(connection, delays))
            }

            fn dead_letters(
                &mut self,
                topic: Option<&str>,
                after: Option<TimeoutId>,
                max: usize,
            ) -> Result<Vec<DeadLetter>, StoreError> {
                self.read(|connection| read::dead_letters(connection, topic, after, max))
            }

            fn counts(&mut self) -> Result<Counts, StoreError> {
                self.read(read::counts)
            }
        }
    )*};
}

reader!(PostgresReader, PostgresStore);
