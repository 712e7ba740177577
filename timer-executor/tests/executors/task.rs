//! A task ends once. It runs, or it is dropped and its waker notices the drop.

use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use timer_executor::Task;

use crate::support::Recorder;

/// A waker that records its calls.
#[derive(Default)]
struct Bell(Mutex<Vec<&'static str>>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap().push("by value");
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.lock().unwrap().push("by reference");
    }
}

#[test]
fn a_task_runs_or_is_abandoned_once() {
    for panics in [false, true] {
        for (end, call) in [(Task::run as fn(Task), "run"), (drop, "abandoned")] {
            let recorder = Arc::new(Recorder { panics, ..Recorder::default() });
            end(recorder.task());
            assert_eq!((recorder.calls(), Arc::strong_count(&recorder)), (vec![call], 1));
        }
    }
}

#[test]
fn one_waker_makes_many_tasks() {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let [first, second, third] = [(); 3].map(|()| Task::from_waker(waker.clone()));
    drop(waker);
    first.run();
    drop(second);
    third.run();
    assert_eq!(*bell.0.lock().unwrap(), ["by value", "by value"]);
    assert_eq!(Arc::strong_count(&bell), 1);
}

#[test]
fn a_task_is_small_and_prints_its_kind() {
    assert!(size_of::<Task>() <= 24);
    assert_eq!(size_of::<Option<Task>>(), size_of::<Task>());
    assert_eq!(format!("{:?}", Task::new(|| ())), "Task(boxed)");
    assert_eq!(format!("{:?}", Task::from_waker(Waker::noop().clone())), "Task(waker)");
}
