//! A connection that is ready for the statements of the store.

use super::connection::{Params, PostgresConnection};
use super::query_error::QueryError;
use super::statements::{self, PartSet, Sql};
use super::{look, pooler};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;
use timer_durable::StoreError;
use tokio_postgres::{Row, Statement};
use uuid::Uuid;

/// The time for which a statement waits for a lock. A transaction of another program may keep a
/// timeout locked for as long as it likes, and nothing else of the batch can go on until then.
const LOCK_TIMEOUT: Duration = Duration::from_millis(50);

/// Draws the number of a new instance, and also returns the greatest number in the table.
const DRAW: &str = "
    with greatest as materialized (select coalesce(max(id), 0) as id from timer.node),
    missing as materialized (select id - last_value - is_called::int + 2 as n from greatest, timer.instance)
    select max(nextval('timer.instance')), (select id from greatest)
    from generate_series(1, (select case when n between 1 and 2147483648 then least(n, 100000) else 1 end from missing))";

/// If the numbers of two instances differ by more than this, the sequence has started again.
const HALF: i64 = 1 << 31;

/// The time by which the client waits longer than the server, so that the server's answer says that
/// nothing was written. Without an answer, the connection and the outcome of the statement are
/// lost.
pub(super) const MARGIN: Duration = Duration::from_millis(200);

/// A statement.
enum Query {
    Prepared(Statement),
    /// Behind a pooler a statement has no name.
    Unnamed(Sql),
}

impl Query {
    fn new(connection: &mut PostgresConnection, sql: Sql, pooled: bool) -> Result<Self, QueryError> {
        if pooled {
            return Ok(Self::Unnamed(sql));
        }
        Ok(Self::Prepared(connection.prepare(&sql.text, &sql.types)?))
    }
}

/// Returns the settings of a session, or of each transaction if `set` is `set local`.
///
/// The plans are always searches by an index, whatever the statistics say of a table that is empty
/// in one minute and full in the next. A server that sends an answer to a frozen process waits for
/// it with no other limit than `tcp_user_timeout`, and keeps the fence locked.
pub(super) fn settings(connection: &PostgresConnection, set: &str, limit: Duration, limits_locks: bool) -> String {
    let lift = connection.lift_limit(set);
    let limit = limit.as_millis();
    let locks = if limits_locks { LOCK_TIMEOUT.as_millis() } else { 0 };
    format!(
        "{lift} {set} search_path = pg_catalog, pg_temp; {set} statement_timeout = {limit}; {set} lock_timeout = {locks};
         {set} idle_in_transaction_session_timeout = {limit}; {set} tcp_user_timeout = {limit};
         {set} enable_seqscan = off; {set} enable_hashjoin = off; {set} enable_mergejoin = off; {set} jit = off"
    )
}

/// A connection with the statements of the store.
pub(super) struct Link {
    pub(super) connection: PostgresConnection,
    /// The statement of each set of parts that has occurred.
    write: HashMap<PartSet, Query>,
    /// The mark of the session, or `None` behind a pooler.
    mark: Option<String>,
    limit: Duration,
    /// The fixed statements, each at its number.
    fixed: Vec<Query>,
}

/// A statement whose text is always the same. That of a batch depends on its parts.
#[derive(Clone, Copy)]
pub(super) enum Fixed {
    Put,
    Holders,
    Look,
    Load,
    Sweep,
    Renew,
}

/// The fixed statements in the order of [`Fixed`].
const FIXED: [fn() -> Sql; 6] =
    [statements::put, statements::holders, statements::look, statements::load, look::sweep, statements::renew];

impl Link {
    /// Prepares the statements. Behind a pooler in transaction mode a session has no state, so
    /// nothing is prepared or set.
    pub(super) fn new(mut connection: PostgresConnection, limit: Duration, pooled: bool) -> Result<Self, QueryError> {
        connection.set_limit(limit + MARGIN);
        let mark = (!pooled).then(pooler::new_mark);
        if let Some(mark) = &mark {
            let settings = settings(&connection, "set", limit, false);
            connection.batch_execute(&format!(
                "{settings}; set default_transaction_isolation = 'read committed';
                 set plan_cache_mode = force_generic_plan; {}",
                pooler::set_mark(mark)
            ))?;
            connection.set_settings(None);
        }
        let fixed = FIXED.iter().map(|sql| Query::new(&mut connection, sql(), pooled)).collect::<Result<_, _>>()?;
        Ok(Self { write: HashMap::new(), fixed, mark, limit, connection })
    }

