//! Finding a pooler in transaction mode.
//!
//! Such a pooler gives each transaction of a client a session of the server that is free at that
//! moment. Settings, prepared statements and notifications belong to a session, so the client loses
//! them. Worse, its settings stay behind for other clients.
//!
//! # Finding a pooler
//!
//! A connection marks its session by a setting that means nothing to the server. The session of a
//! new connection has no mark, and keeps the one that it gets. If either turns out to be false, the
//! connection shares its sessions with others.
//!
//! - When a store connects, a second connection holds a session in a transaction, so the first one
//!   has to get another session, or the second one sees the mark. A pooler with many clients may
//!   give the first connection its own session by chance. Therefore this is repeated.
//! - Each renewal reads the mark of its session. This finds a pooler that was missed, and one that
//!   was put in the way or changed its mode later.

use super::connection::{Access, PostgresConnection};
use super::query_error::QueryError;
use std::time::Duration;

/// The mark of a session in SQL, or null. A setting that was reset is empty.
pub(super) const MARK: &str = "pg_catalog.current_setting('timer_durable.probe', true)";

/// The number of times that a second connection holds a session.
const PROBES: usize = 4;

/// Returns a mark that no session has.
pub(super) fn new_mark() -> String {
    format!("{:x}", fastrand::u64(..))
}

/// Returns the statement that marks a session.
pub(super) fn set_mark(mark: &str) -> String {
    format!("set timer_durable.probe = '{mark}'")
}

/// Returns the mark of the session that the connection has now.
fn mark(connection: &mut PostgresConnection) -> Result<Option<String>, QueryError> {
    let rows = connection.query_typed(&format!("select {MARK}"), &[], &[])?;
    let mark: Option<String> = rows.first().ok_or(QueryError::NoRow)?.get(0);
    Ok(mark.filter(|mark| !mark.is_empty()))
}

/// Returns `true` if a new connection does not keep its session.
pub(super) fn is_pooled(
    connection: &mut PostgresConnection,
    access: &Access,
    limit: Duration,
) -> Result<bool, QueryError> {
    if mark(connection)?.is_some() {
        return Ok(true);
    }
    let own = new_mark();
    connection.batch_execute(&set_mark(&own))?;
    let second = PostgresConnection::open(access, limit);
    let mut other = second.map_err(|error| QueryError::SecondConnection(error.to_string()))?;
    for _ in 0..PROBES {
        other.batch_execute("begin")?;
        // If the pooler has one session, a query of the first connection would wait for the second
        // connection. So the second connection is queried first.
        let is_pooled = mark(&mut other)?.is_some() || mark(connection)?.as_ref() != Some(&own);
        other.batch_execute("rollback")?;
        if is_pooled {
            return Ok(true);
        }
    }
    Ok(false)
}
