//! Transactions of the user.

use std::sync::mpsc::channel;
use std::time::Duration;

use futures::executor::block_on;
use timer_durable::{
    CancelAnswer, Due, DurableTimer, Error, IfPending, MemoryStore, ResetAnswer, Retry, Schedule, ScheduleAnswer,
    SqliteStore,
};

use crate::folder::Folder;
use crate::t;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn an_order_and_its_timeout_share_a_file() {
    let folder = Folder::new();
    let (sender, ran) = channel();
    let handler = move |due: &Due<String>| {
        let number = due.payload().clone();
        due.complete_with(move |tx| Ok(tx.connection().execute("insert into closed values (?1)", [number])?))?;
        sender.send(due.payload().clone()).map_err(Retry::new)
    };
    let timer = DurableTimer::builder().topic(t(), handler).open(SqliteStore::open(folder.file()).unwrap()).unwrap();
    let create = "create table orders(number text); create table closed(number text)";
    timer.transaction(move |tx| Ok(tx.connection().execute_batch(create)?)).unwrap();
    let place = |number: &'static str, may_commit: bool| {
        timer.transaction(move |tx| {
            tx.connection().execute("insert into orders values (?1)", [number])?;
            let id = tx.new_timeout(t(), Duration::ZERO, number)?;
            if may_commit { Ok(id) } else { Err("no money".into()) }
        })
    };
    let Err(Error::Work(error)) = place("1", false) else { panic!("the work has failed") };
    assert_eq!(error.to_string(), "no money");
    place("2", true).unwrap();
    assert_eq!(ran.recv_timeout(LONG), Ok("2".to_owned()));
    let both = "select (select group_concat(number) from orders) || ' ' || group_concat(number) from closed";
    let read =
        timer.transaction_async(move |tx| Ok(tx.connection().query_row(both, [], |row| row.get::<_, String>(0))?));
    assert_eq!(block_on(read).unwrap(), "2 2".to_owned());
    assert_eq!(timer.counts().unwrap().pending, 0);
    assert_eq!(timer.stop(LONG).unwrap().unfinished, 0);
    assert!(ran.try_recv().is_err(), "nothing runs after a rollback");
}

#[test]
fn a_timeout_does_not_end_without_its_work() {
    let handler = |due: &Due<String>| {
        // The handler ignores the failure.
        let _failed = due.complete_with(|_| Err::<(), _>("no money".into()));
        Ok(())
    };
    let topic = t::<String>().attempts(2).backoff(LONG, LONG);
    let (timer, mut driver) = DurableTimer::builder().topic(topic, handler).build_manual(MemoryStore::new()).unwrap();
    timer.new_timeout(t::<String>(), Duration::ZERO, "1").unwrap();
    assert_eq!(driver.advance(LONG * 10), 2);
    let dead = timer.dead_letters(None, None, 9).unwrap();
    assert!(dead[0].reason.contains("was not committed"), "{dead:?}");
    assert_eq!((dead.len(), timer.stats().done), (1, 0));
}

#[test]
fn a_transaction_schedules_moves_and_cancels() {
    let (sender, ran) = channel();
    let handler = move |due: &Due<String>| sender.send(due.payload().clone()).map_err(Retry::new);
    let (timer, mut driver) = DurableTimer::builder().topic(t(), handler).build_manual(MemoryStore::new()).unwrap();
    let keyed = |key: &str, delay: u64| Schedule::after(Duration::from_secs(delay)).key(key);
    timer.new_timeout_keyed(t(), "cancelled", Duration::from_secs(1), "cancelled", IfPending::Keep).unwrap();
    let change = |may_commit: bool| {
        timer.transaction(move |tx| {
            let answer = tx.cancel(t::<()>(), "cancelled")?;
            assert_eq!(answer, CancelAnswer::Cancelled);
            let ScheduleAnswer::Created(id) = tx.schedule(t(), keyed("a", 60), "a")? else { panic!("a new key") };
            assert_eq!(tx.schedule(t(), keyed("a", 60), "b")?, ScheduleAnswer::Kept(id));
            let refused = tx.schedule(t(), keyed("a", 60).if_pending(IfPending::Refuse), "b");
            assert!(matches!(refused, Err(Error::KeyTaken { id: holder }) if holder == id));
            assert_eq!(tx.reset(t::<()>(), "a", Duration::from_secs(2))?, ResetAnswer::Reset);
            assert_eq!(tx.reset(t::<()>(), "b", Duration::from_secs(2))?, ResetAnswer::Unknown);
            if may_commit { Ok(()) } else { Err("not yet".into()) }
        })
    };
    change(false).unwrap_err();
    change(true).unwrap();
    assert_eq!(driver.advance(Duration::from_secs(10)), 1);
    assert_eq!(ran.try_recv(), Ok("a".to_owned()));
}
