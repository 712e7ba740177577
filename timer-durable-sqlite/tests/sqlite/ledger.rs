//! Orders and their timeouts in transactions on one SQLite file, in a process that is killed, and a
//! ledger of each way to schedule.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use timer_durable::{Due, DurableTimer, Error, Schedule, TimeoutId};
use timer_durable_sqlite::{SqliteHandle, SqliteStore};

use crate::processes::{CHILD, child};
use timer_durable_tests::folder::Folder;
use timer_durable_tests::never_early::{Ledger, assert_on_time, work};
use timer_durable_tests::t;

const PATIENCE: Duration = Duration::from_secs(60);

fn open(file: &Path) -> (DurableTimer, SqliteHandle) {
    let store = SqliteStore::open(file).unwrap();
    let sqlite = store.handle();
    let closing = sqlite.clone();
    let close = move |due: &Due<String>| {
        let number = due.payload().clone();
        let rolls_back = fastrand::u8(..4) == 0;
        // After a rollback, an `Ok` does not end the timeout.
        let _result = closing.complete(due, move |tx| {
            tx.connection().execute("insert into closed values (?1)", [number])?;
            if rolls_back { Err("rolled back".into()) } else { Ok(()) }
        });
        Ok(())
    };
    let topic = t().attempts(1_000_000).backoff(Duration::from_millis(1), Duration::from_millis(5));
    (DurableTimer::builder().topic(topic, close).open(store).wait().unwrap(), sqlite)
}

fn place((timer, sqlite): &(DurableTimer, SqliteHandle), number: String, may_commit: bool) -> Result<(), Error> {
    sqlite
        .transaction(timer, move |tx| {
            tx.connection().execute("insert into orders values (?1)", [&number])?;
            tx.schedule(t::<String>(), Schedule::after(Duration::ZERO).key(&number), &number)?;
            if may_commit { Ok(()) } else { Err("rolled back".into()) }
        })
        .wait()
}

/// A process places orders and closes them, each in one transaction with its timeout. It is killed
/// at random moments. Every order is closed once, and none that was rolled back.
#[test]
fn kills_lose_and_repeat_nothing() {
    if let Some(folder) = std::env::var_os(CHILD) {
        let folder = Path::new(&folder);
        let begun = Instant::now();
        let timer = open(&folder.join("timeouts.db"));
        let process = TimeoutId::new();
        let mut numbers = 0_u64..;
        // The parent kills this process. If the parent itself is killed, the process ends here.
        while begun.elapsed() < PATIENCE {
            let n = numbers.next().unwrap();
            let placed = place(&timer, format!("{process}-{n}"), n % 3 < 2);
            assert_eq!(placed.is_ok(), n % 3 < 2, "{placed:?}");
            if n == 0 {
                std::fs::write(folder.join("placed"), "").unwrap();
            }
        }
        return;
    }
    let folder = Folder::new();
    let (timer, sqlite) = open(&folder.file());
    let create = "create table orders(number text primary key); create table closed(number text)";
    sqlite.transaction(&timer, move |tx| Ok(tx.connection().execute_batch(create)?)).wait().unwrap();
    timer.stop(PATIENCE).wait().unwrap();
    drop(timer);
    let kills = std::env::var("TIMER_LEDGER_KILLS").map_or(6_u32, |kills| kills.parse().unwrap());
    let placed = folder.path().join("placed");
    let begun = Instant::now();
    for n in 0..kills {
        let mut process = child("ledger::kills_lose_and_repeat_nothing", &folder).spawn().unwrap();
        while !placed.exists() {
            assert!(begun.elapsed() < PATIENCE * (n + 1), "an order is placed");
            std::thread::park_timeout(Duration::from_millis(1));
        }
        std::thread::park_timeout(Duration::from_millis(fastrand::u64(..300)));
        process.kill().unwrap();
        process.wait().unwrap();
        std::fs::remove_file(&placed).unwrap();
    }
    let (timer, sqlite) = open(&folder.file());
    let begun = Instant::now();
    while timer.counts().wait().unwrap().pending > 0 {
        assert!(begun.elapsed() < PATIENCE * 2, "{:?}", timer.counts());
        std::thread::park_timeout(Duration::from_millis(10));
    }
    let count = |query: &'static str| {
        sqlite
            .transaction(&timer, move |tx| Ok(tx.connection().query_row(query, [], |row| row.get::<_, i64>(0))?))
            .wait()
            .unwrap()
    };
    let orders = count("select count(*) from orders");
    let closed = count("select count(*) from closed");
    let distinct = count("select count(distinct number) from closed");
    let unknown = count("select count(*) from closed where number not in (select number from orders)");
    println!("{orders} orders, {closed} closed, {kills} kills");
    assert!(orders >= i64::from(kills), "each process has placed one");
    assert_eq!((closed, distinct, unknown), (orders, orders, 0), "closed, distinct, and rolled back");
}

#[test]
fn no_way_to_schedule_is_early_in_a_file() {
    let (ledger, builder, ways) = Ledger::new(SystemTime::now, work);
    let folder = Folder::new();
    let timer = builder.open(SqliteStore::open(folder.file()).unwrap()).wait().unwrap();
    let expected = ledger.call(&timer) + ledger.call_in_transactions(&timer);
    assert_on_time(std::iter::from_fn(|| ways.recv_timeout(PATIENCE).ok()), expected);
}
