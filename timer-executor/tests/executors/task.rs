//! A task ends once. It runs, or it is dropped and its waker notices the drop.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use timer_executor::Task;

use crate::support::Recorder;

/// A waker that records its calls, and panics if `panics` is set.
#[derive(Default)]
struct Bell {
    wakes: Mutex<Vec<&'static str>>,
    panics: bool,
}

impl Bell {
    fn ring(&self, how: &'static str) {
        self.wakes.lock().unwrap().push(how);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring("by value");
        assert!(!self.panics, "as asked");
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring("by reference");
    }
}

#[test]
fn a_run_wakes_the_waker_once_by_value() {
    let bell = Arc::new(Bell::default());
    Task::from_waker(Waker::from(bell.clone())).run();
    assert_eq!(*bell.wakes.lock().unwrap(), ["by value"]);
    assert_eq!(Arc::strong_count(&bell), 1);
}

#[test]
fn a_dropped_task_wakes_nothing() {
    let bell = Arc::new(Bell::default());
    let task = Task::from_waker(Waker::from(bell.clone()));
    assert_eq!(Arc::strong_count(&bell), 2);
    drop(task);
    assert_eq!(*bell.wakes.lock().unwrap(), [""; 0]);
    assert_eq!(Arc::strong_count(&bell), 1);
}

#[test]
fn a_wake_that_panics_drops_its_waker() {
    let bell = Arc::new(Bell { panics: true, ..Bell::default() });
    Task::from_waker(Waker::from(bell.clone())).run();
    assert_eq!(*bell.wakes.lock().unwrap(), ["by value"]);
    assert_eq!(Arc::strong_count(&bell), 1);
}

#[test]
fn a_task_that_ran_is_never_abandoned() {
    for panics in [false, true] {
        let recorder = Arc::new(Recorder { panics, ..Recorder::default() });
        recorder.task().run();
        assert_eq!(recorder.calls(), ["run"]);
        assert_eq!(Arc::strong_count(&recorder), 1);
    }
}

#[test]
fn a_dropped_task_is_abandoned_once() {
    for panics in [false, true] {
        let recorder = Arc::new(Recorder { panics, ..Recorder::default() });
        drop(recorder.task());
        assert_eq!(recorder.calls(), ["abandoned"]);
        assert_eq!(Arc::strong_count(&recorder), 1);
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
    assert_eq!(*bell.wakes.lock().unwrap(), ["by value", "by value"]);
    assert_eq!(Arc::strong_count(&bell), 1);
}

#[test]
fn an_ended_task_has_freed_its_captures() {
    for run in [true, false] {
        let captured = Arc::new(());
        let inside = captured.clone();
        let task = Task::new(move || drop(inside));
        if run {
            task.run()
        } else {
            drop(task)
        }
        assert_eq!(Arc::strong_count(&captured), 1, "run: {run}");
    }
}

#[test]
fn a_task_moves_to_another_thread() {
    let (sender, receiver) = channel();
    let task = Task::new(move || sender.send(()).unwrap());
    std::thread::spawn(move || task.run()).join().unwrap();
    receiver.recv().unwrap();
}

#[test]
fn a_task_is_small_and_prints_its_kind() {
    assert!(size_of::<Task>() <= 24);
    assert_eq!(size_of::<Option<Task>>(), size_of::<Task>());
    assert_eq!(format!("{:?}", Task::new(|| ())), "Task(boxed)");
    assert_eq!(format!("{:?}", Task::from_waker(Waker::noop().clone())), "Task(waker)");
}
