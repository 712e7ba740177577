//! Databases of earlier releases, which the present code has to use.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use timer_durable::store::{Micros, Store};
use timer_durable::transaction::{Done, Retry as Again};
use timer_durable::{ConnectError, Due, DurableTimer, PostgresStore, Retry, TimeoutId};

use super::{Database, LEASE, Node};

const PATIENCE: Duration = Duration::from_secs(30);

const VERSION_1: &str = include_str!("../fixtures/postgres_1.sql");

const VERSION_2: &str = include_str!("../fixtures/postgres_2.sql");

/// Everything that an upgrade has to change, and that a new database has from the start.
const FACTS: &str = "
    select version, (
        select string_agg(option, ' ' order by option) from pg_class c, unnest(c.reloptions) option
        where c.oid = 'timer.timeout'::regclass
    ), (
        select string_agg(concat_ws(' ', attnum, attname, format_type(atttypid, atttypmod), attnotnull), ', ' order by attnum)
        from pg_attribute where attrelid = 'timer.timeout'::regclass and attnum > 0
    ), (
        select string_agg(pg_get_functiondef(oid), '' order by oid::regprocedure::text) from pg_proc
        where pronamespace = 'timer'::regnamespace
    ) from timer.meta";

/// A change of the schema needs a new version, a fixture of it, and an upgrade to it.
#[test]
fn databases_of_all_versions_go_on() {
    for (version, script) in [("1", VERSION_1), ("2", VERSION_2)] {
        let (Some(old), Some(new)) = (Database::create(), Database::create()) else { return };
        old.sql(script);
        let mut node = old.join();
        let first = node.insert();
        assert_eq!(old.sql("select version from timer.meta"), version, "nothing is upgraded unasked");
        node.attempt(first);
        retry(&mut node, first, 1, 0);
        let second = node.attempt(first);
        assert_eq!(second.planned, second.due, "version {version} has no planned times");
        retry(&mut node, first, 2, 0);
        PostgresStore::upgrade(&old.url()).unwrap();
        PostgresStore::upgrade(&old.url()).unwrap();
        let last = node.insert();
        for (id, attempt) in [(first, 3), (last, 1)] {
            node.attempt(id);
            let done = node.write(|batch| batch.dones.push(Done { id, attempt, next: None })).unwrap();
            assert_eq!(done.dones, [true]);
        }
        drop(new.join());
        assert_eq!(old.sql(FACTS), new.sql(FACTS), "from version {version}");
        old.join();
    }
}

/// A database of this version has a function of an earlier program.
#[test]
fn an_upgrade_replaces_functions_that_were_mended() {
    let (Some(old), Some(new)) = (Database::create(), Database::create()) else { return };
    drop((old.join(), new.join()));
    let clerk = format!("upgrade_{}", old.name);
    old.sql(&format!(
        "create role {clerk} login password 'right'; grant usage on schema timer to {clerk};
         grant select, insert, update, delete on all tables in schema timer to {clerk};
         grant usage, select on all sequences in schema timer to {clerk}"
    ));
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
}

/// Lets an attempt be repeated at `due`. Zero stands for a moment ago.
fn retry(node: &mut Node, id: TimeoutId, attempt: u32, due: Micros) {
    let due = if due == 0 { node.0.now() - 1_000 } else { due };
    let answers = node.write(|batch| batch.retries.push(Again { id, attempt, due, forgive: false })).unwrap();
    assert_eq!(answers.retries, [true]);
}

