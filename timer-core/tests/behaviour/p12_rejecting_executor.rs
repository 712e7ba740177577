//! Promise 12. A rejecting executor loses no task. The worker runs the task instead, and it is
//! counted.

use crate::support::executors::{Action, Scripted};
use crate::support::*;
use std::sync::mpsc::{Receiver, channel};
use std::thread::current;
use std::time::Duration;
use timer_core::Timer;
use tracing::Level;

/// Returns timers whose executor repeats the actions, not inline and inline.
fn timers(name: &str, actions: &'static [Action]) -> [Timer; 2] {
    [false, true].map(|inline| Timer::builder().name(name).executor(Scripted::new(actions, inline)).build().unwrap())
}

// Guards against ogema/ogema#54, in which the executor rejected a task and the task vanished.
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
    assert!(event.message.contains("rejected") && event.message.contains("this thread runs it"), "{event:?}");
    accepted(timer.new_timeout(Duration::ZERO, |_| {}));
    let event = next(&complaints);
    assert_eq!(event.level, Level::ERROR);
    assert!(event.message.contains("executor panicked"), "{event:?}");
}
