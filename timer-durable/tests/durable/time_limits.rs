//! Time limits of topics.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use timer_durable::{Due, DurableTimer, Error, MemoryStore, Topic};

use crate::t;

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

fn schedule<P: timer_durable::Payload>(timer: &DurableTimer, topic: Topic<P>, payload: &P) {
    timer.new_timeout(topic, Duration::ZERO, payload).wait().unwrap();
}

/// Tells when it is dropped.
struct Dropped(Sender<u32>, u32);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _sent = self.0.send(self.1);
    }
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
    let letters = timer.dead_letters(None, None, 9).wait().unwrap();
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