/// A node that was connected before the upgrade changes due times as a node of an earlier release
/// does, without the planned time.
#[test]
fn nodes_from_before_an_upgrade_plan_runs_anew() {
    let Some(database) = Database::create() else { return };
    database.sql(VERSION_2);
    let mut old = database.join_with(|store| store.lease(LEASE * 60));
    let id = old.insert();
    PostgresStore::upgrade(&database.url()).unwrap();
    old.attempt(id);
    let planned = old.0.now() - 1_000;
    retry(&mut old, id, 1, planned);
    assert_eq!(old.attempt(id).planned, planned, "it does not use the columns");
    // The node joins again with another connection, and learns of the upgrade.
    database.sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()");
    while old.0.rejoin().is_err() {}
    let second = old.attempt(id);
    assert_eq!((second.attempt, second.planned), (3, planned));
    retry(&mut old, id, 3, planned + 7);
    let third = old.attempt(id);
    assert_eq!((third.due, third.planned), (planned + 7, planned));
    retry(&mut old, id, 4, planned + 9);
    database.sql(&format!("update timer.timeout set due = due + 2 where id = '{id}'"));
    let moved = old.attempt(id);
    assert_eq!((moved.due, moved.planned), (planned + 11, planned + 11), "an earlier release has moved it");
}

#[test]
fn an_upgrade_of_a_locked_table_changes_nothing() {
    let Some(database) = Database::create() else { return };
    database.sql(VERSION_2);
    let before = database.sql(FACTS);
    let reads = "begin; lock table timer.timeout in access share mode; select pg_sleep(4)";
    let mut reader = database.server.psql(&database.name).args(["-c", reads]).stdout(Stdio::null()).spawn().unwrap();
    database.wait_for(
        "select count(*) from pg_stat_activity where query like '%pg_sleep(4)' and wait_event = 'PgSleep'",
        "1",
    );
    let refused = PostgresStore::upgrade(&database.url()).unwrap_err().to_string();
    assert!(refused.contains("lock timeout"), "{refused}");
    assert_eq!(database.sql(FACTS), before);
    assert!(reader.wait().unwrap().success());
    PostgresStore::upgrade(&database.url()).unwrap();
    assert_eq!(database.sql("select version from timer.meta"), "3");
}

#[test]
fn an_upgrade_of_version_1_under_load_loses_nothing() {
    upgrade_under_load(VERSION_1);
}

#[test]
fn an_upgrade_of_version_2_under_load_loses_nothing() {
    upgrade_under_load(VERSION_2);
}

fn upgrade_under_load(script: &str) {
    let Some(database) = Database::create() else { return };
    database.sql(script);
    let (sender, fired) = mpsc::channel();
    let timers = [(); 2].map(|()| {
        let sender = sender.clone();
        let record = move |due: &Due<String>| sender.send((due.payload().clone(), due.attempt())).map_err(Retry::new);
        let store = PostgresStore::connect(&database.url()).unwrap().lease(LEASE * 5);
        DurableTimer::builder().topic("topic", record).open(store).unwrap()
    });
    let is_upgraded = AtomicBool::new(false);
    let (mut seen, scheduled) = thread::scope(|scope| {
        let (timers, is_upgraded) = (&timers, &is_upgraded);
        let threads = [0, 1, 2, 3].map(|thread| {
            scope.spawn(move || {
                let (mut count, mut left) = (0, 20);
                while left > 0 {
                    let name = format!("{thread}-{count}");
                    timers[thread % 2].new_timeout("topic", Duration::from_millis(10), &name).unwrap();
                    count += 1;
                    left -= u32::from(is_upgraded.load(Ordering::Relaxed));
                }
                count
            })
        });
        let seen: Vec<(String, u32)> = (0..100).map(|_| fired.recv_timeout(PATIENCE).unwrap()).collect();
        PostgresStore::upgrade(&database.url()).unwrap();
        is_upgraded.store(true, Ordering::Relaxed);
        (seen, threads.map(|thread| thread.join().unwrap()).iter().sum::<usize>())
    });
    seen.extend((seen.len()..scheduled).map(|_| fired.recv_timeout(PATIENCE).unwrap()));
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() == scheduled && seen.iter().all(|(_, attempt)| *attempt == 1), "{scheduled} timeouts: {seen:?}");
    for timer in timers {
        assert_eq!((timer.stats().store_errors, timer.stats().rejoins), (0, 0));
        assert_eq!(timer.stop(PATIENCE).unwrap().unfinished, 0);
    }
    assert!(fired.try_recv().is_err(), "nothing runs twice");
    let rest = "select version, (select count(*) from timer.timeout where ended is null) from timer.meta";
    assert_eq!(database.sql(rest), "3|0");
}
