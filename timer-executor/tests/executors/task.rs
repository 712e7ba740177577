//! A task ends once: run, or dropped and then told so.

use std::sync::Arc;
use std::sync::mpsc::channel;

use timer_executor::Task;

use crate::support::Witness;

#[test]
fn shared_work_that_ran_is_never_abandoned() {
    let witness = Arc::new(Witness::default());
    Task::from_shared(witness.clone()).run();
    assert_eq!(witness.calls(), ["run"]);
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn shared_work_that_panicked_is_not_abandoned() {
    let witness = Arc::new(Witness { panics: true, ..Witness::default() });
    Task::from_shared(witness.clone()).run();
    assert_eq!(witness.calls.lock().unwrap_or_else(|e| e.into_inner())[..], ["run"]);
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn shared_work_that_is_dropped_is_abandoned_once() {
    let witness = Arc::new(Witness::default());
    drop(Task::from_shared(witness.clone()));
    assert_eq!(witness.calls(), ["abandoned"]);
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn one_piece_of_shared_work_may_be_many_tasks() {
    let witness = Arc::new(Witness::default());
    let [first, second] = [(); 2].map(|()| Task::from_shared(witness.clone()));
    first.run();
    drop(second);
    assert_eq!(witness.calls(), ["run", "abandoned"]);
}

#[test]
fn a_boxed_task_frees_its_captures_when_run_and_when_dropped() {
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
fn a_task_is_small_and_says_what_it_is() {
    assert!(size_of::<Task>() <= 24);
    assert_eq!(size_of::<Option<Task>>(), size_of::<Task>());
    assert_eq!(format!("{:?}", Task::new(|| ())), "Task(boxed)");
    assert_eq!(format!("{:?}", Task::from_shared(Arc::new(Witness::default()))), "Task(shared)");
}
