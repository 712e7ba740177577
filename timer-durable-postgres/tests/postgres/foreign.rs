//! Rows that others have written into the shards of a node.

use std::time::Duration;

use timer_durable::store::Store;

use super::locks::Session;
use super::{Database, LEASE, Node};

fn foreign(node: &Node) -> u64 {
    node.0.membership().unwrap().foreign
}

#[test]
fn a_row_of_a_slow_transaction_is_collected() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    node.listen();
    let mut session = Session::begin(&database);
    session.ask("select length(timer.schedule('t', 'slow'::text, '1 hour')::text)");
    for count in 1..=2 {
        database.sql("select timer.schedule('t', 'fast'::text, '1 hour')");
        node.keep_up_until(|node| foreign(node) == count);
    }
    session.end("commit");
    node.keep_up_until(|node| foreign(node) == 3);
    assert_eq!(node.pending().len(), 3);
}

/// A snapshot keeps the versions of all rows that earlier looks have collected.
#[test]
fn a_look_visits_no_row_of_an_earlier_one() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    node.listen();
    let mut session = Session::begin(&database);
    session.ask("select count(*) from pg_current_xact_id()");
    for look in 1..=25 {
        database.sql("select timer.schedule('t', ''::text, '1 hour') from generate_series(1, 20)");
        node.keep_up_until(|node| foreign(node) == look * 20);
    }
    // A session publishes its counts when it ends.
    drop(node);
    let visits = "from pg_stat_user_indexes where indexrelname = 'timeout_foreign'";
    database.wait_for(&format!("select idx_tup_read >= 500 {visits}"), "t");
    let visited: u64 = database.sql(&format!("select idx_tup_read {visits}")).parse().unwrap();
    assert!(visited < 1_500, "{visited} visits of 500 rows");
    session.end("commit");
}

#[test]
fn an_old_transaction_is_seen() {
    let Some(database) = Database::create() else { return };
    let oldest = |node: Node| node.0.membership().unwrap().oldest_transaction;
    assert_eq!(oldest(database.join()), Duration::ZERO);
    let mut session = Session::begin(&database);
    session.ask("select count(*) from pg_current_xact_id()");
    assert!(oldest(database.join()) > Duration::ZERO);
    session.end("commit");
}
