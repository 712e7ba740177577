//! Inserts by key whose timeouts others use at the same moment.

use std::time::{Duration, Instant};

use timer_durable::store::Store;
use timer_durable::transaction::{Insert, Inserted};
use timer_durable::{IfPending, StoreError, TimeoutId};

use super::Database;
use super::locks::Session;

#[test]
fn keyed_calls_of_two_nodes_meet_no_deadlock() {
    let Some(database) = Database::create() else { return };
    let nodes = [database.join(), database.join()];
    let threads = nodes.map(|mut node| {
        std::thread::spawn(move || {
            let is_even = node.0.instance() % 2 == 0;
            for round in 0..40 {
                let due = node.0.now() + 1_000_000_000 - round;
                let mut inserts: Vec<Insert> = (0..60)
                    .map(|n| {
                        let mut insert = Insert::new(TimeoutId::made_by(node.0.instance()), due, "t");
                        (insert.key, insert.if_pending) = (Some(format!("{n:02}")), IfPending::Earlier);
                        insert
                    })
                    .collect();
                if is_even {
                    inserts.reverse();
                }
                loop {
                    match node.write(|batch| batch.inserts.extend(inserts.clone())) {
                        Err(StoreError::Locked(_) | StoreError::Refused(_)) => {}
                        answers => {
                            answers.unwrap();
                            break;
                        }
                    }
                }
            }
            node
        })
    });
    for thread in threads {
        let node = thread.join().unwrap();
        assert!(!node.0.must_rejoin());
    }
}

#[test]
fn many_locked_keys_cost_one_wait() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(Duration::from_secs(30)));
    let due = node.0.now() + 1_000_000_000;
    let insert = |instance, n: usize, due| {
        let mut insert = Insert::new(TimeoutId::made_by(instance), due, "t");
        (insert.key, insert.if_pending) = (Some(format!("{n:02}")), IfPending::Earlier);
        insert
    };
    let instance = node.0.instance();
    node.write(|batch| batch.inserts.extend((0..64).map(|n| insert(instance, n, due)))).unwrap();
    let mut session = Session::begin(&database);
    session.ask("select max(key) from (select key from timer.timeout where key::int % 2 = 0 for update) t");
    let begun = Instant::now();
    let answers = node.write(|batch| batch.inserts.extend((0..64).map(|n| insert(instance, n, due - 1)))).unwrap();
    let took = begun.elapsed();
    let is_right = |(n, answer): (usize, &Inserted)| match answer {
        Inserted::Locked => n % 2 == 0,
        Inserted::Moved(_, moved) => n % 2 == 1 && *moved == due - 1,
        _ => false,
    };
    assert!(answers.inserts.iter().enumerate().all(is_right), "{answers:?}");
    // One statement after the other would wait for 50 ms in each of 63.
    assert!(took < Duration::from_secs(2), "{took:?}");
    session.end("rollback");
}
