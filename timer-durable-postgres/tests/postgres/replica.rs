//! A streaming replica, which cannot be written.

use std::time::{Duration, Instant};

use timer_durable::store::{Reader, Store};
use timer_durable_postgres::{ConnectError, PostgresReader, PostgresStore};

use super::Node;
use timer_durable_tests::postgres_server::{Server, Shutdown};

#[test]
fn a_streaming_replica_is_refused() {
    let Some(mut primary) = Server::start_for_tests() else { return };
    let name = primary.create_database();
    let mut replica = primary.start_replica();
    let mut node = Node(crate::connected(&primary.url(&name)).unwrap());
    node.0.rejoin().unwrap();
    node.insert();
    let streamed = "select count(*) from pg_stat_wal_receiver where status = 'streaming'";
    let begun = Instant::now();
    while replica.sql("postgres", streamed) != "1" {
        assert!(begun.elapsed() < Duration::from_secs(30), "the replica streams");
    }
    let error = crate::connected(&replica.url(&name)).expect_err("a replica is read-only");
    assert!(matches!(error, ConnectError::ReadOnly { .. }), "{error}");
    assert!(error.to_string().contains("replica"), "{error}");
    // The client goes to the server that can be written, if the URL names both.
    let both = format!(
        "postgres://timer@127.0.0.1:{},127.0.0.1:{}/{name}?target_session_attrs=read-write",
        replica.port(),
        primary.port()
    );
    assert!(crate::connected(&both).is_ok());
    // A replica that was promoted has the timeout.
    let written = primary.sql("postgres", "select pg_current_wal_lsn()");
    let has_replayed = format!("select pg_last_wal_replay_lsn() >= '{written}'");
    while replica.sql("postgres", &has_replayed) != "t" {
        assert!(begun.elapsed() < Duration::from_secs(30), "the replica catches up");
    }
    assert_eq!(PostgresReader::connect(&replica.url(&name)).unwrap().counts().unwrap().pending, 1);
    primary.stop(Shutdown::Immediate);
    assert_eq!(replica.sql("postgres", "select pg_promote()"), "t");
    let mut promoted = Node(crate::connected(&replica.url(&name)).unwrap().lease(super::LEASE));
    promoted.0.rejoin().unwrap();
    promoted.keep_up_until(|node| node.shards() == 64);
    assert_eq!(promoted.pending().len(), 1);
    replica.stop(Shutdown::Immediate);
}

/// The copies of `meta` and `shard` fail, because the new database has rows of its own in them.
#[test]
fn running_timeouts_go_on_behind_a_logical_replication() {
    let Some(mut server) = Server::start_for_tests() else { return };
    server.configure("wal_level = logical");
    let [old, new] = [(); 2].map(|()| server.create_database());
    let mut node = Node(crate::connected(&server.url(&old)).unwrap());
    // Each start raises the epochs.
    (0..5).for_each(|_| node.0.rejoin().unwrap());
    let running = [(); 3].map(|()| node.insert());
    running.iter().for_each(|id| assert_eq!(node.attempt(*id).attempt, 1));
    drop(node);
    PostgresStore::install(&server.url(&new)).wait().unwrap();
    server.sql(&old, "create publication p for all tables");
    server.sql(&old, "select pg_create_logical_replication_slot('s', 'pgoutput')");
    let source = format!("host=127.0.0.1 port={} user=timer dbname={old}", server.port());
    server.sql(&new, &format!("create subscription s connection '{source}' publication p with (create_slot = false)"));
    let begun = Instant::now();
    while server.sql(&new, "select count(*) from timer.timeout") != "3" {
        assert!(begun.elapsed() < Duration::from_secs(60), "the timeouts are copied");
    }
    server.sql(&new, "alter subscription s disable");
    assert_eq!(server.sql(&new, "select distinct state from timer.pending"), "pending");
    let mut node = Node(crate::connected(&server.url(&new)).unwrap().lease(super::LEASE));
    node.0.rejoin().unwrap();
    node.keep_up_until(|node| node.shards() == 64);
    let mut pending = node.pending();
    pending.sort();
    assert_eq!(pending, running);
    running.iter().for_each(|id| assert_eq!(node.attempt(*id).attempt, 2));
}
