//! Inserts by key whose timeouts others use at the same moment.

use std::time::{Duration, Instant};

use timer_durable::store::{Micros, Store};
use timer_durable::transaction::{Insert, Operation, Outcome};
use timer_durable::{IfPending, StoreError, TimeoutId};

use super::Database;
use super::locks::Session;

/// Returns an insert that moves the timeout with its key to an earlier time.
fn keyed(instance: u32, key: String, due: Micros) -> Insert {
    let mut insert = Insert::new(TimeoutId::made_by(instance), due, "t");
    insert.key = Some(key);
    insert.if_pending = IfPending::Earlier;
    insert
}

/// The nodes move the same timeouts in opposite orders. A trigger delays each after its first one,
/// so that they meet, and the server looks for a deadlock before a statement reaches its limit.
#[test]
fn keyed_calls_of_two_nodes_meet_no_deadlock() {
    let Some(database) = Database::create() else { return };
    database.join().0.leave().unwrap();
    database.sql(&format!("alter database {} set deadlock_timeout = '1ms'", database.name));
    database.sql(
        "create function pause() returns trigger language plpgsql as $$
         begin if new.key in ('00', '59') then perform pg_sleep(0.01); end if; return new; end $$;
         create trigger pause before update on timer.timeout for each row execute function pause()",
    );
    let nodes = [(); 2].map(|()| database.join_with(|store| store.lease(Duration::from_secs(60))));
    let latest = nodes[0].0.now() + 1_000_000_000;
    let threads = nodes.into_iter().enumerate().map(|(number, mut node)| {
        std::thread::spawn(move || {
            for round in 0..20 {
                let due = latest - 2 * round - number as Micros;
                let mut inserts: Vec<Insert> =
                    (0..60).map(|n| keyed(node.0.instance(), format!("{n:02}"), due)).collect();
                if number == 1 {
                    inserts.reverse();
                }
                loop {
                    match node.write(inserts.clone().into_iter().map(Operation::Insert)) {
                        Ok(outcomes) if outcomes.contains(&Outcome::Locked) => {}
                        Ok(_) => break,
                        Err(error) => assert!(matches!(error, StoreError::Refused(_)), "{error}"),
                    }
                }
            }
            assert!(!node.0.must_rejoin());
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    // A session publishes its counts at the latest when it ends.
    let others = "select count(*) from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()";
    database.wait_for(others, "0");
    assert_eq!(database.sql("select deadlocks from pg_stat_database where datname = current_database()"), "0");
}

#[test]
fn many_locked_keys_cost_one_wait() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(Duration::from_secs(30)));
    let instance = node.0.instance();
    let due = node.0.now() + 1_000_000_000;
    let inserts = |due| (0..64).map(move |n| keyed(instance, format!("{n:02}"), due));
    node.write(inserts(due).map(Operation::Insert)).unwrap();
    let mut session = Session::begin(&database);
    session.ask("select max(key) from (select key from timer.timeout where key::int % 2 = 0 for update) t");
    let begun = Instant::now();
    let answers = node.write(inserts(due - 1).map(Operation::Insert)).unwrap();
    let took = begun.elapsed();
    let is_right = |(n, answer): (usize, &Outcome)| match answer {
        Outcome::Locked => n % 2 == 0,
        Outcome::Moved(_, moved) => n % 2 == 1 && *moved == due - 1,
        _ => false,
    };
    assert!(answers.iter().enumerate().all(is_right), "{answers:?}");
    // Dividing would take at least 63 statements of 50 ms.
    assert!(took < Duration::from_secs(3), "{took:?}");
    session.end("rollback");
}

#[test]
fn a_table_that_is_locked_after_a_commit_locks_the_inserts_that_are_left() {
    // `share` excludes only writes. `access exclusive` also excludes the look for locked rows. The
    // writer looks only if there is time, so this mode is tried twice.
    for mode in ["access exclusive", "access exclusive", "share"] {
        let Some(database) = Database::create() else { return };
        let mut node = database.join_with(|store| store.lease(Duration::from_secs(30)));
        let instance = node.0.instance();
        let due = node.0.now() + 1_000_000_000;
        let inserts = |due| (0..32).map(move |n| keyed(instance, n.to_string(), due));
        node.write(inserts(due).map(Operation::Insert)).unwrap();
        database.sql(
            "create function pause() returns trigger language plpgsql as $$
             begin if new.key = 'slow' then perform pg_sleep(2); end if; return new; end $$;
             create trigger pause before insert on timer.timeout for each row execute function pause()",
        );
        let mut session = Session::begin(&database);
        let locking = std::thread::spawn(move || {
            let sleeping = "select count(*) from pg_stat_activity
                where wait_event = 'PgSleep' and datname = current_database()";
            database.wait_for(sleeping, "1");
            session.ask(&format!("lock table timer.timeout in {mode} mode; select 1"));
            std::thread::park_timeout(Duration::from_secs(3));
            session.end("commit");
            database
        });
        let begun = Instant::now();
        let slow = keyed(instance, "slow".to_owned(), due);
        let all: Vec<Operation> = std::iter::once(slow).chain(inserts(due - 1)).map(Operation::Insert).collect();
        let answers = node.0.write(&all, begun + Duration::from_millis(100)).unwrap();
        let took = begun.elapsed();
        assert!(matches!(answers[0], Outcome::Created { .. }), "{answers:?}");
        let is_left = |answer: &Outcome| matches!(answer, Outcome::Locked | Outcome::NotReached);
        assert!(answers[1..].iter().all(is_left), "{mode}: {answers:?}");
        // Without a limit, dividing would take 63 statements of 50 ms.
        assert!(took < Duration::from_secs(5), "{mode}: {took:?}");
        locking.join().unwrap();
    }
}
