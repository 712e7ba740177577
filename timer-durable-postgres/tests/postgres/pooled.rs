//! The store behind a pooler in transaction mode, which gives each transaction another session.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use timer_durable::store::Store;
use timer_durable::transaction::{Operation, Outcome};
use timer_durable::{CancelAnswer, Due, DurableTimer, ResetAnswer, Retry, Schedule, StoreError, Topic};
use timer_durable_postgres::PostgresStore;

use super::locks::{self, Session};
use super::pooler::Pooler;
use super::{Database, LEASE, Node, join};

const PATIENCE: Duration = Duration::from_secs(30);

/// The time between two looks for the timeouts of other writers.
const LOOK: Duration = Duration::from_secs(1);

pub(super) fn is_pooled(store: &PostgresStore) -> bool {
    format!("{store:?}").contains("is_pooled: true")
}

/// Connects a store through the pooler, and joins.
fn join_pooled(pooler: &Pooler, lease: Duration) -> Node {
    let node = join(&pooler.url(), |store| store.lease(lease));
    assert!(is_pooled(&node.0));
    node
}

/// Waits until the pooler has this number of clients.
fn wait_for_clients(pooler: &Pooler, count: usize) {
    let begun = Instant::now();
    while pooler.clients() != count {
        assert!(begun.elapsed() < PATIENCE, "{} clients instead of {count}", pooler.clients());
        thread::park_timeout(Duration::from_millis(1));
    }
}

#[test]
fn a_pooler_in_transaction_mode_is_found() {
    let Some(database) = Database::create() else { return };
    // With two sessions that take turns, the first connection gets its own session again.
    for sessions in 1..=3 {
        let pooler = Pooler::start(&database, sessions);
        let _node = join_pooled(&pooler, LEASE);
        wait_for_clients(&pooler, 1);
    }
    let pooler = Pooler::start(&database, 3);
    pooler.keep_sessions(true);
    assert!(!is_pooled(&join(&pooler.url(), |store| store).0), "in session mode nothing is lost");
    assert!(!is_pooled(&database.join().0));
}

#[test]
fn a_pooler_that_changes_its_mode_is_found_by_a_renewal() {
    let Some(database) = Database::create() else { return };
    for is_late in [false, true] {
        let pooler = Pooler::start(&database, 3);
        pooler.keep_sessions(true);
        let mut store = crate::connected(&pooler.url()).unwrap().lease(LEASE);
        assert!(!is_pooled(&store));
        // Statements that are prepared from here on are known in all sessions.
        wait_for_clients(&pooler, 1);
        if is_late {
            store.rejoin().unwrap();
            wait_for_clients(&pooler, 2);
        }
        pooler.keep_sessions(false);
        if !is_late {
            store.rejoin().unwrap();
        }
        let mut node = Node(store);
        let begun = Instant::now();
        while !is_pooled(&node.0) {
            assert!(begun.elapsed() < PATIENCE, "a renewal finds the pooler");
            if let Err(error) = node.0.upkeep(&[]) {
                assert!(matches!(error, StoreError::InDoubt(_)), "{error}");
                assert!(node.0.must_rejoin());
                node.0.rejoin().unwrap();
            }
        }
        wait_for_clients(&pooler, 1);
        database.sql("select timer.schedule('topic', ''::text, '1 hour')");
        node.keep_up_until(|node| node.0.membership().unwrap().foreign > 0);
        node.0.leave().unwrap();
    }
}

/// Three timers have two sessions.
#[test]
fn timers_share_the_sessions_of_a_pooler() {
    let Some(database) = Database::create() else { return };
    PostgresStore::install(&database.url()).wait().unwrap();
    let pooler = Pooler::start(&database, 2);
    let check = || assert!(pooler.clients() <= 3, "a timer has one connection");
    share_sessions(&database, &pooler.url(), check);
}

/// Lets three timers run each timeout once behind a pooler. Calls `check` while they are open.
pub(super) fn share_sessions(database: &Database, url: &str, check: impl FnOnce()) {
    let (sender, fired) = mpsc::channel();
    let timers = [(); 3].map(|()| {
        let record = sender.clone();
        let topic = move |due: &Due<String>| record.send((due.payload().clone(), due.attempt())).map_err(Retry::new);
        let store = crate::connected(url).unwrap().lease(LEASE * 5);
        assert!(is_pooled(&store));
        DurableTimer::builder().topic(Topic::new("topic"), topic).open(store).wait().unwrap()
    });
    let soon = Duration::from_millis(20);
    let hour = Duration::from_secs(3600);
    let schedule = |timer: &DurableTimer, name: &str| {
        for n in 0..25 {
            let key = format!("{name}-{n}");
            let topic = Topic::new("topic");
            let delay = if n % 5 < 3 { soon } else { hour };
            timer.schedule(topic, Schedule::after(delay).key(&key), &key).wait().unwrap();
            match n % 5 {
                3 => assert_eq!(timer.cancel(topic, &key).wait().unwrap(), CancelAnswer::Cancelled),
                4 => assert_eq!(timer.reset(topic, &key, soon).wait().unwrap(), ResetAnswer::Reset),
                _ => {}
            }
        }
    };
    thread::scope(|scope| {
        for (t, timer) in timers.iter().enumerate() {
            for half in ["a", "b"] {
                scope.spawn(move || schedule(timer, &format!("{t}{half}")));
            }
        }
    });
    let mut seen: Vec<(String, u32)> = (0..120).map(|_| fired.recv_timeout(PATIENCE).unwrap()).collect();
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() == 120 && seen.iter().all(|(_, attempt)| *attempt == 1), "{seen:?}");
    check();
    for timer in timers {
        assert_eq!((timer.stats().store_errors, timer.stats().rejoins), (0, 0));
        assert_eq!(timer.stop(PATIENCE).wait().unwrap().unfinished, 0);
    }
    assert!(fired.try_recv().is_err(), "nothing runs twice");
    let left = "select count(*) from timer.timeout where ended is null";
    assert_eq!(database.sql(left), "0");
}

