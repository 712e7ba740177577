//! Tools that migrate the tables of the user, beside the tables of the store in the same file.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure of a test")]

use std::path::Path;
use std::time::Duration;

use rusqlite_migration::{M, Migrations};
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;
use timer_durable::{Due, DurableTimer, Topic};
use timer_durable_sqlite::SqliteStore;
use timer_durable_sqlite::rusqlite::Connection;
use timer_durable_tests::folder::Folder;

const CLOSE: Topic<String> = Topic::new("order.close");
const HOUR: Duration = Duration::from_secs(3_600);

/// The versions of the user's tables.
const ORDERS: &str = "create table orders(number text primary key, closed integer not null default 0)";
const PAID: &str = "alter table orders add column paid integer not null default 0";

/// Migrates a file to a version of the user's tables, by a connection of its own.
type Migrate = fn(&Path, usize);

fn by_rusqlite_migration(path: &Path, version: usize) {
    let mut connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    Migrations::new(vec![M::up(ORDERS), M::up(PAID)]).to_version(&mut connection, version).unwrap();
}

fn by_sqlx(path: &Path, version: usize) {
    let folder = Folder::new();
    for (number, sql) in [ORDERS, PAID].into_iter().take(version).enumerate() {
        std::fs::write(folder.path().join(format!("{}_orders.sql", number + 1)), sql).unwrap();
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let pool = SqlitePool::connect_with(options).await.unwrap();
        sqlx::migrate::Migrator::new(folder.path()).await.unwrap().run(&pool).await.unwrap();
        pool.close().await;
    });
}

fn open(path: &Path) -> (DurableTimer, timer_durable_sqlite::SqliteHandle) {
    let store = SqliteStore::open(path).unwrap();
    let sqlite = store.handle();
    (DurableTimer::builder().topic(CLOSE, |_: &Due<String>| Ok(())).open(store).wait().unwrap(), sqlite)
}

/// Writes orders with their timeouts while the tool migrates the file, before and beside the timer.
fn share(migrate: Migrate, tool_is_first: bool) {
    let folder = Folder::new();
    let path = folder.file();
    if !tool_is_first {
        drop(SqliteStore::open(&path).unwrap());
    }
    migrate(&path, 1);
    let (timer, sqlite) = open(&path);
    let place = |number: &'static str| {
        let call = sqlite.transaction(&timer, move |tx| {
            tx.connection().execute("insert into orders(number) values (?1)", [number])?;
            tx.new_timeout(CLOSE, HOUR, number)?;
            Ok(())
        });
        call.wait().unwrap();
    };
    place("17");
    migrate(&path, 2);
    place("18");
    let second = Connection::open(&path).unwrap();
    second.busy_timeout(Duration::from_secs(5)).unwrap();
    assert_eq!(second.execute("update orders set paid = 1", []).unwrap(), 2, "a second connection writes");
    place("19");
    assert_eq!(timer.counts().wait().unwrap().pending, 3);
    timer.stop(HOUR).wait().unwrap();
    drop((timer, second));
    migrate(&path, 2);
    let (timer, _sqlite) = open(&path);
    assert_eq!(timer.counts().wait().unwrap().pending, 3, "the next start finds both");
    let paid: i64 =
        Connection::open(&path).unwrap().query_row("select sum(paid) from orders", [], |row| row.get(0)).unwrap();
    assert_eq!(paid, 2);
}

#[test]
fn rusqlite_migration_lives_beside_the_store() {
    share(by_rusqlite_migration, true);
    share(by_rusqlite_migration, false);
}

#[test]
fn the_migrations_of_sqlx_live_beside_the_store() {
    share(by_sqlx, true);
    share(by_sqlx, false);
}
