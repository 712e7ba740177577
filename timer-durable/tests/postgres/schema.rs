//! Databases of earlier releases, which the present code has to use.

use timer_durable::PostgresStore;
use timer_durable::transaction::Done;

use super::Database;

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
