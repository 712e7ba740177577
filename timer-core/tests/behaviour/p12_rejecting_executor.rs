//! Promise 12. A rejecting executor loses no task. The worker runs the task instead, and it is
//! counted.

use crate::support::executors::{Action, Scripted};
use crate::support::*;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::current;
use std::time::Duration;
use timer_core::Timer;
use timer_executor::{Task, ThreadPoolExecutor};
use tracing::Level;

/// Returns timers whose executor repeats the actions, not inline and inline.
fn timers(name: &str, actions: &'static [Action]) -> [Timer; 2] {
    [false, true].map(|inline| Timer::builder().name(name).executor(Scripted::new(actions, inline)).build().unwrap())
}

// Guards against B42, in which the executor rejected a task and the task vanished.
#[test]
fn rejected_and_lost_tasks_run_on_the_worker() {
    for (name, actions) in [
        ("refused", &[Action::Reject] as &'static [Action]),
        ("lost", &[Action::Drop]),
        ("panicked-over", &[Action::Panic]),
    ] {
        for timer in timers(name, actions) {
            let (ran, received) = channel();
            for _ in 0..20 {
                let ran = ran.clone();
                let on = move |_: &_| ran.send(current().name().map(str::to_owned)).unwrap();
                accepted(timer.new_timeout(MILLI, on));
            }
            for _ in 0..20 {
                assert_eq!(next(&received).as_deref(), Some(name), "the task runs on the worker");
            }
            drop(timer.stop().unwrap());
            let stats = timer.stats();
            assert_eq!((stats.executor_rejections, stats.expired, stats.task_panics), (20, 20, 0), "{name}");
        }
    }
}

#[test]
fn a_rejection_and_a_panic_of_the_executor_are_traced() {
    let complaints = log::complaints("traced");
    let [timer, _] = timers("traced", &[Action::Reject, Action::Panic]);
    // On a busy machine a rejected task may seem slow, which causes another warning.
    let next = |complaints: &Receiver<log::Event>| loop {
        let event = next(complaints);
        if !event.message.contains("longer than a tick") {
            return event;
        }
    };
    accepted(timer.new_timeout(Duration::ZERO, |_| {}));
    let event = next(&complaints);
    assert_eq!(event.level, Level::WARN);
    assert!(event.message.contains("rejected") && event.message.contains("runs on the worker"), "{event:?}");
    accepted(timer.new_timeout(Duration::ZERO, |_| {}));
    let event = next(&complaints);
    assert_eq!(event.level, Level::ERROR);
    assert!(event.message.contains("executor panicked"), "{event:?}");
}

#[test]
fn tasks_that_a_full_pool_rejects_run_on_the_worker() {
    let timer = Timer::builder().name("full").executor(ThreadPoolExecutor::bounded(1, 1)).build().unwrap();
    let (release, gate) = channel::<()>();
    let (begun, inside) = channel();
    accepted(timer.new_timeout(Duration::ZERO, move |_| {
        begun.send(()).unwrap();
        let _ = gate.recv();
    }));
    next(&inside);
    let (ran, received) = channel();
    for _ in 0..10 {
        let ran = ran.clone();
        let on = move |_: &_| ran.send(current().name() == Some("full")).unwrap();
        accepted(timer.new_timeout(Duration::ZERO, on));
    }
    // The one thread of the pool is busy and its queue has room for one task. Nine tasks run on the
    // worker, which does not wait.
    assert_eq!((0..9).filter(|_| next(&received)).count(), 9);
    drop(release);
    assert!(!next(&received));
    assert_eq!(timer.stats().executor_rejections, 9);
}

#[test]
fn a_rate_that_is_always_rejected_keeps_running() {
    for actions in
        [&[Action::Reject] as &'static [Action], &[Action::Drop], &[Action::Panic], &[Action::Run, Action::Drop]]
    {
        let (timer, mut driver) = Timer::builder().executor(Scripted::new(actions, false)).build_manual().unwrap();
        let runs = Runs::default();
        let recorded = runs.clone();
        let rate = accepted(timer.schedule_at_fixed_rate(SECOND, SECOND, move |_| recorded.lock().unwrap().push(1)));
        driver.advance(10 * SECOND);
        assert_eq!(take_runs(&runs).len(), 10, "{actions:?}");
        assert!(rate.cancel());
        assert_eq!(timer.pending_timeouts(), 0);
    }
}

#[test]
fn a_task_that_is_dropped_late_runs_on_the_worker() {
    let kept: Arc<Mutex<Vec<Task>>> = Arc::default();
    let executor = {
        let kept = kept.clone();
        move |task: Task| kept.lock().unwrap().push(task)
    };
    let timer = Timer::builder().name("dropped-late").executor(executor).build().unwrap();
    let (ran, received) = channel();
    accepted(timer.new_timeout(Duration::ZERO, move |_| ran.send(current().name().map(str::to_owned)).unwrap()));
    while kept.lock().unwrap().is_empty() {
        watch_for(MILLI);
    }
    let task = kept.lock().unwrap().pop();
    std::thread::spawn(move || drop(task)).join().unwrap();
    assert_eq!(next(&received).as_deref(), Some("dropped-late"));
}
