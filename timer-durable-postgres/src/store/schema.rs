//! The schema: whether the database has it, installing it, and replacing its functions.

use super::connection::{PostgresConnection, in_schema};
use super::query_error::QueryError;
use tokio_postgres::types::Type;

/// The schema, as a script for `psql`.
pub(super) const SCHEMA: &str = include_str!("schema.sql");

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

/// Replaces the functions unless the database has those of this program.
pub(super) fn upgrade(connection: &mut PostgresConnection) -> Result<(), QueryError> {
    alone(connection, |connection| if has_functions(connection)? { Ok(()) } else { connection.run_all(&functions()) })
}

/// Returns the part of the script between the tables and the triggers, which replaces the
/// functions.
fn functions() -> String {
    let from = SCHEMA.find("create function").unwrap_or(SCHEMA.len());
    let to = SCHEMA.find("create constraint trigger").unwrap_or(SCHEMA.len());
    SCHEMA[from..to].replace("create function", "create or replace function")
}

/// Returns `true` if the database has the functions of this program. A function may change without
/// a new version of the schema. Equal functions are left alone, because a user who does not own
/// them cannot replace them.
fn has_functions(connection: &mut PostgresConnection) -> Result<bool, QueryError> {
    let script = in_schema(SCHEMA, connection.schema());
    let bodies: Vec<String> = script.split("$$").skip(1).step_by(2).map(str::to_owned).collect();
    let are_equal = "select not exists (select from unnest($1) body where body not in (
            select prosrc from pg_proc where pronamespace = 'timer'::regnamespace))";
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
