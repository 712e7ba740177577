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
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    node.listen();
    let before = node.0.membership().unwrap().foreign;
    let schedule = "select timer.schedule('topic', 'payload'::text, '0', 'key', traceparent => 'trace')";
    node.hear(|| _ = database.sql(schedule));
    node.keep_up_until(|node| node.0.membership().unwrap().foreign > before);
    let id = node.pending()[0];
    let attempt = node.attempt(id);
    assert_eq!(attempt.traceparent.as_deref(), Some("trace"));
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
    let debounce = |key: &str, delay: &str, cap: &str| {
        database
            .sql(&format!("select timer.schedule('topic', 'x'::text, '{delay}', '{key}', 'debounce', cap => '{cap}')"));
        database.sql(&format!("select round((due - timer.now()) / 6e7) from timer.timeout where key = '{key}'"))
    };
    assert_eq!(debounce("often", "10 minutes", "30 minutes"), "10");
    assert_eq!(debounce("often", "50 minutes", "2 hours"), "30", "the cap of the first call");
    assert_eq!(debounce("once", "2 hours", "1 hour"), "60");
}

#[test]
fn bad_arguments_are_named() {
    let Some(database) = Database::create() else { return };
    let _node = database.join();
    for (arguments, expected) in [
        ("'topic', ''::text, '1 s', 'key', 'perhaps'", "perhaps was given; allowed is keep"),
        ("repeat('x', 256), ''::text, '1 s'", "at most 255 bytes are allowed"),
        ("null, ''::text, '1 s'", "null value in column \"topic\""),
        ("'topic', ''::text, null", "allowed is one of both"),
        ("'topic', ''::text, '1 s', at => now()", "allowed is one of both"),
        ("'topic', repeat('x', 1048577), '1 s'", "payload: 1048577 bytes were given; at most 1048576 are allowed"),
        ("'topic', ''::text, '1 s', period => '0'", "a period must be positive"),
        ("'topic', ''::text, '1 s', 'key', cap => '1 s'", "allowed is a positive one with debounce"),
    ] {
        let statement = format!("select timer.schedule({arguments})");
        let output = database.server.psql(&database.name).args(["-c", &statement]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(expected), "{arguments}: {error}");
    }
}

#[test]
fn sql_schedules_all_that_the_rust_calls_can() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    node.listen();
    let foreign = |node: &super::Node| node.0.membership().unwrap().foreign;
    let second = 1_000_000;
    for (format, payload) in (1_u8..).zip(["'x'::bytea", "'x'::text", "'\"x\"'::jsonb"]) {
        let id = database.sql(&format!(
            "select timer.schedule('topic', {payload}, at => '2001-09-09 01:46:40+00', period => '1 hour', max_lateness => '1 day')"
        ));
        node.keep_up_until(|node| foreign(node) == u64::from(format));
        let attempt = node.attempt(id.parse().unwrap());
        assert_eq!(
            (attempt.format, attempt.due, attempt.period, attempt.max_lateness),
            (format.into(), 1_000_000_000 * second, Some(3_600 * second), Some(86_400 * second))
        );
    }
    // Many in one call.
    let many = "select count(timer.schedule('many', payload, delay, key)) from unnest(
        array['a', 'b'], array[interval '1 hour', '2 hours'], array['first', 'second']) as i(payload, delay, key)";
    assert_eq!(database.sql(many), "2");
    node.keep_up_until(|node| foreign(node) == 5);
}

