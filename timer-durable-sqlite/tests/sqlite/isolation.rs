//! Topics that are paused or limited in a file, beside others.

use std::sync::mpsc::channel;
use std::time::Duration;

use timer_durable::{Due, DurableTimer, Retry, Topic};
use timer_durable_sqlite::SqliteStore;
use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);
const OTHER: Topic<()> = Topic::new("other");

fn schedule(timer: &DurableTimer, topic: Topic<()>, delay: Duration) {
    timer.new_timeout(topic, delay, &()).wait().unwrap();
}

#[test]
fn a_paused_topic_with_many_rows_in_a_file_delays_no_other() {
    const MANY: i64 = 20_000;
    let folder = Folder::new();
    let store = || SqliteStore::open(folder.file()).unwrap();
    drop(store());
    let file = rusqlite::Connection::open(folder.file()).unwrap();
    file.execute_batch(&format!(
        "insert into timer_paused values ('t');
         with recursive n(n) as (select 1 union all select n + 1 from n where n < {MANY})
         insert into timer_timeout(id, due, topic, format, payload)
         select cast(printf('%016d', n) as blob), 1000000 + n, 't', 0, x'' from n"
    ))
    .unwrap();
    drop(file);
    let (sender, runs) = channel();
    let topic = sender.clone();
    let other = sender;
    let timer = DurableTimer::builder()
        .capacity(500)
        .topic(t(), move |_: &Due<()>| topic.send("t").map_err(Retry::new))
        .topic(OTHER, move |_: &Due<()>| other.send("other").map_err(Retry::new))
        .open(store())
        .wait()
        .unwrap();
    (0..100).for_each(|n| schedule(&timer, OTHER, Duration::from_millis(n)));
    (0..100).for_each(|_| assert_eq!(runs.recv_timeout(PATIENCE), Ok("other")));
    timer.resume(t::<()>()).wait().unwrap();
    (0..MANY).for_each(|_| assert_eq!(runs.recv_timeout(PATIENCE), Ok("t"), "D2"));
    timer.stop(PATIENCE).wait().unwrap();
}

#[test]
fn a_begin_that_waits_aside_does_not_begin_in_a_pause() {
    [4, 1_000].into_iter().for_each(a_refused_begin_of_a_paused_topic);
}

fn a_refused_begin_of_a_paused_topic(capacity: usize) {
    let folder = Folder::new();
    let done = |_: &Due<()>| Ok::<(), Retry>(());
    let builder = DurableTimer::builder().capacity(capacity).topic(t(), done).topic(OTHER, done);
    let store = SqliteStore::open(folder.file()).unwrap();
    let sqlite = store.handle();
    let timer = builder.open(store).wait().unwrap();
    let count = |topic: &str| timer.stats().topics[topic].done;
    let execute = |sql| sqlite.transaction(&timer, move |tx| Ok(tx.connection().execute_batch(sql)?)).wait().unwrap();
    let wait = |is_done: &dyn Fn() -> bool| {
        (0..6_000).any(|_| {
            std::thread::park_timeout(Duration::from_millis(10));
            is_done()
        })
    };
    timer.pause(t::<()>()).wait().unwrap();
    schedule(&timer, t(), Duration::ZERO);
    execute("create trigger refuse before update of begun on timer_timeout begin select json('{'); end");
    timer.resume(t::<()>()).wait().unwrap();
    assert!(wait(&|| timer.stats().store_errors > 0), "it is refused to begin");
    timer.pause(t::<()>()).wait().unwrap();
    execute("drop trigger refuse");
    // The pause of the refused begin is over by then.
    schedule(&timer, OTHER, 5 * SECOND);
    assert!(wait(&|| count("other") == 1));
    assert_eq!(count("t"), 0);
    timer.resume(t::<()>()).wait().unwrap();
    assert!(wait(&|| count("t") == 1), "D2");
    timer.stop(PATIENCE).wait().unwrap();
}

#[test]
fn a_refused_begin_of_a_resumed_topic_is_read_as_often_as_it_is_written() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let sqlite = store.handle();
    let builder = DurableTimer::builder().capacity(4).topic(t(), |_: &Due<()>| Ok(()));
    let (timer, mut driver) = builder.build_manual(store).unwrap();
    let execute = |sql| sqlite.transaction(&timer, move |tx| Ok(tx.connection().execute_batch(sql)?)).wait().unwrap();
    timer.pause(t::<()>()).wait().unwrap();
    schedule(&timer, t(), SECOND);
    assert_eq!(driver.advance(SECOND), 0);
    execute("create trigger refuse before update of begun on timer_timeout begin select json('{'); end");
    timer.resume(t::<()>()).wait().unwrap();
    let before = timer.stats().turns;
    assert_eq!(driver.advance(600 * SECOND), 0);
    let turns = timer.stats().turns - before;
    assert!(turns < 300, "{turns}");
    // Another one of the topic does not wait for it.
    execute("drop trigger refuse");
    schedule(&timer, t(), SECOND);
    assert_eq!(driver.advance(SECOND), 1);
    assert_eq!(driver.advance(30 * SECOND), 1);
}
