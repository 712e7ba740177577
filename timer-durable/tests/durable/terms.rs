//! Handlers that wait for a thread of the executor when their timer stops or loses its lease.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use timer_durable::{Due, DurableTimer, DurableTimerBuilder, Retry, StoreError, Topic};
use timer_executor::{ExecuteError, Task, TaskExecutor};

use crate::scripted::ScriptedStore;
use crate::stops::stop_now;
use crate::t;

const LONG: Duration = Duration::from_secs(60);

/// A pool without a free thread. The test runs the tasks.
struct Queue(Sender<Task>);

impl TaskExecutor for Queue {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        self.0.send(task).map_err(|unsent| ExecuteError(unsent.0))
    }
}

/// Returns a builder with a handler that sends the number of its attempt, the tasks of the
/// executor, and the numbers. `attempts` is the limit of attempts.
fn queued(attempts: u32) -> (DurableTimerBuilder, Receiver<Task>, Receiver<u32>) {
    let (queue, tasks) = channel();
    let (sender, ran) = channel();
    let handler = move |due: &Due<()>| sender.send(due.attempt()).map_err(Retry::new);
    (DurableTimer::builder().executor(Queue(queue)).topic(Topic::new("t").attempts(attempts), handler), tasks, ran)
}

#[test]
fn a_handler_that_has_not_started_does_not_start_after_a_stop() {
    for stops in [true, false] {
        let (builder, tasks, ran) = queued(1);
        let store = ScriptedStore::new();
        let timer = builder.open(store.clone()).wait().unwrap();
        timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
        let task = tasks.recv_timeout(LONG).unwrap();
        if stops {
            assert_eq!(stop_now(&timer).unfinished, 1);
        }
        drop(timer);
        task.run();
        assert!(ran.try_recv().is_err(), "the timer has stopped");
        let (builder, tasks, ran) = queued(1);
        let _timer = builder.open(store).wait().unwrap();
        tasks.recv_timeout(LONG).unwrap().run();
        assert_eq!(ran.recv_timeout(LONG).unwrap(), 2, "D3: the first attempt does not count");
    }
}

#[test]
fn a_handler_does_not_start_after_a_stop_that_gave_up() {
    let (builder, tasks, ran) = queued(1);
    let store = ScriptedStore::new();
    let timer = builder.open(store.clone()).wait().unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    let task = tasks.recv_timeout(LONG).unwrap();
    let (release, released) = channel::<()>();
    let (entered, entries) = channel();
    store.on_write(move |_| {
        entered.send(()).unwrap();
        let _ended = released.recv();
        None
    });
    let call = timer.new_timeout(t(), LONG, &());
    entries.recv_timeout(LONG).unwrap();
    assert!(!timer.stop(Duration::ZERO).wait().unwrap().released);
    task.run();
    drop(release);
    call.wait().unwrap();
    assert!(timer.stop(LONG).wait().unwrap().released);
    assert!(ran.try_recv().is_err(), "the timer has stopped");
}