#[test]
fn an_interval_is_a_length_of_time() {
    let Some(database) = Database::create() else { return };
    let _node = database.join();
    let code = |call: &str| {
        let catch = format!(
            "do $$ begin perform timer.{call}; raise 'accepted'; exception when invalid_parameter_value then
             raise info '%, %', sqlstate, sqlerrm; end $$"
        );
        let output = database.server.psql(&database.name).args(["-c", &catch]).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    for (call, refused) in [
        ("schedule('t', 'x'::text, '0', period => '1 year')", "period: 1 year"),
        ("schedule('t', 'x'::text, '0', period => '1 month 3 days')", "period: 1 mon 3 days"),
        ("schedule('t', 'x'::text, '1 month')", "delay: 1 mon"),
        ("schedule('t', '1'::jsonb, '0', max_lateness => '-2 years')", "max_lateness: -2 years"),
        ("schedule('t', ''::bytea, '0', key => 'k', if_pending => 'debounce', cap => '1 month')", "cap: 1 mon"),
        ("reset('t', 'k', '1 year')", "delay: 1 year"),
    ] {
        let refusal = format!("22023, {refused} was given; allowed are weeks, days, hours, minutes and seconds");
        let found = code(call);
        assert!(found.contains(&refusal), "{call}: {found}");
    }
    database.sql(
        "select timer.schedule('t', ''::text, '1 week 12 months -1 year', period => '2 days', max_lateness => '1.5 s')",
    );
    let stored = database.sql("select (due - timer.now()) / 3600000000, period, max_lateness from timer.timeout");
    assert_eq!(stored, format!("167|{}|1500000", 48 * 3_600_000_000_i64));
}

#[test]
fn a_timeout_is_reset_by_sql() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    node.listen();
    let id = database.sql("select timer.schedule('topic', ''::text, '1 hour', 'key')");
    let foreign = |node: &super::Node| node.0.membership().unwrap().foreign;
    node.keep_up_until(|node| foreign(node) == 1);
    assert_eq!(database.sql("select timer.reset('topic', 'key', '0')"), "reset");
    // The owner learns of the earlier time.
    node.keep_up_until(|node| foreign(node) == 2);
    assert_eq!(
        database.sql(&format!(
            "select timer.reset('{id}', '0'), timer.reset('topic', 'key', null, '2001-09-09 01:46:40+00')"
        )),
        "reset|reset"
    );
    let pending = node.pending()[0];
    assert_eq!(node.attempt(pending).due, 1_000_000_000_000_000);
    assert_eq!(database.sql("select timer.reset('topic', 'key', '0')"), "running");
    assert_eq!(database.sql("select timer.reset('topic', 'another', '0')"), "unknown");
    // A reset forgets the planned time of the attempt before it.
    node.write([Operation::Retry { id: pending, attempt: 1, due: node.0.now(), forgive: false }]).unwrap();
    let reset = "select planned is null, timer.reset('topic', 'key', '1 hour') from timer.timeout";
    assert_eq!(database.sql(reset), "f|reset");
    assert_eq!(database.sql("select planned is null from timer.timeout"), "t");
}

#[test]
fn a_dead_letter_is_requeued_by_sql() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    let foreign = |node: &super::Node| node.0.membership().unwrap().foreign;
    let mut collected = 0;
    let mut schedule = |node: &mut super::Node| {
        let id = database.sql("select timer.schedule('topic', 'x'::text, '0', 'key')");
        collected += 1;
        node.keep_up_until(|node| foreign(node) == collected);
        id
    };
    let dead = [(); 2].map(|()| {
        let text = schedule(&mut node);
        let id = node.pending()[0];
        node.attempt(id);
        node.write([Operation::Bury { id, attempt: 1, reason: "broken".to_owned(), next: None }]).unwrap();
        text
    });
    let requeue = |id: &str, without_key: &str| database.sql(&format!("select timer.requeue('{id}'{without_key})"));
    assert_eq!(requeue(&dead[0], ""), "requeued");
    assert_eq!(
        [requeue(&dead[0], ""), requeue(&dead[1], ""), requeue(&dead[1], "")],
        ["unknown", "key_taken", "key_taken"]
    );
    assert_eq!(requeue(&dead[1], ", without_key => true"), "requeued");
    node.keep_up_until(|node| foreign(node) == 4);
    let keys: Vec<_> =
        node.pending().into_iter().map(|id| node.attempt(id)).map(|run| (run.attempt, run.key)).collect();
    assert_eq!(keys, [(2, Some("key".to_owned())), (2, None)]);
    let bury = |id| Operation::Bury { id, attempt: 2, reason: "broken".to_owned(), next: None };
    let ids: Vec<_> = dead.iter().map(|id| id.replace('-', "").parse().unwrap()).collect();
    node.write([bury(ids[0]), bury(ids[1])]).unwrap();
    let seen = "select key, attempt, reason, convert_from(payload, 'UTF8'), died <= now(), due < died from timer.dead order by key";
    assert_eq!(database.sql(seen), "key|2|broken|x|t|t\n|2|broken|x|t|t");
    let purge = "select timer.purge(id) from timer.dead where topic = 'topic' and died < now()";
    assert_eq!(database.sql(purge), "t\nt");
    assert_eq!(database.sql(&format!("select timer.purge('{}'), (select count(*) from timer.dead)", dead[0])), "f|0");
}

/// PostgreSQL refuses to prepare a transaction that has sent a notification.
#[test]
fn a_transaction_that_schedules_is_prepared() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    node.listen();
    let prepare = |setting: &str| {
        let call = format!(
            "begin; {setting}; select timer.schedule('t', ''::text, '0'); prepare transaction '{}'",
            database.name
        );
        database.server.psql(&database.name).args(["-c", &call]).output().unwrap().status.success()
    };
    assert!(!prepare("select 1"));
    assert!(prepare("set local timer_durable.notify = off"));
    database.sql(&format!("commit prepared '{}'", database.name));
    node.hear(|| _ = database.sql("notify timer"));
    node.keep_up_until(|node| node.0.membership().unwrap().foreign == 1);
}
