//! Calls that are queued beside an attempt, on a server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use timer_durable::store::Store;
use timer_durable::transaction::{Insert, Operation, Outcome};
use timer_durable::{Due, DurableTimer, Retry, Schedule, ScheduleAnswer, TimeoutId};
use timer_durable_postgres::PostgresStore;
use timer_durable_tests::t;

use crate::locks::Session;
use crate::{Database, LEASE, Node};

const SESSIONS: usize = 200;

/// Makes a timeout whose attempt runs.
fn run(node: &mut Node) -> TimeoutId {
    let mut insert = Insert::new(TimeoutId::new(), node.0.now() - 1_000_000, "topic");
    insert.key = Some("key".to_owned());
    let id = insert.id;
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
    let id = run(&mut node);
    let queued = database.sql(&call("debounce"));
    let own = "select timer.schedule('topic', 'own'::text, '2 hours', 'key')";
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

/// Events of 200 sessions come at random, also while the handlers work.
#[test]
fn no_session_loses_its_last_event() {
    let Some(database) = Database::create() else { return };
    let handled = Arc::<Mutex<HashMap<String, u32>>>::default();
    let noted = handled.clone();
    let handle = move |due: &Due<String>| -> Result<(), Retry> {
        thread::park_timeout(Duration::from_millis(5));
        let key = due.key().unwrap_or_default().to_owned();
        noted.lock().unwrap().insert(key, due.payload().parse().unwrap());
        Ok(())
    };
    let store = PostgresStore::new(&database.url()).unwrap().lease(LEASE);
    let timer = DurableTimer::builder().topic(t(), handle).open(store).wait().unwrap();
    let mut events = vec![0_u32; SESSIONS];
    let mut queued = 0;
    let mut random = fastrand::Rng::with_seed(3);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) || queued < 20 {
        let mut calls = Vec::new();
        for _ in 0..10 {
            let session = random.usize(..SESSIONS);
            events[session] += 1;
            let schedule = Schedule::debounce(Duration::from_millis(75)).key(session.to_string());
            calls.push(timer.schedule(t(), schedule, &events[session].to_string()));
        }
        let answers = calls.into_iter().map(|call| call.wait().unwrap());
        queued += answers.filter(|answer| matches!(answer, ScheduleAnswer::Queued(_))).count();
        thread::park_timeout(Duration::from_millis(3));
        assert!(begun.elapsed() < Duration::from_secs(60), "{queued} calls beside a handler");
    }
    while timer.counts().wait().unwrap().pending > 0 {
        assert!(begun.elapsed() < Duration::from_secs(120), "{}", database.sql("select * from timer.timeout limit 3"));
        thread::park_timeout(Duration::from_millis(20));
    }
    timer.stop(Duration::from_secs(60)).wait().unwrap();
    let handled = handled.lock().unwrap();
    let lost = events
        .iter()
        .enumerate()
        .filter(|(session, last)| **last != handled.get(&session.to_string()).copied().unwrap_or_default());
    let lost: Vec<_> = lost.collect();
    println!("{} events, {queued} beside a handler, {} sessions lost", events.iter().sum::<u32>(), lost.len());
    assert_eq!(lost, []);
}
