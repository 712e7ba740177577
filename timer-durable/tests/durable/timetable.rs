//! The timetable against the timeouts that then run.

use std::time::Duration;

use timer_durable::{DurableTimer, Error, MemoryStore};
use timer_durable_tests::timetable::{SECOND, TOPICS, assert_runs_as_counted};

#[test]
fn timeouts_run_as_the_timetable_says() {
    assert_runs_as_counted(MemoryStore::new(), if cfg!(debug_assertions) { 5_000 } else { 20_000 });
}

/// The keeper is in a call of the user, and would have to count.
#[test]
fn a_timetable_does_not_wait_for_the_store() {
    let timer = DurableTimer::builder().topic_elsewhere(TOPICS[0]).open(MemoryStore::new()).wait().unwrap();
    timer.new_timeout(TOPICS[0], 90 * SECOND, &()).wait().unwrap();
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (end, may_end) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let timer = &timer;
        let busy = scope.spawn(move || {
            timer.transaction(move |_| {
                begun.send(()).unwrap();
                Ok(may_end.recv_timeout(60 * SECOND)?)
            })
        });
        has_begun.recv_timeout(60 * SECOND).unwrap();
        assert_eq!([(); 2].map(|()| timer.timetable()), [(); 2].map(|()| Default::default()));
        end.send(()).unwrap();
        busy.join().unwrap().wait().unwrap();
    });
    // A count behind this one has ended.
    timer.counts().wait().unwrap();
    let day = timer.timetable().day.unwrap();
    assert_eq!((day.len(), &*day[0].topic, &day[0].counts[..2]), (1, "a", &[1, 1][..]));
    timer.stop(60 * SECOND).wait().unwrap();
    assert!(matches!(timer.due_within(&[SECOND]).wait(), Err(Error::Stopped)));
}

#[test]
fn delays_ascend() {
    let (timer, _driver) = DurableTimer::builder().build_manual(MemoryStore::new()).unwrap();
    for delays in [vec![2 * SECOND, SECOND], vec![SECOND; 101]] {
        assert!(matches!(timer.due_within(&delays).wait(), Err(Error::Setting { name: "delays", .. })));
    }
    assert_eq!(timer.due_within(&[Duration::MAX]).wait().unwrap(), []);
}
