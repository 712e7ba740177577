//! The order of one instant, and the parts for which time waits.
#![allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use timer_adapters::tokio;
use timer_core::Timer;
use timer_durable::{Done, Due, DurableTimer, MemoryStore, Retry, Schedule, Topic, VirtualClock};
use timer_durable_sqlite::SqliteStore;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

const HOUR: Duration = Duration::from_secs(3600);
const RUN: Topic<String> = Topic::new("run");
const SLOW: Topic<()> = Topic::new("slow");

#[test]
fn timeouts_of_one_instant_run_in_the_documented_order() {
    let log = Arc::new(Mutex::new(Vec::new()));
    tokio::paused(async {
        let clock = VirtualClock::new(&Timer::current());
        let [first, second] = [(); 2].map(|()| {
            let log = log.clone();
            let note = move |due: &Due<String>| -> Result<(), Retry> {
                log.lock().unwrap().push(due.payload().clone());
                Ok(())
            };
            DurableTimer::builder().topic(RUN, note).open_on(MemoryStore::new(), &clock).unwrap()
        });
        let note = |name: &'static str| {
            let log = log.clone();
            move || log.lock().unwrap().push(name.to_owned())
        };
        let theirs = note("tokio's sleep");
        let ours = note("our sleep");
        let memory = note("memory");
        tokio::spawn(async move {
            ::tokio::time::sleep(HOUR).await;
            theirs();
        });
        second.new_timeout(RUN, HOUR, "second").wait().unwrap();
        tokio::spawn(async move {
            sleep(HOUR).await;
            ours();
        });
        first.new_timeout(RUN, HOUR, "first, a").wait().unwrap();
        first.new_timeout(RUN, HOUR, "first, b").wait().unwrap();
        Timer::current().new_timeout(HOUR, move |_| memory()).unwrap();
        sleep(2 * HOUR).await;
    });
    let log = log.lock().unwrap().join(" | ");
    assert_eq!(log, "memory | first, a | first, b | second | tokio's sleep | our sleep");
}

#[test]
fn time_waits_for_reads_calls_and_handlers() {
    let folder = tempfile::tempdir().unwrap();
    tokio::paused(async {
        let clock = VirtualClock::new(&Timer::current());
        let (events, mut received) = unbounded_channel();
        let timer = DurableTimer::builder()
            .spawn(|future| _ = tokio::spawn(future))
            .topic_async(SLOW, |_: Due<()>| async {
                sleep(HOUR).await;
                Ok(Done::then(RUN, Schedule::after(HOUR), &"next".to_owned()))
            })
            .topic(RUN, move |due: &Due<String>| Ok::<(), Retry>(events.send(due.payload().clone())?))
            .open_on(SqliteStore::open(folder.path().join("a")).unwrap(), &clock)
            .unwrap();
        let begin = Instant::now();
        let call = timer.clone();
        spawn_blocking(move || call.new_timeout(RUN, 9 * HOUR, "last").wait()).await.unwrap().unwrap();
        assert_eq!(timer.get(RUN, "no key").await.unwrap().map(|found| found.id), None);
        assert_eq!(timer.counts().await.unwrap().pending, 1);
        assert_eq!(begin.elapsed(), Duration::ZERO);
        timer.new_timeout(SLOW, HOUR, &()).await.unwrap();
        for (hours, event) in [(3, "next"), (9, "last")] {
            assert_eq!((received.recv().await.as_deref(), begin.elapsed()), (Some(event), hours * HOUR));
        }
    });
}
