//! The number of pending timeouts.

use timer_durable::store::Store;

use super::{Database, Node};
use timer_durable_tests::postgres_server::{Server, Shutdown};

#[test]
fn pending_is_counted_or_estimated_at_a_join() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    assert_eq!(node.0.pending(), Some(0));
    (0..5).for_each(|_| _ = node.insert());
    assert_eq!(database.join().0.pending(), Some(5), "a few are counted");
    // Many are estimated, without the dead letters.
    database.sql(
        "insert into timer.timeout(id, due, shard, format, topic, payload, ended, reason)
         select gen_random_uuid(), n, n % 64, 1, 't', '', case when n % 2 = 0 then n end, case when n % 2 = 0 then 'x' end
         from generate_series(1, 60000) n; analyze timer.timeout",
    );
    let estimate = database.join().0.pending().unwrap();
    assert!((28_000..32_000).contains(&estimate), "{estimate}");
}

#[test]
fn pending_is_sampled_without_statistics() {
    let Some(mut server) = Server::start_for_tests() else { return };
    let name = server.create_database();
    let pending = |server: &Server| {
        let mut node = Node(crate::connected(&server.url(&name)).unwrap());
        node.0.rejoin().unwrap();
        node.0.pending().unwrap()
    };
    assert_eq!(pending(&server), 0);
    // The first half of the table has 15,000 pending timeouts among dead letters, and the second
    // one has 60,000 among dead rows.
    server.sql(
        &name,
        "alter table timer.timeout set (autovacuum_enabled = off);
         insert into timer.timeout(id, due, shard, format, topic, payload, ended, reason)
         select gen_random_uuid(), n, n % 64, 1, 't', '', e, 'x' || e
         from generate_series(1, 150000) n, lateral (select case when n <= 75000 and n % 5 > 0 then n end as e) of_row;
         delete from timer.timeout where ended is null and due % 5 = 1",
    );
    server.sql(&name, "vacuum analyze timer.timeout");
    server.stop(Shutdown::Immediate);
    server.launch();
    let after_a_crash = pending(&server);
    // An upgrade of the server keeps no statistics in the catalog either.
    server.sql(&name, "update pg_class set reltuples = -1, relpages = 0 where relname like 'timeout%'");
    for estimate in [after_a_crash, pending(&server)] {
        assert!((71_000..79_000).contains(&estimate), "{estimate} of 75,000");
    }
}
