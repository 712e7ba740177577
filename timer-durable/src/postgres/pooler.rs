//! Finding a pooler in transaction mode, and statements for its sessions.
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

use super::connection::{Dial, PostgresConnection, QueryError};
use super::statements::Sql;
use std::time::Duration;
use tokio_postgres::Config;

/// The mark of a session in SQL, or null. A setting that was reset is empty.
pub(super) const MARK: &str = "nullif(current_setting('timer.probe', true), '')";

/// The number of times that a second connection holds a session.
const PROBES: usize = 4;

/// Returns a mark that no session has.
pub(super) fn new_mark() -> String {
    format!("{:x}", fastrand::u64(..))
}

/// Returns the statement that marks a session.
pub(super) fn set_mark(mark: &str) -> String {
    format!("set timer.probe = '{mark}'")
}

/// Returns the mark of the session that the connection has at present.
fn mark(connection: &mut PostgresConnection) -> Result<Option<String>, QueryError> {
    Ok(connection.ask(&format!("select {MARK}"))?.get(0))
}

/// Returns `true` if a new connection does not keep its session.
pub(super) fn is_pooled(
    connection: &mut PostgresConnection,
    config: &Config,
    dial: &Dial,
    limit: Duration,
) -> Result<bool, QueryError> {
    if mark(connection)?.is_some() {
        return Ok(true);
    }
    let own = new_mark();
    connection.batch_execute(&set_mark(&own))?;
    let mut other = PostgresConnection::open(config, dial, limit)?;
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

impl Sql {
    /// Returns the statement with a limit of the time that it waits for locks. The limit ends with
    /// the transaction.
    ///
    /// The fence sets it. A renewal has no fence. Its function needs the answer of `set_config` for
    /// an argument, and therefore runs after it.
    pub(super) fn limit_locks(&self, limit: Duration) -> String {
        let set = format!("set_config('lock_timeout', '{}', true)", limit.as_millis());
        let places = [
            ("(select timer.now() as now from", format!("(select timer.now() as now, {set} from")),
            ("(select from timer.node", format!("(select {set} from timer.node")),
            (
                "from timer.renew($1,",
                format!("from (select {set}) l(limited), timer.renew(case when limited <> '' then $1 end,"),
            ),
        ];
        places.iter().fold(self.text.clone(), |text, (place, limited)| text.replacen(place, limited, 1))
    }
}
