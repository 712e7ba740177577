//! Transactions of the user.

use std::sync::mpsc::channel;
use std::time::Duration;

use timer_durable::{
    CancelAnswer, Due, DurableTimer, Error, IfPending, MemoryStore, ResetAnswer, Retry, Schedule, ScheduleAnswer,
};

use crate::t;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_timeout_does_not_end_without_its_work() {
    let handler = |due: &Due<String>| {
        // The handler ignores the failure.
        let _failed = due.complete_with(|_| Err::<(), _>("no money".into()));
        Ok(())
    };
    let topic = t::<String>().attempts(2).backoff(LONG, LONG);
    let (timer, mut driver) = DurableTimer::builder().topic(topic, handler).build_manual(MemoryStore::new()).unwrap();
    timer.new_timeout(t::<String>(), Duration::ZERO, "1").wait().unwrap();
    assert_eq!(driver.advance(LONG * 10), 2);
    let dead = timer.dead_letters(None, None, 9).wait().unwrap();
    assert!(dead[0].reason.contains("was not committed"), "{dead:?}");
    assert_eq!((dead.len(), timer.stats().done), (1, 0));
}

#[test]
fn a_transaction_schedules_moves_and_cancels() {
    let (sender, ran) = channel();
    let handler = move |due: &Due<String>| sender.send(due.payload().clone()).map_err(Retry::new);
    let (timer, mut driver) = DurableTimer::builder().topic(t(), handler).build_manual(MemoryStore::new()).unwrap();
    let keyed = |key: &str, delay: u64| Schedule::after(Duration::from_secs(delay)).key(key);
    timer.schedule(t(), Schedule::after(Duration::from_secs(1)).key("cancelled"), "cancelled").wait().unwrap();
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
    change(false).wait().unwrap_err();
    change(true).wait().unwrap();
    assert_eq!(driver.advance(Duration::from_secs(10)), 1);
    assert_eq!(ran.try_recv(), Ok("a".to_owned()));
}
