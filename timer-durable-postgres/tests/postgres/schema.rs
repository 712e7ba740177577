//! The version of the schema, and upgrades.

use timer_durable::Error;
use timer_durable::transaction::{Operation, Outcome};
use timer_durable_postgres::{ConnectError, PostgresStore};

use super::Database;

/// Everything that a program needs of a database.
const FACTS: &str = "
    select version, (
        select string_agg(option, ' ' order by option) from pg_class c, unnest(c.reloptions) option
        where c.oid = 'timer.timeout'::regclass
    ), (
        select string_agg(concat_ws(' ', attrelid::regclass, attnum, attname, format_type(atttypid, atttypmod),
            attnotnull), ', ' order by attrelid::regclass::text, attnum)
        from pg_attribute where attnum > 0 and attrelid in (
            select oid from pg_class where relnamespace = 'timer'::regnamespace
        )
    ), (
        select string_agg(pg_get_functiondef(oid), '' order by oid::regprocedure::text) from pg_proc
        where pronamespace = 'timer'::regnamespace
    ) from timer.meta";

/// Upgrades the schema. Returns the error of the connection.
fn upgraded(url: &str) -> Result<(), ConnectError> {
    PostgresStore::upgrade(url).wait().map_err(|error| match error {
        Error::Open(error) => *error.downcast().unwrap(),
        error => panic!("{error}"),
    })
}

/// A function may change without a new version.
#[test]
fn an_upgrade_replaces_functions_that_differ() {
    let (Some(old), Some(new)) = (Database::create(), Database::create()) else { return };
    // Every table has a key, which a publication of updates needs.
    old.sql("create publication all_tables for all tables");
    old.sql(PostgresStore::schema());
    old.sql("update timer.meta set version = version");
    drop(new.join());
    let mut node = old.join();
    let id = node.insert();
    node.attempt(id);
    // A function of an earlier program, which a role that does not own it cannot replace.
    let clerk = format!("upgrade_{}", old.name);
    old.sql(&format!(
        "create role {clerk} login password 'right'; grant usage on schema timer to {clerk};
         grant select, insert, update, delete on all tables in schema timer to {clerk};
         grant usage, select on all sequences in schema timer to {clerk}"
    ));
    let url = format!("postgres://{clerk}:right@127.0.0.1:{}/{}", old.server.port(), old.name);
    PostgresStore::upgrade(&url).wait().expect("there is nothing to replace");
    old.sql(
        "create or replace function timer.leave(p_instance bigint) returns void language plpgsql as $$
         begin update timer.node set alive = false where id = p_instance; end $$",
    );
    let functions =
        "select string_agg(oid::text, ', ' order by oid) from pg_proc where pronamespace = 'timer'::regnamespace";
    let used = old.sql(functions);
    let error = upgraded(&url).unwrap_err();
    assert!(matches!(error, ConnectError::MissingRights { .. }), "{error}");
    PostgresStore::upgrade(&old.url()).wait().unwrap();
    assert_eq!(old.sql(FACTS), new.sql(FACTS));
    assert_eq!(old.sql(functions), used, "a call in progress would fail without its function");
    let done = node.write([Operation::Done { id, attempt: 1, next: None, then: Vec::new() }]).unwrap();
    assert_eq!(done, [Outcome::Changed(id)], "a node that was connected before goes on");
}

#[test]
fn another_version_of_the_schema_is_refused() {
    let Some(database) = Database::create() else { return };
    database.join();
    database.sql("update timer.meta set version = 7");
    for error in [crate::connected(&database.url()).map(drop), upgraded(&database.url())] {
        let error = error.expect_err("a later version");
        assert!(matches!(error, ConnectError::SchemaVersion { found: 7, expected: 1, .. }), "{error}");
        assert!(error.to_string().contains("has version 7 of the schema; this program uses 1"), "{error}");
    }
}
