//! The settings of a connection.

use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use timer_durable::store::{Reader, Store};
use timer_durable::{CancelAnswer, Due, DurableTimer, ResetAnswer, Retry, Schedule, ScheduleAnswer};
use timer_durable_postgres::prelude::*;
use timer_durable_postgres::{ConnectError, PostgresOptions, PostgresStore, tokio_postgres};
use timer_durable_tests::t;

use super::{Database, LEASE, Node};

/// Creates a role that needs a password and may use the schema. Returns the part of its URL before
/// the password, and the part behind it.
fn clerk(database: &Database) -> (String, String) {
    let name = format!("clerk_{}", database.name);
    PostgresStore::install(&database.url()).wait().unwrap();
    database.sql(&format!(
        "create role {name} login password 'first:1'; grant usage on schema timer to {name};
         grant select, insert, update, delete on all tables in schema timer to {name};
         grant usage, select on all sequences in schema timer to {name}"
    ));
    (format!("postgres://{name}"), format!("@127.0.0.1:{}/{}", database.server.port(), database.name))
}

#[test]
fn a_wrong_value_is_refused_with_the_allowed_ones() {
    let url = "postgres://u@127.0.0.1:1/d";
    let mode = PostgresOptions::from_url(&format!("{url}?sslmode=verify")).unwrap_err();
    assert_eq!(
        mode.to_string(),
        "sslmode: verify was given; allowed is disable, prefer, require, verify-ca, verify-full"
    );
    for name in ["", "Billing", "a b", "pg_timer", "1st", &"x".repeat(64)] {
        let error = crate::connected(PostgresOptions::from_url(url).unwrap().schema(name)).unwrap_err();
        assert!(matches!(error, ConnectError::Setting { name: "schema", .. }), "{name}: {error}");
    }
}

#[test]
fn an_unescaped_password_is_in_no_error() {
    for password in ["p@secret", "p/secret", "p?secret=1", "p@/secret"] {
        let error = crate::connected(&format!("postgres://u:{password}@127.0.0.1:1/d")).unwrap_err();
        assert!(matches!(error, ConnectError::Url { .. }), "{error}");
        let texts = format!("{error} {error:?}");
        assert!(!texts.contains("secret") && texts.contains("%40"), "{texts}");
    }
    let options = PostgresOptions::from_url("postgres://u:p%40secret@127.0.0.1:1/d").unwrap();
    assert!(!format!("{options:?}").contains("secret"));
    assert!(matches!(crate::connected(options), Err(ConnectError::Unreachable { .. })));
}

#[test]
fn a_password_may_change() {
    let Some(database) = Database::create() else { return };
    let (user, server) = clerk(&database);
    let password = Arc::new(Mutex::new("first:1".to_owned()));
    let current = password.clone();
    let config: tokio_postgres::Config = format!("{user}{server}").parse().unwrap();
    let options =
        PostgresOptions::from(config).tls(tokio_postgres::NoTls).password(move || Ok(current.lock().unwrap().clone()));
    let mut node = Node(crate::connected(options.clone()).unwrap().lease(LEASE * 60));
    node.0.rejoin().unwrap();
    database.sql(&format!("alter role clerk_{} password 'second'", database.name));
    database.sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()");
    node.0.counts().unwrap_err();
    node.0.rejoin().expect_err("the first password is wrong by now");
    *password.lock().unwrap() = "second".to_owned();
    node.0.rejoin().unwrap();
    let error = crate::connected(options.password(|| Err("the vault is sealed".into()))).unwrap_err();
    assert!(error.to_string().contains("the vault is sealed"), "{error}");
}

#[test]
fn a_file_has_the_password() {
    let Some(database) = Database::create() else { return };
    let (user, server) = clerk(&database);
    let path = database.server.write_file(&database.name, "127.0.0.1:*:*:*:first\\:1\n");
    let url = format!("{user}{server}?passfile={}", path.display().to_string().replace('-', "%2D"));
    crate::connected(&url).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = crate::connected(&url).unwrap_err().to_string();
    assert!(error.contains("mode 644; allowed is 600"), "{error}");
}

#[test]
fn two_services_share_a_database() {
    let Some(database) = Database::create() else { return };
    let mut first = database.join_with(|store| store.lease(LEASE * 3600));
    let options = PostgresOptions::from_url(&database.url()).unwrap().schema("billing");
    assert!(matches!(crate::connected(options.clone()), Err(ConnectError::NotInstalled { .. })));
    PostgresStore::install(options.clone()).wait().unwrap();
    PostgresStore::upgrade(options.clone()).wait().unwrap();
    let mut second = Node(crate::connected(options).unwrap().lease(LEASE * 3600));
    second.0.rejoin().unwrap();
    assert!(second.0.describe().ends_with(".billing"), "{}", second.0.describe());
    for node in [&mut first, &mut second] {
        assert_eq!(node.shards(), 64);
        node.listen();
    }
    database.sql("select billing.schedule('topic', ''::text, '1 hour')");
    second.keep_up_until(|node| node.0.membership().unwrap().foreign == 1);
    assert_eq!((first.pending().len(), second.pending().len()), (0, 1));
}

#[test]
fn calls_in_a_transaction_name_their_schema() {
    let Some(database) = Database::create() else { return };
    let options = PostgresOptions::from_url(&database.url()).unwrap().schema("billing");
    PostgresStore::install(options.clone()).wait().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (client, connection) =
        runtime.block_on(tokio_postgres::connect(&database.url(), tokio_postgres::NoTls)).unwrap();
    runtime.spawn(connection);
    let session = Arc::new((runtime, client));
    let (sender, ended) = channel();
    let ending = session.clone();
    let end = move |due: &Due<String>| {
        let (runtime, client) = &*ending;
        let ended = runtime.block_on(due.in_schema("billing").complete_in(client));
        sender.send(ended.map_err(|error| error.to_string())).map_err(|_| Retry::new("the test is over"))
    };
    let store = PostgresStore::new(options).unwrap().lease(LEASE);
    let timer = DurableTimer::builder().topic(t(), end).open(store).wait().unwrap();
    let (runtime, client) = &*session;
    let topic = t::<String>();
    let hour = Duration::from_secs(3600);
    let schedule = Schedule::after(hour).key("17");
    let created = runtime.block_on(topic.in_schema("billing").schedule_in(client, schedule, "17")).unwrap();
    assert!(matches!(created, ScheduleAnswer::Created(_)), "{created:?}");
    let soon = Duration::from_millis(1);
    let moved = runtime.block_on(topic.in_schema("billing").reset_in(client, "17", soon)).unwrap();
    assert_eq!(moved, ResetAnswer::Reset);
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)).unwrap(), Ok(()));
    let cancelled = runtime.block_on(topic.in_schema("billing").cancel_in(client, "17")).unwrap();
    assert_eq!(cancelled, CancelAnswer::Unknown, "it has ended");
    assert!(runtime.block_on(topic.cancel_in(client, "17")).is_err(), "there is no schema `timer`");
    assert_eq!(timer.counts().wait().unwrap().pending, 0);
    timer.stop(Duration::from_secs(60)).wait().unwrap();
}
