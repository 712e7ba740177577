//! Rows that cannot be read, and rows that a trigger of the user refuses.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use timer_durable::{Due, DurableTimer, RequeueAnswer, Retry, Schedule, Topic};
use timer_durable_sqlite::SqliteStore;
use timer_durable_sqlite::rusqlite::Connection;

use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

const LONG: Duration = Duration::from_secs(60);

fn open(folder: &Folder) -> (DurableTimer, Receiver<String>) {
    let (sender, ran) = channel();
    let record = move |due: &Due<String>| sender.send(due.payload().clone()).map_err(Retry::new);
    let topic = Topic::new("t").attempts(1);
    let timer =
        DurableTimer::builder().topic(topic, record).open(SqliteStore::open(folder.file()).unwrap()).wait().unwrap();
    (timer, ran)
}

fn schedule(timer: &DurableTimer, key: &str, delay: Duration) {
    timer.schedule(t(), Schedule::after(delay).key(key), &key.to_owned()).wait().unwrap();
}

/// Lets a program of the user change the file while no timer is open.
fn change(folder: &Folder, sql: &str) {
    Connection::open(folder.file()).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_row_that_cannot_be_read_is_a_dead_letter() {
    let values = [
        "payload = 'text'",
        "payload = 7",
        "format = 70000",
        "attempt = 5000000000",
        "forgiven = -1",
        "topic = cast(x'ff' as text)",
        "topic = x'ff'",
        "key = cast(x'ff' as text)",
        "key = x'00'",
        "period = 'text'",
        "max_lateness = 1.5",
        "planned = 'text'",
        "begun = 'text'",
        "id = x'00'",
        "id = 'text of 16 bytes'",
        "due = 1.5",
        "due = 'text'",
        "slot = 0.5",
        "slot = 'text'",
    ];
    for value in values {
        let folder = Folder::new();
        let (timer, _) = open(&folder);
        (0..9).for_each(|n| schedule(&timer, &n.to_string(), LONG));
        timer.stop(LONG).wait().unwrap();
        drop(timer);
        let all = "update timer_timeout set due = 1, slot = null";
        change(&folder, &format!("{all}; update timer_timeout set {value} where key = '4'"));
        let (timer, ran) = open(&folder);
        let mut all: Vec<String> = (0..8).map(|_| ran.recv_timeout(LONG).expect(value)).collect();
        all.sort();
        assert_eq!(all, ["0", "1", "2", "3", "5", "6", "7", "8"], "D11: {value}");
        let begun = Instant::now();
        while timer.counts().wait().unwrap().dead == 0 {
            assert!(begun.elapsed() < LONG, "{value}");
        }
        let letters = timer.dead_letters(None, None, 9).wait().unwrap();
        assert_eq!(letters.len(), usize::from(!value.starts_with("id")), "{value}");
        assert!(letters.iter().all(|letter| letter.reason.contains("cannot be read")), "{value}: {letters:?}");
        schedule(&timer, "another", LONG);
        timer.stop(LONG).wait().unwrap();
        assert_eq!(timer.stats().pending, Some(1), "{value}");
        drop(timer);
        let column = value.split(' ').next().unwrap();
        if ["payload", "format", "attempt", "topic", "key", "id", "due"].contains(&column) {
            let kept = format!("select count(*) from timer_dead where {value}");
            let file = Connection::open(folder.file()).unwrap();
            assert_eq!(file.query_row(&kept, [], |row| row.get(0)), Ok(1), "{value}");
        }
    }
}

#[test]
fn extreme_values_of_a_row_harm_no_other() {
    let values = [
        "due = -9223372036854775808, period = 1",
        "planned = -9223372036854775808, period = 1",
        "planned = 9223372036854775807, period = 9223372036854775807",
        "forgiven = 4294967295",
        "attempt = 4294967294, forgiven = 0",
        "max_lateness = -9223372036854775808",
    ];
    for value in values {
        let folder = Folder::new();
        let (timer, _) = open(&folder);
        ["a", "extreme", "b"].into_iter().for_each(|key| schedule(&timer, key, LONG));
        timer.stop(LONG).wait().unwrap();
        drop(timer);
        let due = "update timer_timeout set due = 1";
        change(&folder, &format!("{due}; update timer_timeout set {value} where key = 'extreme'"));
        let (timer, ran) = open(&folder);
        let others = ran.iter().filter(|key| key != "extreme").take(2);
        assert_eq!(others.count(), 2, "D11: {value}");
        schedule(&timer, "later", Duration::from_millis(200));
        assert!(ran.iter().any(|key| key == "later"), "{value}");
    }
}

#[test]
fn a_dead_letter_that_cannot_be_read_says_so() {
    let folder = Folder::new();
    let (timer, _) = open(&folder);
    let number = 9;
    (0..number).for_each(|n| _ = timer.new_timeout(t(), Duration::ZERO, &vec![0xff_u8, n]).wait().unwrap());
    while timer.counts().wait().unwrap().dead < u64::from(number) {}
    timer.stop(LONG).wait().unwrap();
    drop(timer);
    change(
        &folder,
        "update timer_dead set payload = 'text' where payload = x'ff00'; update timer_dead set id = x'00' where payload = x'ff01';
         update timer_dead set format = 70000, topic = x'ff' where payload = x'ff02'; update timer_dead set due = 'text', reason = 7
         where payload = x'ff03'",
    );
    let (timer, _) = open(&folder);
    let letters = timer.dead_letters(None, None, 99).wait().unwrap();
    let unreadable = letters.iter().filter(|letter| letter.reason.contains("the dead letter cannot be read"));
    assert_eq!((letters.len(), unreadable.count()), (8, 3), "{letters:?}");
    assert_eq!(letters[0].payload, b"text");
    assert_eq!(timer.requeue(letters[0].id).wait().unwrap(), RequeueAnswer::Requeued);
    assert!(timer.purge(letters[1].id).wait().unwrap());
}

#[test]
fn a_call_about_an_unreadable_row_fails_alone() {
    let folder = Folder::new();
    let (timer, _) = open(&folder);
    // No page has them so far.
    (0..20).for_each(|n| schedule(&timer, &n.to_string(), 1_000 * LONG));
    timer.stop(LONG).wait().unwrap();
    drop(timer);
    change(&folder, "update timer_timeout set begun = 'text' where key = '7'");
    let (timer, _) = open(&folder);
    let calls: Vec<_> = (0..20).map(|n| timer.reset(t::<()>(), &n.to_string(), 2_000 * LONG)).collect();
    for (n, call) in calls.into_iter().enumerate() {
        let answer = call.wait();
        assert_eq!(answer.is_err(), n == 7, "{n}: {answer:?}");
    }
}

#[test]
fn a_trigger_that_fails_holds_up_its_timeout_only() {
    let folder = Folder::new();
    drop(open(&folder));
    let triggers = "create trigger begins before update of begun on timer_timeout when new.key = 'begins'
        begin select json('{'); end;
        create trigger ends before delete on timer_timeout when old.key = 'ends' begin select json('{'); end";
    change(&folder, triggers);
    let (timer, ran) = open(&folder);
    for key in ["begins", "ends", "a", "b", "c"] {
        schedule(&timer, key, Duration::from_millis(200));
    }
    let mut all: Vec<String> = (0..4).map(|_| ran.recv_timeout(LONG).unwrap()).collect();
    all.sort();
    assert_eq!(all, ["a", "b", "c", "ends"], "D11");
    schedule(&timer, "later", Duration::ZERO);
    assert_eq!(ran.recv_timeout(LONG).unwrap(), "later");
    while timer.stats().done < 4 {
        std::thread::yield_now();
    }
    assert_eq!(timer.counts().wait().unwrap().pending, 2);
    drop(timer);
}
