//! The timetable against the timeouts that then run.

use std::time::Duration;

#[cfg(feature = "sqlite")]
use crate::folder::Folder;
#[cfg(feature = "sqlite")]
use timer_durable::SqliteStore;
use timer_durable::{Due, DurableTimer, Error, MemoryStore, Retry, Store, Topic, TopicDue};

const SECOND: Duration = Duration::from_secs(1);
const TOPICS: [Topic<()>; 2] = [Topic::new("a"), Topic::new("b")];

/// Schedules timeouts with random delays of all lengths up to four days, and asserts that each
/// number of the timetable is that of the timeouts which then run.
#[track_caller]
fn assert_runs_as_counted(store: impl Store, count: usize) {
    let ok = |_: &Due<()>| Ok::<(), Retry>(());
    let builder = TOPICS.into_iter().fold(DurableTimer::builder(), |builder, topic| builder.topic(topic, ok));
    let (timer, mut driver) = builder.build_manual(store).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..count {
        let longest = (4 * 86_400_000_000) >> random.u32(..22);
        let topic = TOPICS[usize::from(random.u32(..3) == 0)];
        timer.new_timeout(topic, Duration::from_micros(random.u64(..=longest)), &()).unwrap();
    }
    driver.advance(Duration::from_secs(random.u64(..3_600)));
    let done = || TOPICS.map(|topic| timer.stats().topics[topic.name()].done);
    let (before, timetable) = (done(), timer.timetable());
    let mut now = Duration::ZERO;
    for (step, counts) in [(SECOND, timetable.minute), (60 * SECOND, timetable.hour), (900 * SECOND, timetable.day)] {
        let counts = counts.unwrap();
        for nth in 0..counts[0].counts.len() {
            let end = step * (nth as u32 + 1);
            // The steps of an hour begin with those of the minute.
            if end < now {
                continue;
            }
            driver.advance(end - now);
            now = end;
            let ran: Vec<_> = done().iter().zip(before).map(|(done, before)| done - before).collect();
            let counted: Vec<_> = counts.iter().map(|due: &TopicDue| due.counts[nth]).collect();
            assert_eq!(counted, ran, "{end:?}");
        }
    }
    assert!(done()[1] > count as u64 / 4, "{:?}", done());
}

#[test]
fn timeouts_run_as_the_timetable_says() {
    assert_runs_as_counted(MemoryStore::new(), 20_000);
    #[cfg(feature = "sqlite")]
    {
        let folder = Folder::new();
        assert_runs_as_counted(SqliteStore::open(folder.file()).unwrap(), 5_000);
    }
}

/// The keeper is in a call of the user, and would have to count.
#[test]
fn a_timetable_does_not_wait_for_the_store() {
    let timer = DurableTimer::builder().topic_elsewhere(TOPICS[0]).open(MemoryStore::new()).unwrap();
    timer.new_timeout(TOPICS[0], 90 * SECOND, &()).unwrap();
    let ((begun, has_begun), (end, may_end)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
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
        busy.join().unwrap().unwrap();
    });
    // A count behind this one has ended.
    timer.counts().unwrap();
    let day = timer.timetable().day.unwrap();
    assert_eq!((day.len(), &*day[0].topic, &day[0].counts[..2]), (1, "a", &[1, 1][..]));
    timer.stop(60 * SECOND).unwrap();
    assert!(matches!(timer.due_within(&[SECOND]), Err(Error::Stopped)));
}

#[test]
fn delays_ascend() {
    let (timer, _driver) = DurableTimer::builder().build_manual(MemoryStore::new()).unwrap();
    for delays in [vec![2 * SECOND, SECOND], vec![SECOND; 101]] {
        assert!(matches!(timer.due_within(&delays), Err(Error::Setting { name: "delays", .. })));
    }
    assert_eq!(timer.due_within(&[Duration::MAX]).unwrap(), []);
}
