//! Servers that cannot be used, go away or hang.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use timer_durable::store::{Reader, Store};
use timer_durable::transaction::{Insert, Operation};
use timer_durable::{Due, DurableTimer, Error, Filter, Schedule, StoreError, TimeoutState};
use timer_durable_postgres::{ConnectError, PostgresReader, PostgresStore};

use super::{Database, LEASE};
use timer_durable_tests::postgres_server::{Server, Shutdown};
use timer_durable_tests::t;

fn refused(url: &str) -> ConnectError {
    crate::connected(url).expect_err("the store cannot be used")
}

#[test]
fn a_url_of_another_kind_is_refused() {
    for url in ["mysql://localhost/d", "postgres://u@host:port/d", "nonsense"] {
        let error = refused(url);
        assert!(matches!(error, ConnectError::Url { .. }), "{url}: {error}");
        assert!(error.to_string().contains("postgres://USER@HOST:PORT/DATABASE"), "{error}");
    }
}

#[test]
fn an_absent_server_is_named() {
    let error = refused("postgres://user:secret@127.0.0.1:1/shop");
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("127.0.0.1:1/shop"), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn an_absent_server_is_reported_inside_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = runtime.block_on(async { refused("postgres://user@127.0.0.1:1/shop") });
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
}

#[test]
fn a_refusal_of_the_server_is_passed_on() {
    let Some(database) = Database::create() else { return };
    let error = refused(&database.server.url("absent"));
    assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("database \"absent\" does not exist"), "{error}");
    database.sql("create role clerk login password 'right'");
    let url = format!("postgres://clerk:wrong@127.0.0.1:{}/{}", database.server.port(), database.name);
    let error = refused(&url);
    assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("password authentication failed"), "{error}");
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let Some(database) = Database::create() else { return };
    database.sql("create table orders(number int)");
    let error = refused(&database.url());
    assert!(matches!(error, ConnectError::NotInstalled { .. }), "{error}");
    PostgresStore::install(&database.url()).wait().unwrap();
    PostgresStore::install(&database.url()).wait().unwrap();
    crate::connected(&database.url()).unwrap();
}

#[test]
fn the_printed_script_installs_the_schema() {
    let Some(database) = Database::create() else { return };
    database.sql("create table orders(number int)");
    database.sql(PostgresStore::schema());
    crate::connected(&database.url()).unwrap();
}

#[test]
fn a_missing_right_is_named() {
    let Some(database) = Database::create() else { return };
    database.join();
    database.sql("create role reader login password 'right'; grant usage on schema timer to reader");
    database.sql("grant select on all tables in schema timer to reader");
    let url = format!("postgres://reader:right@127.0.0.1:{}/{}", database.server.port(), database.name);
    let error = refused(&url);
    assert!(matches!(error, ConnectError::MissingRights { .. }), "{error}");
    let running = Filter::new().state(TimeoutState::Running);
    assert_eq!(PostgresReader::connect(&url).unwrap().list(&running, None, 9).unwrap(), []);
    database.sql(
        "grant select, insert, update, delete on all tables in schema timer to reader;
         grant select on all sequences in schema timer to reader",
    );
    let error = refused(&url);
    assert!(matches!(error, ConnectError::MissingRights { .. }), "{error}");
    assert!(error.to_string().contains("sequence instance"), "{error}");
    database.sql("grant usage on all sequences in schema timer to reader");
    crate::connected(&url).unwrap().rejoin().unwrap();
}

/// Returns a block of SQL of the book with another name of the role.
fn rights(block: usize, role: &str) -> String {
    let chapter = include_str!("../../src/book/operating.md");
    let block = chapter.split("```").filter_map(|block| block.strip_prefix("sql")).nth(block).unwrap();
    block.replace("to shop;", &format!("to {role};")).replace("to clerk;", &format!("to {role};"))
}

