//! Rows that the database refuses by a trigger of the user.

use std::sync::mpsc;
use std::time::Duration;

use timer_durable::{Due, DurableTimer, IfPending, PostgresStore, Retry, Topic};

use super::{Database, LEASE};

const PATIENCE: Duration = Duration::from_secs(30);

/// The code of a plain `raise exception`, and one that a user has made up.
const CODES: [&str; 2] = ["P0001", "OR001"];

/// Opens a timer whose handler sends the payload.
fn open(database: &Database) -> (DurableTimer, mpsc::Receiver<String>) {
    let (sender, fired) = mpsc::channel();
    let record = move |due: &Due<String>| sender.send(due.payload().clone()).map_err(Retry::new);
    let store = PostgresStore::connect(&database.url()).unwrap().lease(LEASE);
    (DurableTimer::builder().topic(Topic::new("topic"), record).open(store).unwrap(), fired)
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
        let schedule =
            |key: &String| timer.new_timeout_keyed_async(Topic::new("topic"), key, soon, key, IfPending::Keep);
        let calls: Vec<_> = keys.iter().map(schedule).collect();
        for (key, call) in keys.iter().zip(calls) {
            match futures::executor::block_on(call) {
                Ok(_) => assert!(key.starts_with("good"), "{key}"),
                Err(error) => {
                    assert!(key.starts_with("bad") && error.to_string().contains("no bad keys"), "{key}: {error}")
                }
            }
        }
        for _ in 0..60 {
            assert!(fired.recv_timeout(PATIENCE).unwrap().starts_with("good"));
        }
        assert_eq!(timer.stop(PATIENCE).unwrap().unfinished, 0);
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
                .new_timeout_keyed(Topic::new("topic"), key, Duration::ZERO, &key.to_owned(), IfPending::Keep)
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
        assert_eq!(timer.stop(PATIENCE).unwrap().unfinished, 0);
        assert_eq!(database.sql("select count(*) from timer.timeout"), "0");
    }
}
