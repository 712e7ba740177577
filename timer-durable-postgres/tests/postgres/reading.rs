//! Reading timeouts back, and acting on many, on a server.

use std::time::{Duration, Instant};

use timer_durable::store::{Position, Reader, Store};
use timer_durable::{DurableTimer, Error, Filter, IfPending, PendingRow, Schedule, StoreError, TimeoutState};
use timer_durable_postgres::PostgresStore;

use super::Database;
use super::locks::Session;
use timer_durable_tests::t;

const LONG: Duration = Duration::from_secs(3_600);

#[test]
fn timeouts_are_read_back_by_calls_and_by_the_view() {
    let Some(database) = Database::create() else { return };
    let store = PostgresStore::new(&database.url()).unwrap();
    let timer = DurableTimer::builder().topic_elsewhere(t::<String>()).open(store).wait().unwrap();
    for key in ["a/1", "a/2", "b/1"] {
        timer.schedule(t(), Schedule::after(LONG).key(key), key).wait().unwrap();
    }
    let found = timer.get(t::<String>(), "a/1").wait().unwrap().unwrap();
    assert_eq!((&*found.payload, found.state), ("a/1", TimeoutState::Pending));
    let rows = timer.list(&Filter::new().topic("t").key_prefix("a/"), None, 1).wait().unwrap();
    assert_eq!(rows[0].id, found.id);
    let view =
        "select string_agg(concat_ws(' ', topic, key, state, attempt, due > now(), convert_from(payload, 'UTF8')),
        ', ' order by key) from timer.pending where key < 'a/2'";
    assert_eq!(database.sql(view), "t a/1 pending 0 t a/1");
    let counts = timer.cancel_many(t::<String>(), "a/").wait().unwrap();
    assert_eq!((counts.cancelled, timer.counts().wait().unwrap().pending), (2, 1));
}

#[test]
fn a_page_has_the_rows_of_scattered_shards_only() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    database.sql(
        "update timer.shard set owner = 1000000 where shard % 5 <> 2;
         insert into timer.timeout(id, due, topic, format, payload, shard)
         select gen_random_uuid(), n, 'topic', 0, '', n % 64 from generate_series(0, 639) n",
    );
    let begun = Instant::now();
    while node.shards() == 64 {
        assert!(begun.elapsed() < LONG);
        node.0.upkeep(&[]).unwrap();
    }
    let mut page = Vec::new();
    assert_eq!(node.0.load("topic", Position::START..Position::END, 1_000, &mut page), Ok(Position::END));
    let own: Vec<i64> = (0..640).filter(|n| n % 64 % 5 == 2).collect();
    assert_eq!(page.iter().map(|position| position.due).collect::<Vec<_>>(), own);
}

#[test]
fn pages_have_the_rows_of_all_shards_in_order() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    // One shard has most of the first rows, and few of the others.
    database.sql(
        "insert into timer.timeout(id, due, topic, format, payload, shard)
         select gen_random_uuid(), n / 7, 'topic', 0, '',
             case when n > 320 then n % 8 when n % 5 = 0 then n % 64 else 7 end
         from generate_series(1, 600) n",
    );
    let mut all = Vec::new();
    assert_eq!(node.0.load("topic", Position::START..Position::END, 1_000, &mut all), Ok(Position::END));
    assert!(all.len() == 600 && all.is_sorted());
    for max in [1, 20, 100, 599, 600] {
        let mut pages = Vec::new();
        let mut from = Position::START;
        while from != Position::END {
            let before = pages.len();
            from = node.0.load("topic", from..Position::END, max, &mut pages).unwrap();
            assert!(pages.len() - before == max || from == Position::END);
        }
        assert_eq!(pages, all, "{max} at a time");
    }
    // A list has the rows of all topics.
    database.sql("update timer.timeout set topic = 'topic ' || due % 3 where due % 2 = 0");
    for limit in [1, 20, 100, 599, 600] {
        let mut rows: Vec<PendingRow> = Vec::new();
        loop {
            let page = node.0.list(&Filter::new(), rows.last(), limit).unwrap();
            if page.is_empty() {
                break;
            }
            rows.extend(page);
        }
        let listed: Vec<Position> = rows.iter().map(|row| Position { due: row.due, id: row.id }).collect();
        assert_eq!(listed, all, "{limit} at a time");
    }
}

#[test]
fn a_locked_key_makes_a_call_about_many_wait() {
    let Some(database) = Database::create() else { return };
    let store = PostgresStore::new(&database.url()).unwrap();
    let timer = DurableTimer::builder().topic_elsewhere(t::<String>()).open(store).wait().unwrap();
    timer.schedule(t(), Schedule::after(LONG).key("k"), "old").wait().unwrap();
    let mut session = Session::begin(&database);
    assert_eq!(session.ask("select timer.cancel('t', 'k')"), "cancelled");
    let call = |key: &str| t::<String>().with(Schedule::after(LONG).key(key).if_pending(IfPending::Replace), "new");
    let begun = Instant::now();
    let many = timer.schedule_many(["j", "k"].map(call));
    while begun.elapsed() < Duration::from_secs(1) {
        timer.new_timeout(t(), LONG, "other").wait().unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "other calls go on: {:?}", begun.elapsed());
    let error = many.wait().unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Locked)), "{error}");
    assert!(begun.elapsed() >= Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(timer.get(t::<String>(), "j").wait().unwrap().is_none(), "all or none");
    let many = timer.schedule_many(["j", "k"].map(call));
    timer.new_timeout(t(), LONG, "other").wait().unwrap();
    session.end("commit");
    many.wait().unwrap();
    assert_eq!(timer.stats().rejoins, 0);
    assert_eq!(timer.get(t::<String>(), "k").wait().unwrap().unwrap().payload, "new");
}
