//! Databases of earlier releases, which the present code has to use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use timer_durable::transaction::Done;
use timer_durable::{Due, DurableTimer, PostgresStore, Retry};

use super::{Database, LEASE};

const PATIENCE: Duration = Duration::from_secs(30);

const VERSION_1: &str = include_str!("../fixtures/postgres_1.sql");

/// Another schema needs another version, a fixture of its own and a way from this one.
#[test]
fn a_database_of_version_1_goes_on() {
    let (Some(old), Some(new)) = (Database::create(), Database::create()) else { return };
    old.sql(VERSION_1);
    let mut node = old.join();
    let first = node.insert();
    assert_eq!(old.sql("select version from timer.meta"), "1", "nothing is upgraded unasked");
    PostgresStore::upgrade(&old.url()).unwrap();
    PostgresStore::upgrade(&old.url()).unwrap();
    let last = node.insert();
    for id in [first, last] {
        node.attempt(id);
        let done = node.write(|batch| batch.dones.push(Done { id, attempt: 1, next: None })).unwrap();
        assert_eq!(done.dones, [true]);
    }
    drop(new.join());
    let facts = "select version, string_agg(option, ' ' order by option)
        from timer.meta, pg_class c, unnest(c.reloptions) option where c.oid = 'timer.timeout'::regclass group by 1";
    assert_eq!(old.sql(facts), new.sql(facts));
    old.join();
}

#[test]
fn an_upgrade_under_load_loses_nothing() {
    let Some(database) = Database::create() else { return };
    database.sql(VERSION_1);
    let (sender, fired) = mpsc::channel();
    let timers = [(); 2].map(|()| {
        let sender = sender.clone();
        let record = move |due: &Due<String>| sender.send((due.payload().clone(), due.attempt())).map_err(Retry::new);
        let store = PostgresStore::connect(&database.url()).unwrap().lease(LEASE * 5);
        DurableTimer::builder().topic("topic", record).open(store).unwrap()
    });
    let is_upgraded = AtomicBool::new(false);
    let (mut seen, scheduled) = thread::scope(|scope| {
        let (timers, is_upgraded) = (&timers, &is_upgraded);
        let threads = [0, 1, 2, 3].map(|thread| {
            scope.spawn(move || {
                let (mut count, mut left) = (0, 20);
                while left > 0 {
                    let name = format!("{thread}-{count}");
                    timers[thread % 2].new_timeout("topic", Duration::from_millis(10), &name).unwrap();
                    count += 1;
                    left -= u32::from(is_upgraded.load(Ordering::Relaxed));
                }
                count
            })
        });
        let seen: Vec<(String, u32)> = (0..100).map(|_| fired.recv_timeout(PATIENCE).unwrap()).collect();
        PostgresStore::upgrade(&database.url()).unwrap();
        is_upgraded.store(true, Ordering::Relaxed);
        (seen, threads.map(|thread| thread.join().unwrap()).iter().sum::<usize>())
    });
    seen.extend((seen.len()..scheduled).map(|_| fired.recv_timeout(PATIENCE).unwrap()));
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() == scheduled && seen.iter().all(|(_, attempt)| *attempt == 1), "{scheduled} timeouts: {seen:?}");
    for timer in timers {
        assert_eq!((timer.stats().store_errors, timer.stats().rejoins), (0, 0));
        assert_eq!(timer.stop(PATIENCE).unwrap().unfinished, 0);
    }
    assert!(fired.try_recv().is_err(), "nothing runs twice");
    let rest = "select version, (select count(*) from timer.timeout where ended is null) from timer.meta";
    assert_eq!(database.sql(rest), "2|0");
}
