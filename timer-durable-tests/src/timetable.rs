//! The timetable against the timeouts that then run.

use std::time::Duration;

use timer_durable::store::Store;
use timer_durable::{Due, DurableTimer, Retry, Topic, TopicDue};

pub const SECOND: Duration = Duration::from_secs(1);
pub const TOPICS: [Topic<()>; 2] = [Topic::new("a"), Topic::new("b")];

/// Schedules timeouts with random delays of all lengths up to four days, and asserts that each
/// number of the timetable is that of the timeouts which then run.
#[track_caller]
pub fn assert_runs_as_counted(store: impl Store, count: usize) {
    let ok = |_: &Due<()>| Ok::<(), Retry>(());
    let builder = TOPICS.into_iter().fold(DurableTimer::builder(), |builder, topic| builder.topic(topic, ok));
    let (timer, mut driver) = builder.build_manual(store).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..count {
        let longest = (4 * 86_400_000_000) >> random.u32(..22);
        let topic = TOPICS[usize::from(random.u32(..3) == 0)];
        timer.new_timeout(topic, Duration::from_micros(random.u64(..=longest)), &()).wait().unwrap();
    }
    driver.advance(Duration::from_secs(random.u64(..3_600)));
    let done = || TOPICS.map(|topic| timer.stats().topics[topic.name()].done);
    let before = done();
    let timetable = timer.timetable();
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
