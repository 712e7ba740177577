//! Calls that are queued beside an attempt, on a server.

use std::thread;

use timer_durable::TimeoutId;
use timer_durable::store::Store;
use timer_durable::transaction::{Insert, Operation, Outcome};

use crate::locks::Session;
use crate::{Database, LEASE, Node};

/// Makes a timeout whose attempt runs.
fn run(node: &mut Node) -> TimeoutId {
    run_as(node, TimeoutId::new())
}

fn run_as(node: &mut Node, id: TimeoutId) -> TimeoutId {
    let mut insert = Insert::new(id, node.0.now() - 1_000_000, "topic");
    insert.key = Some("key".to_owned());
    node.write([Operation::Insert(insert)]).unwrap();
    node.attempt(id);
    id
}

/// A call, by SQL.
fn call(if_pending: &str) -> String {
    format!("select timer.schedule('topic', 'next'::text, '1 hour', 'key', '{if_pending}')")
}

const WAITING: &str =
    "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
const LEFT: &str = "select convert_from(payload, 'UTF8'), state from timer.pending";

/// The snapshot of the end is older than the queued call.
#[test]
fn an_end_that_waits_for_a_call_sees_it() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    let id = run(&mut node);
    let mut caller = Session::begin(&database);
    let queued = caller.ask(&call("debounce"));
    thread::scope(|scope| {
        let ending =
            scope.spawn(|| database.sql(&format!("delete from timer.timeout where id = '{id}' and attempt = 1")));
        database.wait_for(WAITING, "1");
        caller.end("commit");
        ending.join().unwrap();
    });
    assert_eq!(database.sql(LEFT), "next|pending");
    node.keep_up_until(|node| !node.pending().is_empty());
    assert_eq!(node.pending()[0].to_string(), queued.replace('-', ""));
}

#[test]
fn a_call_that_waits_for_an_end_is_pending() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    let id = run(&mut node);
    let mut ender = Session::begin(&database);
    assert_eq!(ender.ask(&format!("select timer.complete('{id}', 1)")), "t");
    thread::scope(|scope| {
        let calling = scope.spawn(|| database.sql(&call("debounce")));
        database.wait_for(WAITING, "1");
        ender.end("commit");
        calling.join().unwrap();
    });
    assert_eq!(database.sql(LEFT), "next|pending");
}

/// The handler schedules the next timeout of its key, which the queued call then changes.
#[test]
fn calls_of_the_transaction_come_before_the_queued_call() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    let own = "select timer.schedule('topic', 'own'::text, '2 hours', 'key')";
    // The end of the first one leaves a tombstone, and that of the second one does not.
    for id in [TimeoutId::new(), TimeoutId::made_by(u32::MAX)] {
        run_as(&mut node, id);
        let queued = database.sql(&call("debounce"));
        for end in ["rollback", "commit"] {
            let mut handler = Session::begin(&database);
            assert_eq!(handler.ask(&format!("select timer.complete('{id}', 1)")), "t");
            let next = handler.ask(own);
            assert_ne!(next, queued);
            handler.end(end);
            if end == "commit" {
                let left = "select id, due < clock_timestamp() + interval '90 minutes' from timer.pending";
                assert_eq!(database.sql(left), format!("{next}|t"));
                assert_eq!(database.sql(LEFT), "next|pending");
            }
        }
        assert_eq!(database.sql(&format!("select timer.cancel('{queued}')")), "unknown");
        assert_eq!(database.sql("select timer.cancel('topic', 'key')"), "cancelled");
    }
}

#[test]
fn sql_acts_on_the_queued_call() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    let id = run(&mut node);
    let on_key = |function: &str| database.sql(&format!("select timer.{function}"));
    assert_eq!(on_key("cancel('topic', 'key')"), "running");
    assert_eq!(database.sql(&call("keep")).replace('-', ""), id.to_string());
    let queued = database.sql(&call("later"));
    assert_eq!(database.sql("select id from timer.pending where state = 'queued'"), queued);
    assert_eq!(on_key("reset('topic', 'key', '2 hours')"), "queued_reset");
    assert_eq!(on_key(&format!("reset('{queued}', '3 hours')")), "queued_reset");
    assert_eq!(on_key("cancel('topic', 'key')"), "queued_cancelled");
    assert_eq!(on_key("cancel('topic', 'key')"), "running");
    let queued = database.sql(&call("update"));
    assert_eq!(on_key(&format!("cancel('{queued}')")), "cancelled");
    database.sql(&call("replace"));
    let end = Operation::Bury { id, attempt: 1, reason: "broken".to_owned(), next: None };
    assert_eq!(node.write([end]).unwrap(), [Outcome::Changed(id)]);
    assert_eq!(database.sql(LEFT), "next|pending");
}