#[test]
fn the_rights_of_the_book_are_enough() {
    let Some(database) = Database::create() else { return };
    let shop = format!("shop_{}", database.name);
    let clerk = format!("clerk_{}", database.name);
    database.join().0.leave().unwrap();
    database.sql(&format!(
        "revoke execute on all functions in schema timer from public;
         create role {shop} login password 'right'; create role {clerk}"
    ));
    let url = format!("postgres://{shop}:right@127.0.0.1:{}/{}", database.server.port(), database.name);
    assert!(matches!(refused(&url), ConnectError::MissingRights { .. }));
    database.sql(&rights(0, &shop));
    let mut node = super::Node(crate::connected(&url).unwrap().lease(LEASE));
    node.0.rejoin().unwrap();
    let id = node.insert();
    node.attempt(id);
    node.0.upkeep(&[id]).unwrap();
    database.sql(&format!("{}; create table timer.later()", rights(1, &shop)));
    assert_eq!(database.sql(&format!("select has_table_privilege('{shop}', 'timer.later', 'insert')")), "t");
    database.sql(&rights(2, &clerk));
    let schedule = "select timer.schedule('topic', ''::text, '1 hour', 'key', 'replace')";
    let calls =
        format!("{schedule}; {schedule}; select timer.cancel('topic', 'key'); select timer.complete('{id}', 1)");
    database.sql(&format!("set role {clerk}; {calls}"));
    assert_eq!(database.sql("select count(*) from timer.timeout where ended is null"), "0");
}

#[test]
fn a_read_only_database_is_refused() {
    let Some(database) = Database::create() else { return };
    database.join();
    database.sql(&format!("alter database {} set default_transaction_read_only = on", database.name));
    let error = refused(&database.url());
    assert!(matches!(error, ConnectError::ReadOnly { .. }), "{error}");
}

#[test]
fn a_server_that_hangs_becomes_an_error() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    node.insert();
    database.server.signal("-STOP", &database.name);
    let begun = Instant::now();
    let error = node.begin(timer_durable::TimeoutId::new()).unwrap_err();
    let took = begun.elapsed();
    database.server.signal("-CONT", &database.name);
    assert!(matches!(&error, StoreError::InDoubt(why) if why.contains("has not answered for")), "{error}");
    // The client gives up after 0.6 of the lease. A busy machine may need longer.
    assert!(took < 2 * LEASE, "{took:?}, and the lease is {LEASE:?}");
    node.0.rejoin().unwrap();
    assert_eq!(node.pending().len(), 1);
}

#[test]
fn a_lost_connection_leaves_the_outcome_open() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let id = node.insert();
    let before = node.0.instance();
    node.attempt(id);
    let terminate = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    database.sql(terminate);
    let error = node.begin(id).unwrap_err();
    assert!(matches!(error, StoreError::InDoubt(_)), "{error}");
    assert!(node.0.must_rejoin());
    assert!(matches!(node.begin(id), Err(StoreError::Disconnected(_))), "nothing is sent until it has joined again");
    node.0.rejoin().unwrap();
    assert_ne!(node.0.instance(), before);
    assert_eq!((node.shards(), node.attempt(id).attempt), (64, 2));
    assert_eq!(node.0.membership().unwrap().reconnects, 1);
}

#[test]
fn a_slow_statement_is_given_up_by_the_server() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    database.sql(
        "create function slow() returns trigger language plpgsql as $$
         begin if new.topic = 'slow' then perform pg_sleep(30); end if; return new; end $$;
         create trigger slow before insert on timer.timeout for each row execute function slow()",
    );
    // The client gives up a tenth of a lease after the server, so a busy machine has five attempts.
    let is_in_doubt = |node: &mut super::Node| {
        let slow = Insert::new(timer_durable::TimeoutId::made_by(node.0.instance()), node.0.now(), "slow");
        let error = node.write([Operation::Insert(slow)]).unwrap_err();
        if matches!(error, StoreError::InDoubt(_)) {
            node.0.rejoin().unwrap();
            return true;
        }
        assert!(matches!(&error, StoreError::Failed(why) if why.contains("57014")), "nothing is in doubt: {error}");
        false
    };
    assert!((0..5).any(|_| !is_in_doubt(&mut node)));
    assert!(!node.0.must_rejoin());
    let id = node.insert();
    assert_eq!(node.attempt(id).attempt, 1, "the connection goes on");
}

