//! Time limits of topics.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use timer_durable::{Due, DurableTimer, Error, MemoryStore, Retry, Topic};

use crate::t;

const SECOND: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(60);
const GOOD: Topic<()> = Topic::new("good");

fn schedule<P: timer_durable::Payload>(timer: &DurableTimer, topic: Topic<P>, payload: &P) {
    timer.new_timeout(topic, Duration::ZERO, payload).unwrap();
}

/// Tells when it is dropped.
struct Dropped(Sender<u32>, u32);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _sent = self.0.send(self.1);
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn blocking_handlers_that_hang_lose_their_places_and_threads() {
    const HANGING: usize = 12;
    let folder = crate::folder::Folder::new();
    let store = timer_durable::SqliteStore::open(folder.file()).unwrap();
    let (open, gate) = channel::<()>();
    let (gate, late) = (Mutex::new(gate), Arc::new(AtomicUsize::new(0)));
    let (cancelled, good) = (late.clone(), channel());
    let (second, seconds) = channel();
    let hangs = move |due: &Due<()>| {
        if due.attempt() > 1 {
            return second.send(due.id()).map_err(Retry::new);
        }
        // The handlers return one after the other, when the test is over.
        let _open = gate.lock().unwrap().recv();
        cancelled.fetch_add(usize::from(due.is_cancelled()), Ordering::Relaxed);
        Ok(())
    };
    let topic = t::<()>().backoff(Duration::ZERO, Duration::ZERO);
    let timer = DurableTimer::builder()
        .max_running(8)
        .topic(topic, hangs)
        .time_limit(LIMIT)
        .topic(GOOD, move |_: &Due<()>| good.0.send(()).map_err(Retry::new))
        .open(store)
        .unwrap();
    (0..HANGING).for_each(|_| schedule(&timer, topic, &()));
    schedule(&timer, GOOD, &());
    good.1.recv_timeout(PATIENCE).expect("another topic has a thread");
    let mut ids: Vec<_> = (0..HANGING).map(|_| seconds.recv_timeout(PATIENCE).unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), HANGING, "each has one second attempt");
    assert_eq!(timer.stats().timed_out, HANGING as u64);
    drop(open);
    while late.load(Ordering::Relaxed) < HANGING {
        std::thread::yield_now();
    }
    timer.stop(PATIENCE).unwrap();
    assert_eq!(timer.stats().done, HANGING as u64 + 1, "no late answer ends anything");
}

#[test]
fn an_async_handler_is_dropped_at_its_limit() {
    let (dropped, drops) = channel();
    let topic = t::<()>().attempts(2).backoff_by(|_| SECOND);
    let (timer, mut driver) = DurableTimer::builder()
        .spawn(|future| _ = std::thread::spawn(|| futures::executor::block_on(future)))
        .topic_async(topic, move |due: Due<()>| {
            let guard = Dropped(dropped.clone(), due.attempt());
            async move {
                let _guard = guard;
                std::future::pending::<()>().await;
                Ok(())
            }
        })
        .time_limit(10 * SECOND)
        .build_manual(MemoryStore::new())
        .unwrap();
    schedule(&timer, topic, &());
    assert_eq!(driver.run_due(), 1);
    for attempt in [1, 2] {
        driver.advance(9 * SECOND);
        assert!(drops.try_recv().is_err(), "it may run for ten seconds");
        driver.advance(SECOND);
        assert_eq!(drops.recv_timeout(PATIENCE), Ok(attempt));
        driver.advance(SECOND);
    }
    let letters = timer.dead_letters(None, None, 9).unwrap();
    assert_eq!((letters.len(), &*letters[0].reason), (1, "the handler ran for more than 10s"));
    assert_eq!(timer.stats().timed_out, 2);
}

#[test]
fn a_limit_belongs_to_a_topic_and_is_not_zero() {
    let refused = |builder: timer_durable::DurableTimerBuilder| match builder.build_manual(MemoryStore::new()) {
        Err(Error::Setting { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(DurableTimer::builder().time_limit(SECOND)), "time_limit");
    let topic = DurableTimer::builder().topic(t(), |_: &Due<()>| Ok(()));
    assert_eq!(refused(topic.time_limit(Duration::ZERO)), "time_limit");
}
