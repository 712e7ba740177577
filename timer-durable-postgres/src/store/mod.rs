//! The store in a PostgreSQL database that many machines share.
//!
//! - The list of timeouts is divided into 64 shards. A node owns some of them under a lease that it
//!   renews, and writes into its own shards, so nodes need no messages.
//! - Each statement that changes timeouts first locks the node's own row for share, and does
//!   nothing if the row says that the node was taken over. A take-over updates that row, and
//!   therefore waits for the transaction. Fencing does not depend on clocks. Reads and the removal
//!   of tombstones have no fence.
//! - A connection that fails may have executed its last statement or may still execute it. The node
//!   then becomes a new instance, and fences the old one in the same way.
//!
//! Times are read from the server's clock. The keeper owns the memory and the handlers.

mod agenda;
mod calls;
mod clock;
mod column;
mod connect;
mod connect_error;
mod connection;
mod foreign;
mod lease;
mod link;
mod listen;
mod locks;
mod look;
mod membership;
mod options;
mod pages;
mod part;
mod parts;
mod pooler;
mod put;
mod query_error;
mod read;
mod reader;
mod schema;
mod statements;
#[cfg(feature = "tls")]
mod tls;
mod tombstones;
mod verification;
mod write;

pub use connect_error::ConnectError;
pub use options::PostgresOptions;
pub use reader::PostgresReader;

use agenda::{Agenda, Interval};
use clock::Clock;
use connection::{Access, PostgresConnection};
use lease::Lease;
use link::Link;
use listen::{Listener, Signals};
use look::Frontier;
use query_error::QueryError;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use timer_durable::store::{Divider, Store};
use timer_durable::transaction::Target;
use timer_durable::{Call, Membership, StoreError};
use tombstones::Removal;

/// The number of shards.
const SHARDS: usize = 64;

/// The time between two counts of the pending timeouts. A count follows a renewal.
const COUNT: Duration = Duration::from_secs(60);

/// The shortest time between two events that report a refused renewal.
const WARNINGS: Duration = Duration::from_secs(60);