#[test]
fn a_read_leaves_nothing_in_doubt() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    database.sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()");
    assert!(matches!(node.0.counts(), Err(StoreError::Failed(_))));
    assert!(node.0.must_rejoin(), "the keeper learns of it before the next batch");
    assert!(matches!(node.0.counts(), Err(StoreError::Disconnected(_))));
    node.0.rejoin().unwrap();
    assert_eq!(node.0.counts().unwrap().pending, 0);
}

#[test]
fn a_stop_keeps_its_limit_while_the_server_hangs() {
    let Some(database) = Database::create() else { return };
    // With the lease of 15 s, a statement may take 7.5 s.
    let store = PostgresStore::new(&database.url()).unwrap();
    let timer = DurableTimer::builder().topic(t(), |_: &Due<String>| Ok(())).open(store).wait().unwrap();
    timer.counts().wait().unwrap();
    database.server.signal("-STOP", &database.name);
    let call = timer.new_timeout(t(), Duration::from_secs(60), &"a".to_owned());
    let begun = Instant::now();
    let report = timer.stop(Duration::from_millis(100)).wait().unwrap();
    let took = begun.elapsed();
    database.server.signal("-CONT", &database.name);
    assert!(!report.released && took < Duration::from_secs(3), "{report:?} after {took:?}");
    let _answered = call.wait();
}

#[test]
fn restarts_of_the_server_are_survived() {
    let Some(mut server) = Server::start_for_tests() else { return };
    let name = server.create_database();
    let mut store = crate::connected(&server.url(&name)).unwrap();
    store.rejoin().unwrap();
    for how in [Shutdown::Fast, Shutdown::Immediate] {
        let mut node = super::Node(store);
        let id = node.insert();
        server.stop(how);
        assert!(matches!(node.begin(id), Err(StoreError::InDoubt(_))));
        assert!(matches!(node.0.rejoin(), Err(StoreError::Failed(_))), "the server is away");
        server.launch();
        let begun = Instant::now();
        while let Err(error) = node.0.rejoin() {
            assert!(begun.elapsed() < Duration::from_secs(30), "{error}");
        }
        assert!(node.pending().contains(&id), "{how:?}");
        store = node.0;
    }
}

#[test]
fn calls_wait_for_a_server_that_restarts() {
    let Some(mut server) = Server::start_for_tests() else { return };
    let store = PostgresStore::new(&server.url(&server.create_database())).unwrap().lease(LEASE);
    let timer = DurableTimer::builder().topic(t(), |_: &Due<String>| Ok(())).open(store).wait().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let calls = std::iter::from_fn(|| {
                let call = || timer.new_timeout(t(), Duration::from_secs(600), &String::new());
                (!is_over.load(Ordering::Relaxed)).then(call)
            });
            calls.filter_map(|call| call.wait().err()).collect::<Vec<Error>>()
        });
        for how in [Shutdown::Fast, Shutdown::Immediate] {
            server.stop(how);
            server.launch();
            let _after_joining = timer.new_timeout(t(), Duration::ZERO, &String::new()).wait();
        }
        is_over.store(true, Ordering::Relaxed);
        let errors = caller.join().unwrap();
        assert!(
            errors.len() <= 4 && errors.iter().all(|error| matches!(error, Error::OutcomeUnknown { .. })),
            "{errors:?}"
        );
    });
}

#[test]
fn calls_behind_the_one_that_loses_the_connection_wait() {
    let Some(database) = Database::create() else { return };
    let store = PostgresStore::new(&database.url()).unwrap();
    let timer = DurableTimer::builder().topic(t(), |_: &Due<String>| Ok(())).open(store).wait().unwrap();
    database.sql(
        "create function public.leave() returns trigger language plpgsql as
             'begin perform pg_terminate_backend(pg_backend_pid()); return new; end';
         create trigger leave before insert on timer.paused for each row execute function public.leave()",
    );
    timer.counts().wait().unwrap();
    // The next turn has all calls but the first one.
    database.server.signal("-STOP", &database.name);
    let first = timer.new_timeout(t(), Duration::from_secs(600), &String::new());
    thread::park_timeout(Duration::from_millis(300));
    let pause = timer.pause(t::<String>());
    let many = timer.schedule_many([t().with(Schedule::after(Duration::from_secs(600)), &String::new())]);
    let last = timer.new_timeout(t(), Duration::from_secs(600), &String::new());
    database.server.signal("-CONT", &database.name);
    first.wait().unwrap();
    let pause = pause.wait();
    assert!(matches!(pause, Err(Error::OutcomeUnknown { .. })), "{pause:?}");
    many.wait().unwrap();
    last.wait().unwrap();
}

