//! Limits of the server, which a role or a database may set.

use std::thread;
use std::time::Duration;

use timer_durable::store::{Reader, Store};
use timer_durable::transaction::{Insert, Operation};

use super::pooler::Pooler;
use super::{Database, LEASE, join};

#[test]
fn a_limit_of_idle_sessions_does_not_hold_for_the_store() {
    let Some(database) = Database::create() else { return };
    database.sql(&format!("alter database {} set idle_session_timeout = 200", database.name));
    let store = crate::connected(&database.url()).unwrap();
    thread::park_timeout(Duration::from_millis(600));
    let mut node = super::Node(store.lease(LEASE * 3600));
    node.0.rejoin().unwrap();
    node.listen();
    let sessions = "select string_agg(pid::text, ' ' order by pid) from pg_stat_activity
        where datname = current_database() and application_name = 'timer-durable'";
    let before = database.sql(sessions);
    thread::park_timeout(Duration::from_millis(600));
    assert_eq!(database.sql(sessions), before, "both sessions live on");
    node.insert();
}

#[test]
fn a_limit_of_transactions_does_not_hold_for_the_store() {
    let Some(database) = Database::create() else { return };
    if database.sql("select current_setting('server_version_num')::int < 170000") == "t" {
        eprintln!("the server has no transaction_timeout, which needs version 17; the test is skipped");
        return;
    }
    drop(database.join());
    database.sql(&format!("alter database {} set transaction_timeout = '300ms'", database.name));
    database.sql(
        "create function slow() returns trigger language plpgsql as
             'begin perform pg_sleep(0.6); return new; end';
         create trigger slow before insert on timer.timeout for each row execute function slow()",
    );
    let pooler = Pooler::start(&database, 2);
    for url in [database.url(), pooler.url()] {
        let mut node = join(&url, |store| store.lease(LEASE * 2));
        node.insert();
        let id = timer_durable::TimeoutId::made_by(node.0.instance());
        let all = [Operation::Insert(Insert::new(id, node.0.now(), "t"))];
        node.0.write_all(&all).unwrap();
        node.0.counts().unwrap();
        assert_eq!(node.0.membership().unwrap().reconnects, 0);
    }
}
