//! A streaming replica, which cannot be written.

use std::time::{Duration, Instant};

use timer_durable::store::{Reader, Store};
use timer_durable_postgres::{ConnectError, PostgresReader};

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
