//! The functions for other languages and for the user's own transaction.

use std::time::{Duration, Instant};

use timer_durable::store::{Micros, Store};
use timer_durable::transaction::{Insert, Operation, Outcome};
use timer_durable::{StoreError, TimeoutId};

use super::{Database, LEASE};

#[test]
fn a_rolled_back_transaction_schedules_nothing() {
    let Some(database) = Database::create() else { return };
    let _node = database.join();
    database.sql("begin; select timer.schedule('topic', 'payload'::text, '1 hour'); rollback");
    assert_eq!(database.sql("select count(*) from timer.timeout"), "0");
}

#[test]
fn a_delay_of_null_is_refused() {
    let Some(database) = Database::create() else { return };
    let _node = database.join();
    database.sql(
        "create function schedule() returns text language plpgsql as $$ begin
             perform timer.schedule('topic', ''::text, null);
             return 'scheduled';
         exception when invalid_parameter_value then
             return 'refused';
         end $$",
    );
    assert_eq!(database.sql("select schedule()"), "refused");
}

#[test]
fn a_row_that_the_database_keeps_out_is_refused() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    database.sql("create unique index on timer.timeout(payload)");
    let insert = |key: Option<&str>| {
        let mut insert = Insert::new(TimeoutId::made_by(node.0.instance()), node.0.now() + 1_000_000_000, "topic");
        insert.key = key.map(str::to_owned);
        insert
    };
    let inserts = [insert(None), insert(None), insert(Some("key"))];
    let [first, second, third] = inserts.map(|insert| node.write([Operation::Insert(insert)]).unwrap());
    assert_eq!(first, [Outcome::Created { replaced: None }]);
    for refused in [second, third] {
        assert!(matches!(&refused[..], [Outcome::Refused(_)]), "{refused:?}");
    }
}

#[test]
fn a_foreign_timeout_is_found_by_its_notification() {
    let Some(database) = Database::create() else { return };
    // With a lease this long, only the notification can be the reason.
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    node.listen();
    let before = node.0.membership().unwrap().foreign;
    database.sql("select timer.schedule('topic', 'payload'::text, '0', 'key')");
    node.keep_up_until(|node| node.0.membership().unwrap().foreign > before);
    let id = node.pending()[0];
    let attempt = node.attempt(id);
    assert_eq!((attempt.key.as_deref(), attempt.format, &*attempt.payload), (Some("key"), 2, &b"payload"[..]));
    assert_eq!(database.sql("select timer.cancel('topic', 'key')"), "running");
    let complete = format!("select timer.complete('{id}', {})", attempt.attempt);
    assert_eq!(database.sql(&complete.replace(", 1)", ", 2)")), "f", "not the last attempt");
    assert_eq!(database.sql(&complete), "t");
    assert_eq!(database.sql(&complete), "f", "it has ended");
    assert_eq!(node.begin(id), Ok(Outcome::NotFound));
}

#[test]
fn a_retry_does_not_shift_the_runs_that_sql_completes() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let planned = node.0.now() - 25_000_000;
    let mut insert = Insert::new(TimeoutId::new(), planned, "topic");
    insert.period = Some(10_000_000);
    let id = insert.id;
    node.write([Operation::Insert(insert)]).unwrap();
    for attempt in [1, 2] {
        node.attempt(id);
        let due = planned + 3_000_000;
        node.write([Operation::Retry { id, attempt, due, forgive: attempt == 2 }]).unwrap();
    }
    assert_eq!(node.attempt(id).planned, planned);
    assert_eq!(database.sql(&format!("select timer.complete('{id}', 3)")), "t");
    let row = database.sql(&format!(
        "select (due - {planned}) / 10000000, (due - {planned}) % 10000000, planned is null, attempt - forgiven
         from timer.timeout"
    ));
    assert_eq!(row, "3|0|t|0", "the third period after the planned time");
}

#[test]
fn a_run_with_an_endless_period_is_completed_by_sql() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let mut insert = Insert::new(TimeoutId::new(), node.0.now(), "topic");
    insert.period = Some(Micros::MAX);
    let id = insert.id;
    node.write([Operation::Insert(insert)]).unwrap();
    node.attempt(id);
    assert_eq!(database.sql(&format!("select timer.complete('{id}', 1)")), "t");
    assert_eq!(database.sql("select due from timer.timeout"), Micros::MAX.to_string());
}

#[test]
fn a_look_that_fails_is_repeated() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    // Waits until the listener has made its first look.
    database.sql("select timer.schedule('topic', ''::text, '1 hour')");
    node.keep_up_until(|node| node.0.membership().unwrap().foreign > 0);
    database.sql(
        "create function fail() returns trigger language plpgsql as $$
             begin raise exception 'no' using errcode = 'disk_full'; end
         $$;
         create trigger fail before update on timer.timeout for each row execute function fail();
         select timer.schedule('topic', ''::text, '1 hour')",
    );
    let begun = Instant::now();
    while !matches!(node.0.upkeep(&[]), Err(StoreError::Failed(_))) {
        assert!(begun.elapsed() < Duration::from_secs(30), "the look meets the trigger");
    }
    database.sql("drop trigger fail on timer.timeout");
    node.keep_up_until(|node| node.0.membership().unwrap().foreign > 1);
    assert_eq!(node.pending().len(), 2);
}

#[test]
fn keys_have_the_meaning_of_the_call() {
    let Some(database) = Database::create() else { return };
    let _node = database.join();
    let schedule = |delay: &str, if_pending: &str| {
        database.sql(&format!("select timer.schedule('topic', '{{}}'::jsonb, '{delay}', 'key', '{if_pending}')"))
    };
    let due = || database.sql("select due from timer.timeout where ended is null").parse::<i64>().unwrap();
    let first = schedule("1 hour", "keep");
    let before = due();
    assert_eq!((schedule("2 hours", "keep"), due()), (first.clone(), before));
    assert_eq!((schedule("2 hours", "earlier"), due()), (first.clone(), before));
    assert_eq!(schedule("2 hours", "later"), first);
    assert!(due() > before + 3_000_000_000);
    assert_ne!(schedule("1 second", "replace"), first);
    assert!(due() < before);
    assert_eq!(database.sql("select timer.cancel('topic', 'key'), timer.cancel('topic', 'key')"), "cancelled|unknown");
}

#[test]
fn bad_arguments_are_named() {
    let Some(database) = Database::create() else { return };
    let _node = database.join();
    for (arguments, expected) in [
        ("'topic', ''::text, '1 s', 'key', 'perhaps'", "perhaps was given; allowed is keep"),
        ("repeat('x', 256), ''::text, '1 s'", "at most 255 bytes are allowed"),
        ("null, ''::text, '1 s'", "null value in column \"topic\""),
    ] {
        let statement = format!("select timer.schedule({arguments})");
        let output = database.server.psql(&database.name).args(["-c", &statement]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(expected), "{arguments}: {error}");
    }
}
