//! Models of the spare tasks of an executor. A task that finds no timeout meets the hand-over of
//! one and the cancel of another one.

use super::executor::Keeper;
use super::{assert_sound, new, turn_at};
use loom::thread;
use timer_executor::Task;

/// The executor runs two spare tasks while the worker hands a timeout over, for which one of them
/// is enough.
fn a_spare_task_and_a_hand_over() {
    let (engine, keeper) = Keeper::timer();
    let cancelled = [(); 2].map(|()| new(&engine, 5).0);
    assert_eq!(turn_at(&mut engine.dispatcher(), 5), 2);
    assert!(cancelled.iter().all(crate::Timeout::cancel));
    let tasks = [(); 2].map(|()| keeper.take().expect("handed over"));
    let (_, outcome) = new(&engine, 6);
    let runner = thread::spawn(move || tasks.map(Task::run));
    assert_eq!(turn_at(&mut engine.dispatcher(), 6), 1);
    runner.join().unwrap();
    std::iter::from_fn(|| keeper.take()).for_each(Task::run);
    assert_eq!((outcome.ran(), outcome.dropped(), engine.stats().queued), (1, 1, 0), "no task is left for it");
    assert!(engine.context.backlog.has_no_spare(), "out of balance");
    assert_sound(&engine);
}

model!(check, a_spare_task_and_a_hand_over,
    a_spare_task_ends_in_two_steps ["out of balance"] Split "backlog.rs" "self.spare.fetch_sub(1",
    the_worker_reads_the_spare_tasks_in_two_steps ["out of balance"] Split "backlog.rs" "let before = self.spare.fetch_update",
);

/// The task of a timeout that is cancelled meets the cancel. The next timeout gets a task.
fn a_cancelled_timeout_and_the_next_one() {
    let (engine, keeper) = Keeper::timer();
    let (timeout, _) = new(&engine, 5);
    assert_eq!(turn_at(&mut engine.dispatcher(), 5), 1);
    let task = keeper.take().expect("handed over");
    let (_, outcome) = new(&engine, 6);
    let canceller = thread::spawn(move || timeout.cancel());
    let runner = thread::spawn(move || task.run());
    assert_eq!(turn_at(&mut engine.dispatcher(), 6), 1);
    let _ = canceller.join().unwrap();
    runner.join().unwrap();
    std::iter::from_fn(|| keeper.take()).for_each(Task::run);
    assert_eq!((outcome.ran(), outcome.dropped(), engine.stats().queued), (1, 1, 0), "no task is left for it");
    assert!(engine.context.backlog.has_no_spare(), "out of balance");
    assert_sound(&engine);
}

model!(check_heavy, a_cancelled_timeout_and_the_next_one,
    a_cancelled_timeout_leaves_in_two_steps ["out of balance"] Split "backlog.rs" "fn leave .. self.spare.fetch_add(1",
);
