//! The PostgreSQL store on a real server, which the tests start themselves.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure of a test")]

mod auto_traits;
mod conformance;
mod drivers;
mod faults;
mod foreign;
mod functions;
mod hints;
mod isolation;
mod keys;
mod limits;
mod locks;
#[allow(dead_code)]
mod members;
mod one_connection;
mod options;
mod pauses;
mod pending;
mod pgbouncer;
mod pooled;
mod pooler;
mod promises;
mod queued;
mod reading;
mod refusals;
mod repeated;
mod replica;
mod schema;
mod search_path;
mod stub;
mod timers;
#[cfg(feature = "tls")]
mod tls;
mod tombstones;
mod upgrade;

#[path = "../support/in_transaction.rs"]
mod in_transaction;

use std::sync::Arc;
use std::time::{Duration, Instant};

use timer_durable::store::{Position, Store};
use timer_durable::transaction::{Attempt, Insert, Operation, Outcome};
use timer_durable::{StoreError, TimeoutId};
use timer_durable_postgres::{ConnectError, PostgresOptions, PostgresStore};
use timer_durable_tests::postgres_server::{self, Server};

/// A separate database for a test.
struct Database {
    server: Arc<Server>,
    name: String,
}

impl Database {
    /// Returns `None` if no server is installed.
    fn create() -> Option<Self> {
        let server = postgres_server::shared()?;
        let name = server.create_database();
        Some(Self { server, name })
    }

    fn url(&self) -> String {
        self.server.url(&self.name)
    }

    fn sql(&self, statements: &str) -> String {
        self.server.sql(&self.name, statements)
    }

    /// Asks until the answer is `wanted`, for at most half a minute.
    fn wait_for(&self, query: &str, wanted: &str) {
        let begun = Instant::now();
        while self.sql(query) != wanted {
            assert!(begun.elapsed() < Duration::from_secs(30), "{query}");
            // Each question starts a process.
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Connects a store with a short lease, and joins.
    fn join(&self) -> Node {
        self.join_with(|store| store)
    }

    fn join_with(&self, set: impl FnOnce(PostgresStore) -> PostgresStore) -> Node {
        join(&self.url(), set)
    }
}

/// Connects a store without a timer.
fn connected<O: TryInto<PostgresOptions, Error: Into<ConnectError>>>(
    options: O,
) -> Result<PostgresStore, ConnectError> {
    let mut store = PostgresStore::new(options)?;
    store.open().map(|()| store).map_err(|error| *error.downcast().expect("an error of the connection"))
}

/// Connects a store with a short lease, and joins.
fn join(url: &str, set: impl FnOnce(PostgresStore) -> PostgresStore) -> Node {
    let store = PostgresStore::new(url).expect("the URL is allowed");
    let mut node = Node(set(store.lease(LEASE)));
    node.0.rejoin().expect("the store joins");
    node
}

/// The lease of the tests. The machine may stand still for a second.
const LEASE: Duration = Duration::from_secs(2);

/// A store without a keeper, so that a test decides what happens when.
struct Node(PostgresStore);

impl Node {
    fn write(&mut self, batch: impl IntoIterator<Item = Operation>) -> Result<Vec<Outcome>, StoreError> {
        self.0.write(&batch.into_iter().collect::<Vec<_>>(), Instant::now() + Duration::from_secs(60))
    }

    /// Inserts a timeout that is due.
    fn insert(&mut self) -> TimeoutId {
        let id = TimeoutId::made_by(self.0.instance());
        self.insert_as(id);
        id
    }

    fn insert_as(&mut self, id: TimeoutId) -> Outcome {
        let due = self.0.now() - 1_000_000;
        let insert = Insert::new(id, due, "topic");
        self.write([Operation::Insert(insert)]).expect("an insert").remove(0)
    }

    fn begin(&mut self, id: TimeoutId) -> Result<Outcome, StoreError> {
        Ok(self.write([Operation::Begin(id)])?.remove(0))
    }

    fn attempt(&mut self, id: TimeoutId) -> Attempt {
        match self.begin(id) {
            Ok(Outcome::Begun(attempt)) => *attempt,
            other => panic!("the timeout should have begun: {other:?}"),
        }
    }

    fn pending(&mut self) -> Vec<TimeoutId> {
        let mut page = Vec::new();
        for topic in self.0.topics().expect("the topics") {
            let bound = self.0.load(&topic, Position::START..Position::END, 1_000, &mut page).expect("a page");
            assert_eq!(bound, Position::END);
        }
        page.sort_unstable();
        page.into_iter().map(|position| position.id).collect()
    }

    fn shards(&self) -> u32 {
        self.0.membership().expect("a member").shards
    }

    /// Keeps up until the store hears notifications. It then asks for a look at all that may have
    /// changed before.
    fn listen(&mut self) {
        let begun = Instant::now();
        while !self.0.upkeep(&[]).expect("upkeep").pauses_changed {
            assert!(begun.elapsed() < Duration::from_secs(30));
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Waits until a notification of `act` brings the next upkeep forward. Nothing else can,
    /// because the notifications of earlier changes have been taken.
    fn hear(&mut self, act: impl FnOnce()) {
        let begun = Instant::now();
        self.0.upkeep(&[]).expect("upkeep");
        std::thread::park_timeout(Duration::from_millis(200));
        while self.0.next_upkeep() <= Some(Instant::now()) {
            self.0.upkeep(&[]).expect("upkeep");
            std::thread::park_timeout(Duration::from_millis(200));
        }
        let next = self.0.next_upkeep();
        act();
        while self.0.next_upkeep() >= next {
            assert!(begun.elapsed() < Duration::from_secs(30));
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Keeps up until `done`, for at most half a minute.
    fn keep_up_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", self.0.membership());
            let next = self.0.next_upkeep().expect("a store that is shared needs upkeep");
            std::thread::park_timeout(next.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
            if self.0.next_upkeep().is_some_and(|next| next <= Instant::now()) {
                self.0.upkeep(&[]).expect("upkeep");
            }
        }
    }
}
