//! Executors that reject tasks, panic, or take their time.

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use futures::FutureExt;
use timer_durable::{Due, DurableTimer, Retry, Topic};
use timer_executor::{ExecuteError, Task, TaskExecutor};

use crate::scripted::ScriptedStore;
use crate::t;

const LONG: Duration = Duration::from_secs(60);

/// An executor whose first calls reject the task or panic.
struct FailingExecutor(Mutex<Vec<Failure>>);

#[derive(Clone, Copy)]
enum Failure {
    Rejects,
    Panics,
}

impl FailingExecutor {
    fn new(failures: &[Failure]) -> Self {
        Self(Mutex::new(failures.iter().rev().copied().collect()))
    }
}

impl TaskExecutor for FailingExecutor {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        let failure = self.0.lock().unwrap().pop();
        match failure {
            Some(Failure::Rejects) => Err(ExecuteError(task)),
            Some(Failure::Panics) => panic!("no executor"),
            None => {
                task.run();
                Ok(())
            }
        }
    }
}

fn topic() -> Topic<()> {
    Topic::new("t").attempts(3).backoff(Duration::ZERO, Duration::ZERO)
}

#[test]
fn a_task_that_a_panic_of_the_executor_loses_fails_its_attempt() {
    // The second list is a panic at a task that is offered again.
    for failures in [&[Failure::Panics][..], &[Failure::Rejects, Failure::Panics]] {
        let (sender, ran) = channel();
        let timer = DurableTimer::builder()
            .executor(FailingExecutor::new(failures))
            .topic(topic(), move |due: &Due<()>| sender.send(due.attempt()).map_err(Retry::new))
            .open(ScriptedStore::new())
            .wait()
            .unwrap();
        timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
        assert_eq!(ran.recv_timeout(LONG).unwrap(), 2, "D11: the first attempt has failed");
        timer.new_timeout(t(), LONG, &()).wait().unwrap();
        assert_eq!(timer.stats().retried, 1);
        let report = timer.stop(LONG).wait().unwrap();
        assert_eq!((report.unfinished, report.released), (0, true));
    }
}

#[test]
fn a_rejected_task_does_not_wait_for_a_handler_that_runs_long() {
    let (spawned, futures) = channel();
    // The first task gets a new thread. The second one is rejected when it is handed over,
    // and at the end of that turn.
    let timer = DurableTimer::builder()
        .executor(FailingExecutor::new(&[Failure::Rejects; 4]))
        .spawn(move |future| spawned.send(future).unwrap())
        .topic_async(t(), |_: Due<()>| async { Ok(()) })
        .open(ScriptedStore::new())
        .wait()
        .unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    let first = futures.recv_timeout(LONG).unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    let second = futures.recv_timeout(LONG / 6).expect("the executor is free again");
    drop((first, second));
}

/// An executor that tells the test of each task and blocks the keeper until the test has answered.
struct BlockingExecutor {
    entered: Sender<Sender<()>>,
}

impl TaskExecutor for BlockingExecutor {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        let (release, released) = channel();
        self.entered.send(release).unwrap();
        let _ended = released.recv();
        task.run();
        Ok(())
    }
}

#[test]
fn callers_do_not_wait_for_the_executor() {
    let (entered, entries) = channel();
    let store = ScriptedStore::new();
    let builder = DurableTimer::builder().executor(BlockingExecutor { entered });
    let timer = builder.topic(t(), |_: &Due<()>| Ok(())).open(store.clone()).wait().unwrap();
    timer.new_timeout(t(), Duration::from_secs(1), &()).wait().unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    let release = entries.recv_timeout(LONG).unwrap();
    // The keeper is busy, so this call is in one batch with the attempt that begins.
    store.memory.advance_clock(Duration::from_secs(1));
    let call = timer.new_timeout(t(), LONG, &());
    drop(release);
    let release = entries.recv_timeout(LONG).unwrap();
    call.now_or_never().expect("the call was committed before the handler starts").unwrap();
    drop(release);
}
