//! A server whose queue of notifications is full.

use std::process::{Child, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use timer_durable::store::Store;
use timer_durable::{Due, DurableTimer, Retry};
use timer_durable_postgres::PostgresStore;

use super::{Database, LEASE};
use timer_durable_tests::postgres_server::Server;
use timer_durable_tests::t;

const PATIENCE: Duration = Duration::from_secs(30);

/// Fills the queue. A server before version 17 has room for 8 GB, so a function takes the place of
/// `pg_notify`. The function also fails at the commit, with the same code. Returns the session that
/// keeps the queue full.
fn fill(database: &Database) -> Option<Child> {
    if database.sql("select current_setting('server_version_num')::int < 170000") == "t" {
        database.sql(
            "create table public.hint(n int);
             create function public.refuse() returns trigger language plpgsql as $$ begin
                 raise exception 'too many notifications in the NOTIFY queue' using errcode = 'program_limit_exceeded';
             end $$;
             create constraint trigger refuse after insert on public.hint deferrable initially deferred
                 for each row execute function public.refuse();
             alter function pg_catalog.pg_notify(text, text) rename to notify_once_more;
             create function pg_catalog.pg_notify(text, text) returns void language sql as
                 'insert into public.hint values (1)'",
        );
        return None;
    }
    let mut psql = database.server.psql(&database.name);
    psql.args(["-c", "listen idle", "-c", "begin", "-c", "select pg_sleep(600)"]);
    let idle = psql.stdout(Stdio::null()).spawn().unwrap();
    database.wait_for("select count(*) from pg_stat_activity where query = 'select pg_sleep(600)'", "1");
    let mut psql = database.server.psql(&database.name);
    psql.args(["-c", "select pg_notify('idle', repeat('x', 7900) || n) from generate_series(1, 40) n"]);
    while psql.output().unwrap().status.success() {}
    // Not even a short one has room.
    let mut psql = database.server.psql(&database.name);
    psql.args(["-c", "notify idle"]);
    while psql.output().unwrap().status.success() {}
    Some(idle)
}

#[test]
fn a_full_queue_of_notifications_delays_nothing_by_more_than_a_look() {
    let Some(mut server) = Server::start_for_tests() else { return };
    if server.sql("postgres", "select current_setting('server_version_num')::int >= 170000") == "t" {
        server.configure("max_notify_queue_pages = 64");
    }
    let server = Arc::new(server);
    let name = "shop".to_owned();
    server.sql("postgres", "create database shop");
    let database = Database { server, name };
    let (sender, fired) = mpsc::channel();
    let open = || {
        let sender = sender.clone();
        let handler = move |due: &Due<String>| sender.send(due.payload().clone()).map_err(Retry::new);
        // With a lease this long, no renewal is due in this test.
        let store = PostgresStore::new(&database.url()).unwrap().lease(LEASE * 300);
        DurableTimer::builder().topic(t(), handler).open(store).wait().unwrap()
    };
    let first = open();
    let idle = fill(&database);
    database.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name = 'timer-durable'",
    );
    let second = open();
    let shards = |timer: &DurableTimer| timer.stats().membership.unwrap().shards;
    let begun = Instant::now();
    while [&first, &second].iter().any(|timer| shards(timer) != 32) {
        assert!(begun.elapsed() < PATIENCE, "{} and {} shards", shards(&first), shards(&second));
        std::thread::park_timeout(Duration::from_millis(20));
    }
    for n in 0..20 {
        first.new_timeout(t(), Duration::from_millis(n), &format!("{n}")).wait().unwrap();
        second.new_timeout(t(), Duration::from_millis(n), &format!("{}", n + 20)).wait().unwrap();
    }
    let mut ran: Vec<u32> = (0..40).map(|_| fired.recv_timeout(PATIENCE).unwrap().parse().unwrap()).collect();
    ran.sort_unstable();
    assert_eq!(ran, (0..40).collect::<Vec<_>>());
    let schedule = "select timer.schedule('t', 'of a user'::text, '0')";
    let refused = database.server.psql(&database.name).args(["-c", schedule]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("too many notifications"), "{refused:?}");
    database.sql(&format!("set timer_durable.notify = off; {schedule}"));
    assert_eq!(fired.recv_timeout(PATIENCE).unwrap(), "of a user");
    first.pause(t::<String>()).wait().unwrap();
    second.resume(t::<String>()).wait().unwrap();
    for timer in [first, second] {
        assert!(timer.stop(PATIENCE).wait().unwrap().released);
    }
    if let Some(mut idle) = idle {
        idle.kill().unwrap();
        idle.wait().unwrap();
    }
}

#[test]
fn a_lost_notification_delays_its_change_until_the_next_look() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    node.listen();
    database.sql(
        "set timer_durable.notify = off;
         select timer.schedule('topic', ''::text, '1 hour');
         insert into timer.node(id, lease_until) values (4294967294, timer.now() + 3600000000)",
    );
    node.keep_up_until(|node| node.0.membership().unwrap().foreign == 1);
    node.keep_up_until(|node| node.shards() == 32);
    // A renewal tells of a pause.
    let mut node = database.join();
    node.listen();
    database.sql("set timer_durable.notify = off; select timer.pause('topic')");
    let begun = Instant::now();
    while !node.0.upkeep(&[]).unwrap().pauses_changed {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::park_timeout(Duration::from_millis(20));
    }
}
