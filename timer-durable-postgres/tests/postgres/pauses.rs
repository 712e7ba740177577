//! Topics that are paused on two nodes.

use std::sync::mpsc;
use std::time::Duration;

use timer_durable::{Due, DurableTimer, Retry, Topic};
use timer_durable_postgres::PostgresStore;

use super::{Database, LEASE};

const PATIENCE: Duration = Duration::from_secs(60);
const TOPIC: Topic<()> = Topic::new("topic");
const OTHER: Topic<()> = Topic::new("other");

#[test]
fn a_paused_topic_with_many_rows_delays_no_other() {
    const MANY: usize = 5_000;
    let Some(database) = Database::create() else { return };
    drop(database.join());
    database.sql(&format!(
        "select timer.pause('topic');
         insert into timer.timeout(id, due, topic, format, payload, shard)
         select gen_random_uuid(), timer.now() - n, 'topic', 0, '', n % 64 from generate_series(1, {MANY}) n"
    ));
    let (sender, runs) = mpsc::channel();
    let timers = [0, 1].map(|node| {
        let topic = sender.clone();
        let other = sender.clone();
        DurableTimer::builder()
            .capacity(500)
            .topic(TOPIC, move |_: &Due<()>| topic.send(("topic", node)).map_err(Retry::new))
            .topic(OTHER, move |_: &Due<()>| other.send(("other", node)).map_err(Retry::new))
            .open(PostgresStore::new(&database.url()).unwrap().lease(LEASE))
            .wait()
            .unwrap()
    });
    for n in 0..200 {
        timers[n % 2].new_timeout(OTHER, Duration::from_millis(n as u64), &()).wait().unwrap();
    }
    (0..200).for_each(|_| assert_eq!(runs.recv_timeout(PATIENCE).unwrap().0, "other"));
    assert_eq!(timers[0].paused_topics().wait().unwrap(), ["topic"]);
    let listed = timers[0].list(&timer_durable::Filter::new(), None, 100).wait().unwrap();
    assert!(listed.len() == 100 && listed.is_sorted_by_key(|row| row.due), "a list has the paused topic");
    timers[1].resume(TOPIC).wait().unwrap();
    let nodes: Vec<usize> = (0..MANY).map(|_| runs.recv_timeout(PATIENCE).expect("D2").1).collect();
    assert!([0, 1].iter().all(|node| nodes.contains(node)), "the other node has learned of it");
    for timer in timers {
        assert_eq!(timer.stop(PATIENCE).wait().unwrap().unfinished, 0);
    }
    assert_eq!(database.sql("select count(*) from timer.timeout where ended is null"), "0");
}