/// The role that commits has no right to the tables. Until version 17, the server executes a
/// deferred trigger as this role.
#[test]
fn a_role_without_rights_ends_an_attempt_by_a_function_of_the_owner() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    let id = run(&mut node);
    database.sql(&call("debounce"));
    let clerk = format!("queued_{}", database.name);
    database.sql(&format!(
        "create role {clerk}; create schema {clerk} authorization {clerk}; grant usage on schema timer to {clerk};
         create function public.finish(id uuid) returns boolean language sql security definer as 'select timer.complete(id, 1)'"
    ));
    assert_eq!(database.sql(&format!("set role {clerk}; select public.finish('{id}')")), "t");
    assert_eq!(database.sql(LEFT), "next|pending");
    // The owner's rights serve only the table of the store.
    let abuse = format!(
        "set role {clerk}; create table {clerk}.own as select '{id}'::uuid as id, '{id}'::uuid as queued;
         create trigger own after delete on {clerk}.own for each row execute function timer.settle();
         delete from {clerk}.own"
    );
    let refused = database.server.psql(&database.name).args(["-c", &abuse]).output().unwrap();
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("own cannot call timer.settle"), "{error}");
}

/// A restore or a replication deletes rows without firing the triggers.
#[test]
fn a_call_whose_attempt_was_deleted_goes_on() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    let orphan = |node: &mut Node| {
        let id = run(node);
        let queued = database.sql(&call("debounce"));
        database.sql(&format!("set session_replication_role = replica; delete from timer.timeout where id = '{id}'"));
        queued
    };
    let queued = orphan(&mut node);
    let running = run(&mut node);
    assert_eq!(database.sql(&call("debounce")), queued, "the key is not blocked");
    node.write([Operation::Done { id: running, attempt: 1, next: None, then: Vec::new() }]).unwrap();
    assert_eq!(database.sql(LEFT), "next|pending");
    database.sql("select timer.cancel('topic', 'key')");

    let queued = orphan(&mut node);
    node.0.rejoin().unwrap();
    node.keep_up_until(|node| !node.pending().is_empty());
    assert_eq!(node.pending()[0].to_string(), queued.replace('-', ""));
    assert_eq!(database.sql(LEFT), "next|pending");
    database.sql("select timer.cancel('topic', 'key')");

    orphan(&mut node);
    let waiting = database.sql("select timer.schedule('topic', 'first'::text, '2 hours', 'key')");
    node.0.rejoin().unwrap();
    node.keep_up_until(|_| database.sql(LEFT) == "next|pending");
    assert_eq!(database.sql("select id from timer.pending"), waiting, "the call changes the timeout that waits");
}

#[test]
fn a_call_whose_attempt_was_deleted_goes_on_after_another_transaction_has_locked_it() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    let id = run(&mut node);
    let queued = database.sql(&call("debounce"));
    database.sql(&format!("set session_replication_role = replica; delete from timer.timeout where id = '{id}'"));
    let mut user = Session::begin(&database);
    user.ask(&format!("select id from timer.timeout where id = '{queued}' for update"));
    node.0.rejoin().unwrap();
    node.0.upkeep(&[]).unwrap();
    assert_eq!(database.sql(LEFT), "next|queued");
    user.end("commit");
    node.keep_up_until(|_| database.sql(LEFT) == "next|pending");
}

/// A row of the user that refers to a queued call keeps the call locked until its transaction ends.
#[test]
fn a_locked_call_delays_the_end_of_its_attempt_only() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    let id = run(&mut node);
    let queued = database.sql(&call("debounce"));
    database.sql("create table orders(timeout uuid references timer.timeout on delete set null)");
    let mut user = Session::begin(&database);
    user.ask(&format!("insert into orders values ('{queued}') returning 1"));
    let other = Insert::new(TimeoutId::new(), node.0.now() + 1_000_000_000, "topic");
    let done = Operation::Done { id, attempt: 1, next: None, then: Vec::new() };
    let outcomes = node.write([done.clone(), Operation::Insert(other)]).unwrap();
    assert_eq!(outcomes, [Outcome::Locked, Outcome::Created { replaced: None }]);
    user.end("commit");
    assert_eq!(node.write([done]).unwrap(), [Outcome::Changed(id)]);
    assert_eq!(database.sql("select state from timer.pending where key = 'key'"), "pending");
}
