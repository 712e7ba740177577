//! The version of the schema, and upgrades.

use timer_durable::TimeoutId;
use timer_durable::store::Store;
use timer_durable::transaction::{IfPending, Insert, Operation, Outcome};
use timer_durable_postgres::{ConnectError, PostgresStore};

use super::locks::Session;
use super::{Database, Node};

/// The schema of the first release.
const VERSION_1: &str = include_str!("../fixtures/postgres_1.sql");

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

/// Returns the trace of a timeout with a key that a node begins, after an insert and an update.
fn trace_of(node: &mut Node) -> Option<String> {
    let due = node.0.now() - 1_000_000;
    let traced = |trace: &str| {
        let mut insert = Insert::new(TimeoutId::new(), due, "topic");
        (insert.key, insert.traceparent) = (Some("traced".to_owned()), Some(trace.to_owned()));
        insert
    };
    let [first, mut other, mut second] = ["first", "other", "second"].map(traced);
    (other.key, second.if_pending) = (None, IfPending::Update);
    let batch = [first.clone(), other].map(Operation::Insert);
    assert_eq!(node.write(batch).unwrap(), [const { Outcome::Created { replaced: None } }; 2]);
    assert_eq!(node.write([Operation::Insert(second)]).unwrap(), [Outcome::Moved(first.id, due)]);
    let attempt = node.attempt(first.id);
    node.write([Operation::Done { id: first.id, attempt: 1, next: None, then: Vec::new() }]).unwrap();
    attempt.traceparent
}

/// A database keeps its tables until an upgrade, which adds a column. Another change of the tables
/// needs a new version with a fixture.
#[test]
fn a_database_of_version_1_is_used_and_upgraded() {
    let (Some(old), Some(new)) = (Database::create(), Database::create()) else { return };
    // Every table has a key, which a publication of updates needs.
    old.sql("create publication all_tables for all tables");
    old.sql(VERSION_1);
    old.sql("update timer.meta set version = version");
    drop(new.join());
    let mut node = old.join();
    let id = node.insert();
    node.attempt(id);
    assert_eq!(trace_of(&mut node), None, "it has no column for traces");
    let schedule = "select * from timer.schedule_and_tell('t', 'k', '', 1, 'replace', null, 0, null, null)";
    old.sql(schedule);
    // A function of an earlier program, which a role that does not own it cannot replace.
    let clerk = format!("upgrade_{}", old.name);
    old.sql(&format!(
        "create role {clerk} login password 'right'; grant usage on schema timer to {clerk};
         grant select, insert, update, delete on all tables in schema timer to {clerk};
         grant usage, select on all sequences in schema timer to {clerk}"
    ));
    let used = "from pg_proc where pronamespace = 'timer'::regnamespace and proname <> 'schedule'";
    let used = old.sql(&format!("select string_agg(oid::text, ', '), count(*) {used}"));
    let (ids, count) = used.split_once('|').unwrap();
    PostgresStore::upgrade(&old.url()).unwrap();
    let still = old.sql(&format!("select count(*) from pg_proc where oid in ({ids})"));
    assert_eq!(still, count, "a call in progress would fail without its function");
    let url = format!("postgres://{clerk}:right@127.0.0.1:{}/{}", old.server.port(), old.name);
    PostgresStore::upgrade(&url).expect("there is nothing to replace");
    old.sql(
        "create or replace function timer.leave(p_instance bigint) returns void language plpgsql as $$
         begin update timer.node set alive = false where id = p_instance; end $$",
    );
    let error = PostgresStore::upgrade(&url).unwrap_err();
    assert!(matches!(error, ConnectError::MissingRights { .. }), "{error}");
    PostgresStore::upgrade(&old.url()).unwrap();
    assert_eq!(old.sql(FACTS), new.sql(FACTS));
    let done = node.write([Operation::Done { id, attempt: 1, next: None, then: Vec::new() }]).unwrap();
    assert_eq!(done, [Outcome::Changed(id)], "a node that was connected before goes on");
    assert_eq!(trace_of(&mut node), None);
    old.sql(schedule);
    node.0.leave().unwrap();
    assert_eq!(trace_of(&mut old.join()).as_deref(), Some("second"), "a node that connects afterwards");
}

/// A program of an earlier release that upgrades brings its functions back.
#[test]
fn an_upgrade_by_an_earlier_program_is_mended() {
    let Some(database) = Database::create() else { return };
    database.sql(PostgresStore::schema());
    let facts = database.sql(FACTS);
    database.sql(
        "create function timer.schedule(
             topic text, payload text, delay interval default null, key text default null,
             if_pending text default 'keep', id uuid default null, at timestamptz default null,
             period interval default null, max_lateness interval default null
         ) returns uuid language plpgsql as $$ begin return null; end $$",
    );
    PostgresStore::upgrade(&database.url()).unwrap();
    assert_eq!(database.sql(FACTS), facts);
}

/// An `alter table` that waits would make all others wait behind it.
#[test]
fn an_upgrade_does_not_wait_for_a_long_transaction() {
    let Some(database) = Database::create() else { return };
    database.sql(VERSION_1);
    let mut node = database.join();
    let mut session = Session::begin(&database);
    session.ask("select count(*) from timer.pending");
    std::thread::scope(|scope| {
        let upgrade = scope.spawn(|| PostgresStore::upgrade(&database.url()).unwrap_err());
        while !upgrade.is_finished() {
            node.insert();
        }
        let error = upgrade.join().unwrap();
        assert!(error.to_string().contains("lock timeout"), "{error}");
    });
    node.insert();
    session.end("commit");
    PostgresStore::upgrade(&database.url()).unwrap();
}

#[test]
fn others_write_while_an_upgrade_builds_its_index() {
    let Some(database) = Database::create() else { return };
    database.sql(VERSION_1);
    let mut node = database.join();
    database.sql("create index timeout_by_due_2 on timer.timeout(id)"); // an upgrade was killed
    let mut session = Session::begin(&database);
    session.ask("select timer.schedule('topic', 'payload'::text, '1 s')");
    std::thread::scope(|scope| {
        let upgrade = scope.spawn(|| PostgresStore::upgrade(&database.url()));
        let waits = "select count(*) from pg_stat_activity where datname = current_database()
            and wait_event_type = 'Lock' and query like '% index concurrently %'";
        database.wait_for(waits, "1");
        node.insert();
        session.end("commit");
        upgrade.join().unwrap().unwrap();
    });
}

#[test]
fn another_version_of_the_schema_is_refused() {
    let Some(database) = Database::create() else { return };
    database.join();
    database.sql("update timer.meta set version = 7");
    for error in [PostgresStore::connect(&database.url()).map(drop), PostgresStore::upgrade(&database.url())] {
        let error = error.expect_err("a later version");
        assert!(matches!(error, ConnectError::SchemaVersion { found: 7, expected: 1, .. }), "{error}");
        assert!(error.to_string().contains("has version 7 of the schema; this program uses 1"), "{error}");
    }
}
