//! Rows that the database refuses by a trigger of the user.

use std::sync::mpsc;
use std::time::Duration;

use timer_durable::{Due, DurableTimer, Retry, Schedule, Topic};
use timer_durable_postgres::PostgresStore;

use super::{Database, LEASE};

const PATIENCE: Duration = Duration::from_secs(30);

/// The code of a plain `raise exception`, and one that a user has made up.
const CODES: [&str; 2] = ["P0001", "OR001"];

/// Opens a timer whose handler sends the payload.
fn open(database: &Database) -> (DurableTimer, mpsc::Receiver<String>) {
    let (sender, fired) = mpsc::channel();
    let record = move |due: &Due<String>| sender.send(due.payload().clone()).map_err(Retry::new);
    let store = PostgresStore::new(&database.url()).unwrap().lease(LEASE);
    // An end that waits aside must not hold the only place.
    (DurableTimer::builder().max_running(1).topic(Topic::new("topic"), record).open(store).wait().unwrap(), fired)
}

/// Refuses changes of rows whose key begins with `bad`.
fn refuse(database: &Database, change: &str, code: &str) {
    let row = if change == "insert" { "new" } else { "old" };
    database.sql(&format!(
        "create function refuse() returns trigger language plpgsql as $$ begin
             if {row}.key like 'bad%' then raise exception 'no bad keys' using errcode = '{code}'; end if;
             return case tg_op when 'DELETE' then old else new end;
         end $$;
         create trigger refuse before {change} on timer.timeout for each row execute function refuse()"
    ));
}

#[test]
fn a_refused_row_fails_its_call_only() {
    for code in CODES {
        let Some(database) = Database::create() else { return };
        let (timer, fired) = open(&database);
        refuse(&database, "insert", code);
        let names = ["good", "bad", "good", "good", "bad"];
        let keys: Vec<String> = (0..100).map(|n| format!("{}{n}", names[n % 5])).collect();
        let soon = Duration::from_millis(1);
        let schedule = |key: &String| timer.schedule(Topic::new("topic"), Schedule::after(soon).key(key), key);
        let calls: Vec<_> = keys.iter().map(schedule).collect();
        for (key, call) in keys.iter().zip(calls) {
            match call.wait() {
                Ok(_) => assert!(key.starts_with("good"), "{key}"),
                Err(error) => {
                    assert!(key.starts_with("bad") && error.to_string().contains("no bad keys"), "{key}: {error}")
                }
            }
        }
        for _ in 0..60 {
            assert!(fired.recv_timeout(PATIENCE).unwrap().starts_with("good"));
        }
        assert_eq!(timer.stop(PATIENCE).wait().unwrap().unfinished, 0);
    }
}

#[test]
fn a_refused_begin_or_end_delays_its_timeout_only() {
    for (change, code) in [("update", CODES[0]), ("update", CODES[1]), ("delete", CODES[1])] {
        let Some(database) = Database::create() else { return };
        let (timer, fired) = open(&database);
        refuse(&database, change, code);
        let schedule = |key: &str| {
            timer
                .schedule(Topic::new("topic"), Schedule::after(Duration::ZERO).key(key), &key.to_owned())
                .wait()
                .unwrap();
        };
        schedule("bad");
        if change == "delete" {
            assert_eq!(fired.recv_timeout(PATIENCE).unwrap(), "bad");
        }
        for n in 0..20 {
            schedule(&format!("good{n}"));
            assert_eq!(fired.recv_timeout(PATIENCE).unwrap(), format!("good{n}"));
        }
        database.wait_for("select count(*) from timer.timeout", "1");
        database.sql("drop trigger refuse on timer.timeout");
        if change == "update" {
            assert_eq!(fired.recv_timeout(PATIENCE).unwrap(), "bad");
        }
        assert_eq!(timer.stop(PATIENCE).wait().unwrap().unfinished, 0);
        assert_eq!(database.sql("select count(*) from timer.timeout"), "0");
    }
}

/// A trigger ends the connection at one begin, as an answer does that is too long for the limit.
#[test]
fn a_begin_that_costs_the_connection_delays_its_timeout_only() {
    let Some(database) = Database::create() else { return };
    let (timer, fired) = open(&database);
    database.sql(
        "create function cut() returns trigger language plpgsql as $$ begin
             if new.key = 'slow' and new.begun is not null then perform pg_terminate_backend(pg_backend_pid()); end if;
             return new;
         end $$;
         create trigger cut before update on timer.timeout for each row execute function cut()",
    );
    let soon = Duration::from_millis(500);
    for key in ["slow", "a", "b", "c"] {
        timer.schedule(Topic::new("topic"), Schedule::after(soon).key(key), &key.to_owned()).wait().unwrap();
    }
    let mut ran: Vec<String> = (0..3).map(|_| fired.recv_timeout(PATIENCE).unwrap()).collect();
    ran.sort_unstable();
    assert_eq!(ran, ["a", "b", "c"]);
    database.sql("drop trigger cut on timer.timeout");
    assert_eq!(fired.recv_timeout(2 * PATIENCE).unwrap(), "slow");
}

/// Creates a database with an encoding that lacks most characters.
fn create_encoded(encoding: &str) -> Option<Database> {
    let server = timer_durable_tests::postgres_server::shared()?;
    let name = format!("test_{:x}", fastrand::u64(..));
    server.sql("postgres", &format!("create database {name} template template0 encoding '{encoding}' locale 'C'"));
    Some(Database { server, name })
}

#[test]
fn a_reason_that_the_database_cannot_store_is_escaped() {
    for encoding in ["LATIN1", "EUC_JP", "SQL_ASCII"] {
        let Some(database) = create_encoded(encoding) else { return };
        let (sender, fired) = mpsc::channel();
        let handler = move |due: &Due<String>| match &**due.payload() {
            "bad" => Err(Retry::dead("gr\u{f6}\u{df}e \u{540d}")),
            _ => sender.send(()).map_err(Retry::new),
        };
        let store = PostgresStore::new(&database.url()).unwrap().lease(LEASE).node("caf\u{e9} \u{540d}");
        let timer =
            DurableTimer::builder().max_running(1).topic(Topic::new("topic"), handler).open(store).wait().unwrap();
        for payload in ["bad", "good"] {
            timer.new_timeout(Topic::new("topic"), Duration::ZERO, &payload.to_owned()).wait().unwrap();
        }
        fired.recv_timeout(PATIENCE).unwrap();
        database.wait_for("select reason from timer.timeout", r"gr\u{f6}\u{df}e \u{540d}");
    }
}