#[test]
fn a_stop_tells_that_the_shards_were_not_handed_back() {
    let Some(database) = Database::create() else { return };
    let open = || {
        let store = PostgresStore::new(&database.url()).unwrap();
        DurableTimer::builder().topic(t(), |_: &Due<String>| Ok(())).open(store).wait().unwrap()
    };
    assert!(open().stop(Duration::from_secs(30)).wait().unwrap().released);
    let timer = open();
    database.sql("drop function timer.leave");
    assert!(!timer.stop(Duration::from_secs(30)).wait().unwrap().released);
}

#[test]
fn an_impossible_topic_has_no_dead_letters() {
    let Some(database) = Database::create() else { return };
    let store = PostgresStore::new(&database.url()).unwrap();
    let timer = DurableTimer::builder().topic(t(), |_: &Due<String>| Ok(())).open(store).wait().unwrap();
    assert_eq!(timer.dead_letters(Some("a\0"), None, 9).wait().unwrap(), []);
}

/// Forwards connections to a server. As soon as `frozen` is set it reads no more answers, like a
/// process that is stopped, and keeps the connections open until the sender is dropped.
fn freezing_proxy(server: u16, frozen: Arc<AtomicBool>, end: mpsc::Receiver<()>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let end = Arc::new(Mutex::new(end));
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut server = TcpStream::connect(("127.0.0.1", server)).unwrap();
            let mut requests = client.try_clone().unwrap();
            let mut questions = server.try_clone().unwrap();
            thread::spawn(move || io::copy(&mut requests, &mut questions));
            let frozen = frozen.clone();
            let end = end.clone();
            thread::spawn(move || {
                let mut bytes = [0; 4_096];
                while !frozen.load(Ordering::Relaxed) {
                    match server.read(&mut bytes) {
                        Ok(1..) if frozen.load(Ordering::Relaxed) => break,
                        Ok(length @ 1..) => client.write_all(&bytes[..length]).unwrap_or_default(),
                        _ => return,
                    }
                }
                let _ended = end.lock().unwrap().recv();
            });
        }
    });
    port
}

#[test]
fn a_node_that_freezes_before_a_long_answer_is_taken_over() {
    let Some(database) = Database::create() else { return };
    let frozen = Arc::<AtomicBool>::default();
    let (_unfreeze, end) = mpsc::channel();
    let port = freezing_proxy(database.server.port(), frozen.clone(), end);
    let mut node = super::join(&format!("postgres://timer@127.0.0.1:{port}/{}", database.name), |store| store);
    // An answer of 64 MiB exceeds the buffers of both sockets.
    let ids: Vec<_> = (0..64)
        .map(|_| {
            let due = node.0.now() - 1_000_000;
            let mut insert = Insert::new(timer_durable::TimeoutId::made_by(node.0.instance()), due, "t");
            insert.payload = vec![0; 1 << 20];
            let id = insert.id;
            node.write([Operation::Insert(insert)]).unwrap();
            id
        })
        .collect();
    node.begin(ids[0]).expect("a begin, which prepares the statement");
    frozen.store(true, Ordering::Relaxed);
    let error = node.write(ids.into_iter().map(Operation::Begin)).unwrap_err();
    assert!(matches!(error, StoreError::InDoubt(_)), "{error}");
    let mut heir = database.join();
    heir.keep_up_until(|heir| heir.shards() == 64);
    assert_eq!(heir.pending().len(), 64);
}