#[test]
fn a_foreign_timeout_behind_a_pooler_is_found_by_a_look() {
    let Some(database) = Database::create() else { return };
    let pooler = Pooler::start(&database, 2);
    // With a lease this long, only the look can be the reason.
    let mut node = join_pooled(&pooler, LEASE * 3600);
    let begun = Instant::now();
    database.sql("select timer.schedule('topic', ''::text, '0')");
    node.keep_up_until(|node| node.0.membership().unwrap().foreign == 1);
    let mut other = join_pooled(&pooler, LEASE * 3600);
    assert_eq!(other.shards(), 0, "the first node has given none yet");
    let ids: Vec<_> = (0..3).map(|_| other.insert()).collect();
    node.keep_up_until(|node| node.0.membership().unwrap().foreign == 4);
    assert!(ids.iter().all(|id| node.attempt(*id).attempt == 1));
    assert!(begun.elapsed() < 2 * LOOK + Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn a_locked_row_behind_a_pooler_delays_its_timeout_only() {
    let Some(database) = Database::create() else { return };
    let pooler = Pooler::start(&database, 2);
    locks::lock_a_row(&database, &pooler.url(), "rollback");
    // The two sessions take turns.
    let settings = "select current_setting('lock_timeout'), current_setting('statement_timeout')";
    let mut psql = database.server.psql(&database.name);
    let output = psql.args(["-d", &pooler.url(), "-c", settings, "-c", settings]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0|0\n0|0\n", "{output:?}");
}

#[test]
fn a_locked_row_does_not_cost_the_lease() {
    let Some(database) = Database::create() else { return };
    let pooler = Pooler::start(&database, 2);
    for url in [database.url(), pooler.url()] {
        let mut first = join(&url, |store| store);
        let ids: Vec<_> = (0..64).map(|_| first.insert()).collect();
        ids.iter().for_each(|id| assert_eq!(first.attempt(*id).attempt, 1));
        let mut session = Session::begin(&database);
        session.ask("select count(*) from (select from timer.timeout for update) t");
        // The first node has to give away shards with attempts that are locked.
        let mut second = join(&url, |store| store.lease(LEASE * 60));
        let begun = Instant::now();
        while begun.elapsed() < 2 * LEASE {
            first.0.upkeep(&ids).unwrap();
            assert!(first.0.may_begin(), "the lease is renewed without the rest");
        }
        assert_eq!((first.shards(), second.shards()), (64, 0));
        session.end("rollback");
        let begun = Instant::now();
        while first.shards() > 32 {
            assert!(begun.elapsed() < PATIENCE, "the shards are given away when the lock has ended");
            first.0.upkeep(&ids).unwrap();
        }
        let done = |id| Operation::Done { id, attempt: 1, next: None, then: Vec::new() };
        let ended: Vec<_> = ids.iter().copied().map(Outcome::Changed).collect();
        assert_eq!(first.write(ids.iter().copied().map(done)).unwrap(), ended);
        first.0.leave().unwrap();
        second.0.leave().unwrap();
    }
}

#[test]
fn a_serializable_database_is_used_with_read_committed() {
    let Some(database) = Database::create() else { return };
    database.join().0.leave().unwrap();
    database.sql(&format!("alter database {} set default_transaction_isolation = 'serializable'", database.name));
    let pooler = Pooler::start(&database, 2);
    for url in [database.url(), pooler.url()] {
        let mut node = join(&url, |store| store);
        database.sql(
            "create or replace function isolation() returns trigger language plpgsql as $$ begin
                 if current_setting('transaction_isolation') <> 'read committed' then raise exception 'no'; end if;
                 return new;
             end $$;
             create or replace trigger isolation before insert or update on timer.timeout
             for each row execute function isolation()",
        );
        let id = node.insert();
        assert_eq!(node.attempt(id).attempt, 1);
        node.0.leave().unwrap();
    }
}

/// A look each second and a renewal for each third of the lease, 15 s by default, are 72
/// transactions a minute. A count of the pending timeouts is one more.
#[test]
fn an_idle_node_behind_a_pooler_looks_once_a_second() {
    let Some(database) = Database::create() else { return };
    let pooler = Pooler::start(&database, 2);
    let lease = LEASE * 3 / 2;
    let mut node = join_pooled(&pooler, lease);
    // The first look of a node also looks for queued calls without an attempt.
    node.0.upkeep(&[]).unwrap();
    let begun = Instant::now();
    let before = pooler.transactions();
    node.keep_up_until(|_| pooler.transactions() - before >= 6);
    let took = begun.elapsed().as_secs_f64();
    let count = pooler.transactions() - before;
    let most = (took / LOOK.as_secs_f64() + 1.0) + (3.0 * took / lease.as_secs_f64() + 1.0);
    assert!(count <= most as usize, "{count} transactions in {took} s, at most {most}");
}
