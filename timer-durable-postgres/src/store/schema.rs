//! The schema: whether the database has it, installing it, and adding what it lacks.

use super::connection::{PostgresConnection, in_schema};
use super::query_error::QueryError;
use std::time::Duration;
use tokio_postgres::types::Type;

/// The schema, as a script for `psql`.
pub(super) const SCHEMA: &str = include_str!("schema.sql");

/// Builds the index of due times anew, with the topic, so that timeouts are counted by topic
/// without a look at their rows. Each statement is its own transaction, during which others write.
/// The first one removes the remains of an upgrade that was killed.
const INDEX: [&str; 2] = [
    "drop index concurrently if exists timer.timeout_by_due_2",
    "create index concurrently timeout_by_due_2 on timer.timeout(shard, due, id) include (topic)
     where ended is null and not shelved",
];

/// How long the client waits for the index.
const INDEX_LIMIT: Duration = Duration::from_secs(3600);

/// Adds what the first databases of this version lack. Nodes that do not know it go on.
const ADDITIONS: &str = "
    drop index timer.timeout_by_due;
    alter index timer.timeout_by_due_2 rename to timeout_by_due;
    alter table timer.timeout add column traceparent text;";

/// Drops the functions that take another parameter now. It has a default, and a call that fits two
/// functions would fail.
const OUTDATED: &str = "
    drop function if exists
        timer.schedule(text, bytea, interval, text, text, uuid, smallint, timestamptz, interval, interval),
        timer.schedule(text, text, interval, text, text, uuid, timestamptz, interval, interval),
        timer.schedule(text, jsonb, interval, text, text, uuid, timestamptz, interval, interval);";

/// How long the upgrade waits for a lock. All calls wait behind it, and a node repeats a statement
/// for two seconds. A vacuum makes way after one second, the default of `deadlock_timeout`.
const LOCK_TIMEOUT: &str = "set local lock_timeout = '1500ms'";

/// Installs the schema if the database is empty. Returns `false` if the database has no schema.
pub(super) fn prepare(connection: &mut PostgresConnection) -> Result<bool, QueryError> {
    if is_installed(connection)? {
        return Ok(true);
    }
    if is_empty(connection)? {
        install(connection)?;
        return Ok(true);
    }
    // Another node may have installed it between the two queries.
    is_installed(connection)
}

/// Gives the schema the columns and the functions that it lacks.
pub(super) fn upgrade(connection: &mut PostgresConnection) -> Result<(), QueryError> {
    if !has_traces(connection)? {
        connection.set_limit(INDEX_LIMIT);
        for statement in INDEX {
            let statement = in_schema(statement, connection.schema()).into_owned();
            connection.batch_execute(&statement)?;
        }
    }
    alone(connection, |connection| {
        connection.batch_execute(LOCK_TIMEOUT)?;
        if !has_traces(connection)? {
            connection.run_all(ADDITIONS)?;
        }
        if has_functions(connection)? { Ok(()) } else { connection.run_all(&format!("{OUTDATED} {}", functions())) }
    })
}

/// Returns `true` if the database keeps the traces of timeouts.
pub(super) fn has_traces(connection: &mut PostgresConnection) -> Result<bool, QueryError> {
    let column = "select exists (
        select from pg_attribute where attrelid = 'timer.timeout'::regclass and attname = 'traceparent'
    )";
    Ok(connection.ask(column)?.get(0))
}

/// Returns the part of the script behind the tables, which replaces the functions.
fn functions() -> String {
    let from = SCHEMA.find("create function").unwrap_or(SCHEMA.len());
    SCHEMA[from..].replace("create function", "create or replace function")
}

/// Returns `true` if the database has the functions of this program, and no others of their names.
/// A function may change without a new version of the schema. Equal functions are left alone,
/// because a user who does not own them cannot replace them.
fn has_functions(connection: &mut PostgresConnection) -> Result<bool, QueryError> {
    let script = in_schema(SCHEMA, connection.schema());
    let bodies: Vec<String> = script.split("$$").skip(1).step_by(2).map(str::to_owned).collect();
    let are_equal = "with found as (select * from pg_proc where pronamespace = 'timer'::regnamespace),
            own as (select * from found where prosrc = any ($1))
        select not exists (select from unnest($1) body where body not in (select prosrc from own))
            and not exists (select from found where prosrc <> all ($1) and proname in (select proname from own))";
    let rows = connection.run(are_equal, &[Type::TEXT_ARRAY], &[&bodies])?;
    Ok(rows.first().ok_or(QueryError::NoRow)?.get::<_, bool>(0))
}

/// Installs the schema unless the database has it.
pub(super) fn install(connection: &mut PostgresConnection) -> Result<(), QueryError> {
    alone(connection, |connection| {
        // The setting at the head of the script is for `psql`.
        let tables = &SCHEMA[SCHEMA.find("create schema").unwrap_or(0)..];
        if is_installed(connection)? { Ok(()) } else { connection.run_all(tables) }
    })
}

/// Changes the schema in a transaction. If several nodes start at once, one of them changes it and
/// the others wait.
fn alone(
    connection: &mut PostgresConnection,
    change: impl FnOnce(&mut PostgresConnection) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    connection.begin("select pg_advisory_xact_lock(6874019)")?;
    let result = change(connection);
    let end = if result.is_ok() { "commit" } else { "rollback" };
    result.and(connection.end(end))
}

/// Returns `true` if the database has the schema. It reads the catalog, because `to_regclass` may
/// answer from a cache of the session, which does not see what another node has just
/// installed.
pub(super) fn is_installed(connection: &mut PostgresConnection) -> Result<bool, QueryError> {
    let table = "select exists (
        select from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'timer' and c.relname = 'meta'
    )";
    Ok(connection.ask(table)?.get(0))
}

fn is_empty(connection: &mut PostgresConnection) -> Result<bool, QueryError> {
    let tables = "select not exists (
        select from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname not like 'pg\\_%' and n.nspname <> 'information_schema'
    )";
    Ok(connection.ask(tables)?.get(0))
}
