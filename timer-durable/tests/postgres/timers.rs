//! Timers on a real server, through the public API.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use timer_durable::{
    Cancelled, Due, DurableTimer, DurableTimerBuilder, Error, IfPending, PostgresConnection, PostgresStore, Retry,
    StoreError,
};

use super::{Database, LEASE};

const PATIENCE: Duration = Duration::from_secs(30);

fn open(database: &Database, builder: DurableTimerBuilder) -> DurableTimer {
    let store = PostgresStore::connect(&database.url()).unwrap().lease(LEASE);
    builder.open(store).unwrap()
}

#[test]
fn two_timers_run_each_timeout_once() {
    let Some(database) = Database::create() else { return };
    let (sender, fired) = mpsc::channel();
    let timers: Vec<DurableTimer> = (0..2)
        .map(|node| {
            let sender = sender.clone();
            let record =
                move |due: &Due<String>| sender.send((due.payload().clone(), due.attempt(), node)).map_err(Retry::new);
            open(&database, DurableTimer::builder().topic("topic", record))
        })
        .collect();
    for n in 0..200 {
        timers[n % 2].new_timeout("topic", Duration::from_millis(n as u64 * 5), &n.to_string()).unwrap();
    }
    let mut seen: Vec<usize> = (0..200)
        .map(|_| {
            let (payload, attempt, _) = fired.recv_timeout(PATIENCE).unwrap();
            assert_eq!(attempt, 1);
            payload.parse().unwrap()
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..200).collect::<Vec<_>>());
    for timer in timers {
        assert_eq!(timer.stop(PATIENCE).unwrap().unfinished, 0);
    }
    assert!(fired.try_recv().is_err(), "nothing runs twice");
}

#[test]
fn calls_reach_timeouts_of_the_other_node() {
    let Some(database) = Database::create() else { return };
    let topic = || DurableTimer::builder().topic("topic", |_: &Due<String>| Ok(()));
    let (first, second) = (open(&database, topic()), open(&database, topic()));
    let hour = Duration::from_secs(3600);
    let id = first.new_timeout_keyed("topic", "key", hour, &String::new(), IfPending::Keep).unwrap();
    let kept = second.new_timeout_keyed("topic", "key", hour, &String::new(), IfPending::Keep).unwrap();
    assert_eq!(id, kept);
    assert_eq!(second.cancel("topic", "key").unwrap(), Cancelled::Cancelled);
    assert_eq!(first.cancel("topic", "key").unwrap(), Cancelled::Unknown);
}

#[test]
fn an_order_and_its_timeout_end_together() {
    let Some(database) = Database::create() else { return };
    let (sender, ended) = mpsc::channel();
    let close = move |due: &Due<String>| {
        let order = due.payload().clone();
        due.complete_in(move |connection: &mut PostgresConnection| {
            connection.execute("insert into orders values ($1)", &[&order])?;
            Ok(())
        })?;
        sender.send(due.attempt()).map_err(Retry::new)
    };
    let timer = open(&database, DurableTimer::builder().topic("order.close", close));
    database.sql("create table orders(number text primary key)");
    timer.new_timeout("order.close", Duration::ZERO, &"17".to_owned()).unwrap();
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(1));
    assert_eq!(database.sql("select number from orders"), "17");
    assert_eq!(timer.counts().unwrap().pending, 0);
}

/// Runs `work` on the timer's connection inside a transaction, and returns the answer.
fn transact(
    timer: &DurableTimer,
    work: fn(&mut PostgresConnection) -> Result<(), timer_durable::QueryError>,
) -> Result<(), Error> {
    timer.with_connection(move |connection: &mut PostgresConnection| Ok(work(connection)?))
}

#[test]
fn a_swallowed_error_is_no_commit() {
    let Some(database) = Database::create() else { return };
    let timer = open(&database, DurableTimer::builder().topic("topic", |_: &Due<String>| Ok(())));
    database.sql("create table orders(number text primary key)");
    let swallow = |connection: &mut PostgresConnection| {
        connection.execute("insert into orders values ('17')", &[])?;
        let _refused = connection.execute("insert into nowhere values ('17')", &[]);
        Ok(())
    };
    let error = transact(&timer, swallow).unwrap_err();
    assert!(matches!(&error, Error::Store(StoreError::Failed(why)) if why.contains("25P02")), "{error}");
    let insert = |connection: &mut PostgresConnection| {
        connection.execute("insert into orders values ('18')", &[])?;
        Ok(())
    };
    transact(&timer, insert).unwrap();
    assert_eq!(database.sql("select number from orders"), "18");
}

#[test]
fn work_that_ends_its_transaction_is_in_doubt() {
    let Some(database) = Database::create() else { return };
    let timer = open(&database, DurableTimer::builder().topic("topic", |_: &Due<String>| Ok(())));
    let error = transact(&timer, |connection| connection.batch_execute("rollback")).unwrap_err();
    assert!(matches!(&error, Error::OutcomeUnknown { why, .. } if why.contains("25P01")), "{error}");
    let begun = Instant::now();
    while timer.new_timeout("topic", Duration::ZERO, &String::new()).is_err() {
        assert!(begun.elapsed() < PATIENCE, "the timer joins again");
    }
}

#[test]
fn a_timer_is_opened_inside_a_runtime() {
    let Some(database) = Database::create() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let timer = open(&database, DurableTimer::builder().topic("topic", |_: &Due<String>| Ok(())));
        timer.new_timeout_async("topic", Duration::ZERO, &String::new()).await.unwrap();
    });
}

#[test]
fn a_nul_character_harms_nobody() {
    let Some(database) = Database::create() else { return };
    let fail = |_: &Due<String>| Err(Retry::bury("bad\0reason"));
    let timer = open(&database, DurableTimer::builder().topic("topic", fail));
    let text = String::new();
    let keyed = |key| timer.new_timeout_keyed("topic", key, Duration::ZERO, &text, IfPending::Keep);
    assert_eq!(keyed("a\0b").unwrap_err().to_string(), "a key with a NUL character was given; none is allowed");
    assert_eq!(timer.cancel("topic", "a\0b").unwrap(), Cancelled::Unknown);
    keyed("good").unwrap();
    while timer.counts().unwrap().dead == 0 {}
    assert_eq!(timer.dead_letters(None, None, 9).unwrap()[0].reason, "bad\u{fffd}reason");
}
