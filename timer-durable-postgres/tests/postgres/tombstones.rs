//! The removal of old tombstones, and renewals that the database refuses.

use std::time::Instant;

use timer_durable::StoreError;
use timer_durable::store::Store;

use super::locks::Session;
use super::{Database, LEASE};

/// Inserts tombstones whose time is over.
fn insert(database: &Database, count: u32) {
    database.sql(&format!(
        "insert into timer.timeout(id, due, shard, format, topic, payload, ended)
         select gen_random_uuid(), 0, n % 64, 1, 't', '', n from generate_series(1, {count}) n"
    ));
}

#[test]
fn many_old_tombstones_are_gone_soon_and_visited_once() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 60));
    insert(&database, 20_000);
    // A snapshot keeps the versions of all tombstones that were removed.
    let mut session = Session::begin(&database);
    session.ask("select count(*) from pg_current_xact_id()");
    node.keep_up_until(|_| database.sql("select count(*) from timer.timeout") == "0");
    // A session publishes its counts when it ends.
    drop(node);
    let visits = "from pg_stat_user_indexes where indexrelname = 'timeout_tombstone'";
    database.wait_for(&format!("select idx_tup_read >= 20000 {visits}"), "t");
    let visited: u64 = database.sql(&format!("select idx_tup_read {visits}")).parse().unwrap();
    assert!(visited < 60_000, "{visited} visits of 20,000 tombstones");
    session.end("commit");
}

#[test]
fn a_tombstone_that_cannot_be_removed_costs_no_lease() {
    let Some(database) = Database::create() else { return };
    let mut first = database.join();
    insert(&database, 1);
    database.sql(
        "create table orders(timeout uuid references timer.timeout(id));
         insert into orders select id from timer.timeout",
    );
    let begun = Instant::now();
    first.keep_up_until(|_| begun.elapsed() > 2 * LEASE);
    assert!(first.0.may_begin());
    let mut second = database.join();
    first.keep_up_until(|node| node.shards() == 32);
    second.keep_up_until(|node| node.shards() == 32);
    assert_eq!(database.sql("select count(*) from timer.timeout"), "1");
}

/// The first renewal takes the shards, which a trigger refuses. A lease without them would keep
/// them from others.
#[test]
fn a_node_whose_first_renewal_is_refused_does_not_join() {
    let Some(database) = Database::create() else { return };
    let mut node = crate::connected(&database.url()).unwrap();
    database.sql(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
         create trigger refuse before update on timer.shard for each row execute function refuse()",
    );
    let joined = node.rejoin();
    assert!(matches!(joined, Err(StoreError::Refused(_))), "{joined:?}");
    database.sql("drop trigger refuse on timer.shard");
    node.rejoin().unwrap();
}

/// The renewal gives shards to the second node, which a trigger refuses.
#[test]
fn a_refused_renewal_extends_the_lease() {
    let Some(database) = Database::create() else { return };
    let mut first = database.join();
    database.sql(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
         create trigger refuse before update on timer.shard for each row execute function refuse()",
    );
    let _second = database.join_with(|store| store.lease(LEASE * 60));
    let begun = Instant::now();
    first.keep_up_until(|_| begun.elapsed() > 2 * LEASE);
    assert!(first.0.may_begin());
    assert_eq!(first.shards(), 64);
    database.sql("drop trigger refuse on timer.shard");
    first.keep_up_until(|node| node.shards() == 32);
}