/// A store in a PostgreSQL database, which many processes on many machines share.
///
/// Each process opens its own store. If one of them dies, freezes or loses its connection, the
/// others run its timeouts when its lease is over. A timeout is scheduled, cancelled and ended in
/// the user's own transaction by the calls of a driver, see
/// [`PostgresTransaction`](crate::PostgresTransaction).
///
/// PostgreSQL 14 or newer is needed. A process uses two connections. Behind a pooler in transaction
/// mode it uses one, and learns of the timeouts of other writers within a second.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, Topic};
/// use timer_durable_postgres::PostgresStore;
///
/// const CLOSE: Topic<String> = Topic::new("order.close");
///
/// let store = PostgresStore::new("postgres://shop@db.example/shop")?;
/// let timer = DurableTimer::builder()
///     .topic(CLOSE, |due: &Due<String>| {
///         println!("closing order {}", due.payload());
///         Ok(())
///     })
///     .open(store.lease(Duration::from_secs(10)))
///     .wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PostgresStore {
    access: Access,
    name: Option<String>,
    lease: Lease,
    /// Whether the URL leads to a pooler in transaction mode.
    pooled: bool,
    /// `None` after an error whose outcome is unknown.
    link: Option<Link>,
    /// A connection that has no statements yet.
    fresh: Option<PostgresConnection>,
    /// This instance, 0 before the first join.
    instance: i64,
    /// All instances that this process has been or may have been.
    tried: Vec<i64>,
    has_joined: bool,
    shards: Vec<i16>,
    epochs: Vec<Option<i64>>,
    turn: usize,
    agenda: Agenda,
    /// A hash of the topics that are paused, at the last renewal.
    paused: Option<i64>,
    /// The timeouts that other transactions had locked, before the next batch about them.
    locked: HashSet<Target>,
    /// Finds the operations that the database refuses, and the inserts that meet another row.
    divider: Divider,
    put_divider: Divider,
    /// The instances whose lease was over, with the time at which this was first seen.
    suspects: HashMap<i64, Instant>,
    frontier: Frontier,
    /// Since the join or since shards were gained, no look has settled the queued calls whose
    /// attempts were deleted.
    owes_settling: bool,
    /// Shards were gained, and the keeper has not been told yet.
    has_gained: bool,
    clock: Clock,
    signals: Arc<Signals>,
    listener: Option<Listener>,
    figures: Membership,
    pending: Option<u64>,
    counts: Interval,
    removal: Removal,
    warnings: Interval,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore")
            .field("server", &self.describe())
            .field("instance", &self.instance)
            .field("shards", &self.shards.len())
            .field("is_pooled", &self.pooled)
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Returns a store with these settings, which are a URL, [`PostgresOptions`] or a
    /// [`tokio_postgres::Config`]. It connects when the timer is opened.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Url`] and [`ConnectError::Setting`] for settings that are not allowed.
    pub fn new(options: impl TryInto<PostgresOptions, Error: Into<ConnectError>>) -> Result<Self, ConnectError> {
        access(options).map(Self::of)
    }

    /// Installs the schema into a database that has tables of other programs. Does nothing if the
    /// schema is there. The settings are those of [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// [`Error::Open`](timer_durable::Error::Open) with a [`ConnectError`] if the server cannot be
    /// reached, or if the user may not create a schema.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use timer_durable_postgres::PostgresStore;
    ///
    /// # async fn start() -> Result<(), timer_durable::Error> {
    /// PostgresStore::install("postgres://shop@db.example/shop").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn install(options: impl TryInto<PostgresOptions, Error: Into<ConnectError>>) -> Call<()> {
        on_server(options, connect::connect_and_install)
    }

    /// Replaces the functions of the schema by those of this program. Does nothing if they are
    /// equal.
    ///
    /// Other programs go on during the upgrade and after it. It changes no rows. See the chapter
    /// [upgrades](timer_durable::book::upgrades).
    ///
    /// # Errors
    ///
    /// [`Error::Open`](timer_durable::Error::Open) with a [`ConnectError`] if the server cannot be
    /// reached, if the database has no schema or one of another version, or if the user does not
    /// own the functions. The call can be repeated.
    pub fn upgrade(options: impl TryInto<PostgresOptions, Error: Into<ConnectError>>) -> Call<()> {
        on_server(options, connect::connect_and_upgrade)
    }

    /// Returns a store that has no connection.
    fn of(access: Access) -> Self {
        let now = Instant::now();
        Self {
            access,
            name: None,
            lease: Lease::new(),
            pooled: false,
            link: None,
            fresh: None,
            instance: 0,
            tried: Vec::new(),
            has_joined: false,
            shards: Vec::new(),
            epochs: vec![None; SHARDS],
            turn: fastrand::usize(..SHARDS),
            agenda: Agenda::new(now),
            paused: None,
            locked: HashSet::new(),
            divider: Divider::new(),
            put_divider: Divider::new(),
            suspects: HashMap::new(),
            frontier: Frontier::default(),
            owes_settling: true,
            has_gained: false,
            clock: Clock::new(),
            signals: Arc::default(),
            listener: None,
            figures: Membership::default(),
            pending: None,
            counts: Interval::new(now, COUNT),
            removal: Removal::new(now),
            warnings: Interval::new(now, WARNINGS),
        }
    }

    /// Connects to the server, and installs the schema if the database is empty. Does nothing if
    /// the store has a connection.
    fn connect(&mut self) -> Result<(), ConnectError> {
        if self.link.is_none() && self.fresh.is_none() {
            // No lease is at stake before the first join, which may have to install the schema.
            let limit = if self.has_joined { self.lease.limit() } else { Lease::new().limit() };
            let connected = connect::connect(&self.access, limit)?;
            self.pooled |= connected.pooled;
            self.fresh = Some(connected.connection);
        }
        Ok(())
    }

    /// Returns the schema as a script for `psql`.
    #[must_use]
    pub fn schema() -> &'static str {
        schema::SCHEMA
    }

    /// Sets the lease, at least 500 ms. The default is 15 s. The timeouts of a process that dies
    /// run elsewhere when its lease is over. The lease is renewed three times in its length.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease.set_length(lease);
        self
    }

    /// Names the node. A process takes the shards of an earlier process with the same name at once,
    /// without waiting for its lease, and fences it. So a node that restarts goes on where it was.
    ///
    /// Of two processes with the same name, the one that has joined last works. The other one
    /// begins nothing and reports errors.
    #[must_use]
    #[doc(alias = "transactional.id")]
    pub fn node(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    fn link(&mut self) -> Result<&mut Link, StoreError> {
        self.link.as_mut().ok_or_else(lost)
    }

    /// Reads by the connection of the keeper. A store that has not joined has one, too.
    fn read<R>(
        &mut self,
        read: impl FnOnce(&mut PostgresConnection) -> Result<R, QueryError>,
    ) -> Result<R, StoreError> {
        let connection = match (&mut self.link, &mut self.fresh) {
            (Some(link), _) => &mut link.connection,
            (None, Some(fresh)) => fresh,
            (None, None) => return Err(lost()),
        };
        // The failure of a read leaves nothing in doubt.
        let result = read(connection).map_err(StoreError::from);
        self.check(result).map_err(|error| match error {
            StoreError::InDoubt(why) => StoreError::Failed(why),
            error => error,
        })
    }

    /// Drops the connection after an error that leaves its state unknown.
    fn check<R>(&mut self, result: Result<R, StoreError>) -> Result<R, StoreError> {
        if matches!(result, Err(StoreError::InDoubt(_))) {
            self.link = None;
        }
        result
    }
}

fn access(options: impl TryInto<PostgresOptions, Error: Into<ConnectError>>) -> Result<Access, ConnectError> {
    options.try_into().map_err(Into::into)?.access()
}

/// Runs a function that connects to the server, on a thread of its own.
fn on_server(
    options: impl TryInto<PostgresOptions, Error: Into<ConnectError>>,
    work: fn(&Access, Duration) -> Result<(), ConnectError>,
) -> Call<()> {
    let access = access(options);
    Call::on_thread(move || Ok(work(&access?, Lease::new().limit())?))
}

/// The failure of a call that has sent nothing, because there is no connection.
fn lost() -> StoreError {
    StoreError::Disconnected("the connection was lost".to_owned())
}