#[test]
fn a_handler_that_has_started_counts_after_a_stop() {
    let store = ScriptedStore::new();
    let (entered, running) = channel();
    let (release, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let topic = Topic::new("t").attempts(1);
    let handler = move |_: &Due<()>| {
        entered.send(()).map_err(Retry::new)?;
        // Fails when the test lets the handler go.
        let _released = gate.lock().unwrap().recv();
        Ok(())
    };
    let timer = DurableTimer::builder().topic(topic, handler).open(store.clone()).wait().unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    running.recv_timeout(LONG).unwrap();
    assert_eq!(stop_now(&timer).unfinished, 1);
    drop(release);
    let (builder, _tasks, _ran) = queued(1);
    let timer = builder.open(store).wait().unwrap();
    let begun = Instant::now();
    while timer.counts().wait().unwrap().dead == 0 {
        assert!(begun.elapsed() < LONG, "its only attempt is over");
    }
}

#[test]
fn a_failed_attempt_counts_although_a_later_one_has_not_started() {
    let store = ScriptedStore::new();
    let open = || {
        let (queue, tasks) = channel();
        let topic = Topic::new("t").attempts(2).backoff(Duration::ZERO, Duration::ZERO);
        let handler = |_: &Due<()>| -> Result<(), Retry> { Err(Retry::new("not this time")) };
        (
            DurableTimer::builder().executor(Queue(queue)).topic(topic, handler).open(store.clone()).wait().unwrap(),
            tasks,
        )
    };
    let (timer, tasks) = open();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    tasks.recv_timeout(LONG).unwrap().run();
    let _second = tasks.recv_timeout(LONG).unwrap();
    assert_eq!(stop_now(&timer).unfinished, 1);
    let (timer, tasks) = open();
    tasks.recv_timeout(LONG).unwrap().run();
    while timer.counts().wait().unwrap().dead == 0 {
        assert!(tasks.try_recv().is_err(), "D11: both of its attempts have failed");
    }
}

#[test]
fn a_future_that_was_not_polled_does_not_start_after_a_stop() {
    let (spawned, futures) = channel();
    let (sender, ran) = channel();
    let timer = DurableTimer::builder()
        .spawn(move |future| spawned.send(future).unwrap())
        .topic_async(t(), move |due: Due<()>| {
            let sender = sender.clone();
            async move { sender.send(due.attempt()).map_err(Retry::new) }
        })
        .open(ScriptedStore::new())
        .wait()
        .unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    let future = futures.recv_timeout(LONG).unwrap();
    stop_now(&timer);
    futures::executor::block_on(future);
    assert!(ran.try_recv().is_err(), "the timer has stopped");
}

#[test]
fn a_handler_that_waits_when_the_lease_ends_runs_later() {
    let (builder, tasks, ran) = queued(10);
    let store = ScriptedStore::new();
    store.set_lease_end(Some(Instant::now()));
    let timer = builder.open(store.clone()).wait().unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    tasks.recv_timeout(LONG).unwrap().run();
    let second = tasks.recv_timeout(LONG).unwrap();
    assert!(ran.try_recv().is_err(), "the lease is over");
    // A renewal begins a new lease.
    store.set_lease_end(Some(Instant::now() + LONG));
    store.set_next_upkeep(Instant::now());
    timer.new_timeout(t(), LONG, &()).wait().unwrap();
    timer.counts().wait().unwrap();
    second.run();
    assert_eq!(ran.recv_timeout(LONG).unwrap(), 2);
    store.set_next_upkeep(Instant::now() + LONG);
    assert_eq!(timer.stop(LONG).wait().unwrap().unfinished, 0);
    assert!(ran.try_recv().is_err());
}

#[test]
fn a_handler_that_waits_while_the_keeper_joins_again_is_begun_again() {
    for fails_at_a_write in [true, false] {
        let (builder, tasks, ran) = queued(10);
        let store = ScriptedStore::new();
        let timer = builder.topic(Topic::new("other"), |_: &Due<()>| Ok(())).open(store.clone()).wait().unwrap();
        timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
        let first = tasks.recv_timeout(LONG).unwrap();
        if fails_at_a_write {
            let mut fails = true;
            store.on_write(move |_| std::mem::take(&mut fails).then(|| StoreError::InDoubt("lost".to_owned())));
            timer.new_timeout(Topic::new("other"), LONG, &()).wait().unwrap_err();
        } else {
            store.lose_connection();
        }
        while timer.new_timeout(Topic::new("other"), LONG, &()).wait().is_err() {}
        first.run();
        tasks.recv_timeout(LONG).unwrap().run();
        assert_eq!(ran.recv_timeout(LONG).unwrap(), 2, "the first attempt has not started");
        assert!(timer.stop(LONG).wait().unwrap().released);
        assert!(ran.try_recv().is_err());
    }
}
