//! Models of threads that wait, for the end of a run (`cancel_and_wait`) or for all tasks in flight
//! (`stop_and_wait`). All waits are without a limit, so a lost notification is a deadlock.

use super::executor::{Queued, queued};
use super::{engine, heartbeat, new, set_time, turn};
use crate::counters::InFlight;
use crate::sync::{Arc, UnsafeCell};
use loom::thread;

/// When `cancel_and_wait` returns, the run has ended and the captures of the task are dropped.
fn cancel_and_wait() {
    let engine = engine();
    let (timeout, outcome) = new(&engine, 5);
    outcome.yield_in_runs();
    set_time(&engine, 5);
    let waiter = {
        thread::spawn(move || {
            let won = timeout.cancel_and_wait().is_ok_and(|won| won);
            assert_eq!((outcome.ran(), outcome.dropped()), (usize::from(!won), 1), "it has not ended");
            won
        })
    };
    let ran = turn(&mut engine.dispatcher());
    assert_eq!(ran + usize::from(waiter.join().unwrap()), 1);
}

model!(check, cancel_and_wait,
    the_end_of_a_run_is_not_notified ["deadlock"] Skip "engine/run.rs" "event_of(timeout.address()).notify_all()",
    waiting_for_a_run_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// The run of a cancelled periodic task drops the task.
fn cancel_and_wait_and_a_periodic_run() {
    let engine = engine();
    let (timeout, outcome) = heartbeat(&engine);
    set_time(&engine, 5);
    let waiter = {
        thread::spawn(move || {
            assert!(timeout.cancel_and_wait().is_ok_and(|won| won));
            assert_eq!(outcome.dropped(), 1, "it has not ended");
        })
    };
    let _ = turn(&mut engine.dispatcher());
    waiter.join().unwrap();
}

model!(check, cancel_and_wait_and_a_periodic_run,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// Two threads wait for the end of one run on a thread of an executor. The run is one step here, so
/// the model finds lost notifications, and [`cancel_and_wait`] finds a wait that ends too early.
fn two_wait_for_one_run() {
    let Queued { timeout, outcome, task, .. } = queued(|engine| new(engine, 5));
    let waiter = || {
        let timeout = timeout.clone();
        thread::spawn(move || {
            let won = timeout.cancel_and_wait().is_ok_and(|won| won);
            (won, outcome.ran(), outcome.dropped())
        })
    };
    let waiters = [waiter(), waiter()];
    task.run();
    let seen = waiters.map(|waiter| waiter.join().unwrap());
    let won = seen.iter().filter(|(won, ..)| *won).count();
    assert_eq!((outcome.ran() + won, outcome.dropped()), (1, 1));
    assert!(won == 1 || seen == [(false, 1, 1); 2], "the run has not ended");
}

model!(check, two_wait_for_one_run,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);

/// Two tasks are in flight. The thread that has waited for them sees their writes.
#[allow(clippy::arc_with_non_send_sync, reason = "the checker looks after the cells")]
fn wait_for_none() {
    let flight = Arc::new((InFlight::default(), [UnsafeCell::new(0), UnsafeCell::new(0)]));
    flight.0.queue(2);
    let runners = [0, 1].map(|index| {
        let flight = flight.clone();
        thread::spawn(move || {
            flight.0.start();
            flight.1[index].with_mut(|_| ());
            flight.0.finish();
        })
    });
    flight.0.wait_for_none(None);
    flight.1.iter().for_each(|cell| cell.with_mut(|_| ()));
    assert_eq!(flight.0.get(), (0, 0));
    runners.into_iter().for_each(|runner| runner.join().unwrap());
}

model!(check_at 3, wait_for_none,
    an_empty_executor_is_not_notified ["deadlock"] Skip "counters/in_flight.rs" "self.none.notify_all()",
    an_end_without_release ["Causality violation"] Relaxed "counters/in_flight.rs" "self.word.fetch_sub(one",
    waiting_by_load_and_store ["deadlock"] Split "counters/in_flight.rs" "self.word.fetch_or(HAS_WAITER",
);

/// A task is cancelled in the queue while another thread waits.
fn none_in_flight_and_a_cancel_in_the_queue() {
    let Queued { engine, timeout, outcome, task, .. } = queued(|engine| new(engine, 5));
    let canceller = thread::spawn(move || timeout.cancel());
    let runner = thread::spawn(move || task.run());
    engine.context.counters.in_flight.wait_for_none(None);
    runner.join().unwrap();
    let cancelled = usize::from(canceller.join().unwrap());
    assert_eq!((outcome.ran() + cancelled, outcome.dropped()), (1, 1));
}

model!(check, none_in_flight_and_a_cancel_in_the_queue,
    a_state_changes_in_two_steps Split "entry/state.rs" "match self.0.compare_exchange_weak",
);
