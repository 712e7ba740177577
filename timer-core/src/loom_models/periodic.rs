//! A periodic task: cancelled during its run, and armed again against `stop`.

use super::{Fate, Witness, check, engine, turn};
use crate::engine::Engine;
use crate::job::{Pace, Periodic};
use crate::state::{State, Word};
use crate::sync::{Arc, HELD, Held};
use crate::time::Stamp;
use crate::timeout::Timeout;
use crate::turn::Turner;
use loom::thread;
use std::sync::atomic::Ordering;

fn heartbeat(engine: &Arc<Engine>) -> (Timeout, std::sync::Arc<Fate>) {
    let fate = std::sync::Arc::new(Fate::default());
    let witness = Witness(fate.clone());
    let task = move |_: &Timeout| {
        witness.0.ran.fetch_add(1, Ordering::Relaxed);
    };
    let scheduled = engine.schedule(Periodic { task, pace: Pace::Rate(10) }, |_, _| Stamp::up(5));
    (scheduled.unwrap_or_else(|_| panic!("refused")), fate)
}

/// Before, during or after the run: the cancel wins, the task never runs again and is dropped once.
#[test]
fn loom_periodic_cancel_and_run() {
    check(|| {
        let engine = engine(None);
        let (timeout, fate) = heartbeat(&engine);
        let mut turner = Turner::new(engine.clone());
        let canceller = thread::spawn(move || timeout.cancel());
        turn(&mut turner, 5);
        assert!(canceller.join().unwrap(), "a periodic timeout is there to be cancelled at any moment");
        let ran = fate.ran();
        assert!(ran <= 1);
        assert_eq!(turn(&mut turner, 100), 0);
        assert_eq!((fate.ran(), fate.dropped()), (ran, 1));
        assert_eq!((engine.pending(), engine.stats().cancelled), (0, 1));
    });
}

/// The run ends just when the timer is stopped: handed back or cancelled, never both, and not lost.
#[test]
fn loom_periodic_armed_again_and_stop() {
    check(|| {
        let engine = engine(None);
        let (timeout, fate) = heartbeat(&engine);
        let mut turner = Turner::new(engine.clone());
        let worker = thread::spawn(move || turn(&mut turner, 5));
        let handed_back = engine.stop();
        assert!(handed_back.len() <= 1);
        drop(handed_back);
        let _ = worker.join().unwrap();
        let was_cancelled = timeout.is_cancelled();
        drop(engine);
        assert!(was_cancelled || timeout.is_cancelled());
        assert_eq!(fate.dropped(), 1);
    });
}

/// A run that stores the waiting state when it ends, instead of changing it only if nobody has cancelled meanwhile.
#[test]
#[should_panic(expected = "the cancel is lost")]
fn loom_periodic_negative_a_blind_store_loses_the_cancel() {
    check(|| {
        let waiting = Word::new(State::Repeating, Stamp::up(15)).to_bits();
        let running = Word::new(State::Running, Stamp::up(5)).to_bits();
        let state = loom::sync::Arc::new(Held::new(running, ()));
        let held = state.try_hold(Some).unwrap();
        let canceller = {
            let state = state.clone();
            thread::spawn(move || {
                let cancel = |word| Word::from_bits(word).cancel().map(|(_, next)| next.to_bits());
                state.word().update(cancel).is_ok()
            })
        };
        held.release(|_| Some(waiting & !HELD)).unwrap();
        let cancelled = canceller.join().unwrap();
        let now = Word::from_bits(state.word().load()).state();
        assert!(!cancelled || now == State::Cancelled, "the cancel is lost");
    });
}