    /// Draws the number of a new instance. The state of a sequence is not part of a logical copy,
    /// so the sequence may be behind the instances that were copied. The statement draws numbers
    /// until one is above all of theirs, at most 100,000 of them, unless the sequence has started
    /// again after its last number.
    pub(super) fn draw(&mut self) -> Result<i64, StoreError> {
        let row = self.connection.ask(DRAW)?;
        let number: i64 = row.get(0);
        let greatest: i64 = row.get(1);
        if number <= greatest && greatest - number < HALF {
            let schema = self.connection.schema();
            return Err(StoreError::Failed(format!(
                "the sequence {schema}.instance is at {number}, behind the instance {greatest} in {schema}.node; \
                 execute select setval('{schema}.instance', {greatest})"
            )));
        }
        Ok(number)
    }

    pub(super) fn is_pooled(&self) -> bool {
        self.mark.is_none()
    }

    /// Returns `true` if `mark` is the one that this link has made in its session.
    pub(super) fn has_mark(&self, mark: Option<&str>) -> bool {
        self.mark.as_deref() == mark
    }

    /// Limits the time that statements wait for locks, or lifts the limit. Joining and leaving wait
    /// for the statements of other instances.
    pub(super) fn limit_locks(&mut self, limits: bool) -> Result<(), QueryError> {
        if self.is_pooled() {
            let settings = settings(&self.connection, "set local", self.limit, limits);
            self.connection.set_settings(Some(settings));
            return Ok(());
        }
        let limit = if limits { LOCK_TIMEOUT.as_millis() } else { 0 };
        self.connection.batch_execute(&format!("set lock_timeout = {limit}"))
    }

    /// Returns the rows with these ids that other transactions have locked.
    pub(super) fn locked(&mut self, ids: &[Uuid]) -> Result<Vec<Row>, QueryError> {
        let sql = statements::locked();
        self.connection.run(&sql.text, &sql.types, &[&ids])
    }

    /// Returns those of the ids that are dead letters, each with the timeout that has its key.
    pub(super) fn taken(&mut self, ids: &[Uuid]) -> Result<Vec<Row>, QueryError> {
        let (text, types) = statements::TAKEN;
        self.connection.run(text, types, &[&ids])
    }

    pub(super) fn write(&mut self, parts: PartSet, params: Params<'_>) -> Result<Vec<Row>, QueryError> {
        let is_pooled = self.is_pooled();
        let query = match self.write.entry(parts) {
            Entry::Occupied(query) => query.into_mut(),
            Entry::Vacant(place) => {
                place.insert(Query::new(&mut self.connection, statements::write(parts), is_pooled)?)
            }
        };
        run(&mut self.connection, query, params)
    }

    /// Executes a fixed statement.
    pub(super) fn query(&mut self, statement: Fixed, params: Params<'_>) -> Result<Vec<Row>, QueryError> {
        run(&mut self.connection, &self.fixed[statement as usize], params)
    }

    /// Begins a transaction of several statements. If the process freezes in the middle of it, the
    /// server ends it after a while, because no other node can take over the shards before.
    pub(super) fn begin(&mut self) -> Result<(), QueryError> {
        let limit = self.limit.as_millis();
        self.connection.begin(&format!(
            "set local statement_timeout = {limit}; set local idle_in_transaction_session_timeout = {limit};
             set local lock_timeout = {}",
            LOCK_TIMEOUT.as_millis()
        ))
    }

    /// Commits a transaction. After an error it may be open.
    pub(super) fn commit(&mut self) -> Result<(), QueryError> {
        self.connection.end("commit")
    }

    /// Rolls back a transaction.
    pub(super) fn rollback(&mut self) -> Result<(), QueryError> {
        self.connection.end("rollback")
    }
}

/// Executes a statement.
fn run(connection: &mut PostgresConnection, query: &Query, params: Params<'_>) -> Result<Vec<Row>, QueryError> {
    match query {
        Query::Prepared(prepared) => connection.query(prepared, params),
        Query::Unnamed(sql) => connection.run(&sql.text, &sql.types, params),
    }
}
