//! The provided `execute_batch`, rejections, and executors behind an `Arc`, a `Box` or a closure.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use timer_executor::{ExecuteError, ImmediateExecutor, Task, TaskExecutor};

use crate::support::{Recorder, numbered, run_here};

/// An executor that treats the n-th task as `plan` says, and runs all tasks after the plan's end.
struct Planned {
    plan: &'static [Step],
    next: AtomicUsize,
}

#[derive(Clone, Copy)]
enum Step {
    Run,
    Reject,
    Panic,
}

impl Planned {
    fn new(plan: &'static [Step]) -> Self {
        Self { plan, next: AtomicUsize::new(0) }
    }
}

impl TaskExecutor for Planned {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        // ORDERING: Relaxed, a plain count on one thread.
        match self.plan.get(self.next.fetch_add(1, Ordering::Relaxed)).copied() {
            Some(Step::Reject) => return Err(ExecuteError(task)),
            Some(Step::Panic) => panic!("the executor panics"),
            Some(Step::Run) | None => task.run(),
        }
        Ok(())
    }
}

#[test]
fn rejected_tasks_keep_their_order() {
    use Step::{Reject, Run};
    let (mut tasks, ran) = numbered(7);
    Planned::new(&[Reject, Run, Run, Reject, Reject, Run, Reject]).execute_batch(&mut tasks);
    assert_eq!(ran.try_iter().collect::<Vec<_>>(), [1, 2, 5]);
    assert_eq!(run_here(tasks, &ran), [0, 3, 4, 6]);
}

#[test]
fn a_panic_in_a_batch_loses_one_task() {
    use Step::{Panic, Reject, Run};
    let (mut tasks, ran) = numbered(6);
    let lost = Arc::new(Recorder::default());
    tasks[3] = lost.task();
    let executor = Planned::new(&[Run, Reject, Run, Panic]);
    assert!(catch_unwind(AssertUnwindSafe(|| executor.execute_batch(&mut tasks))).is_err());

    assert_eq!(lost.calls(), ["abandoned"]);
    assert_eq!(ran.try_iter().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(tasks.len(), 3, "no stand-in is left: {tasks:?}");
    assert_eq!(run_here(tasks, &ran), [1, 4, 5]);
}

/// An executor that rejects all tasks and records the methods that were called.
#[derive(Default)]
struct Refusing(Mutex<Vec<&'static str>>);

impl TaskExecutor for Refusing {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        self.0.lock().unwrap().push("execute");
        Err(ExecuteError(task))
    }

    fn execute_batch(&self, _: &mut Vec<Task>) {
        self.0.lock().unwrap().push("execute_batch");
    }

    fn runs_inline(&self) -> bool {
        self.0.lock().unwrap().push("runs_inline");
        true
    }
}

fn delegates_every_method(executor: impl TaskExecutor, refusing: &Refusing) {
    let (mut tasks, _ran) = numbered(2);
    executor.execute_batch(&mut tasks);
    assert_eq!(tasks.len(), 2);
    assert!(executor.runs_inline());
    assert!(executor.execute(tasks.remove(0)).is_err());
    assert_eq!(*refusing.0.lock().unwrap(), ["execute_batch", "runs_inline", "execute"]);
}

#[test]
fn a_box_delegates_every_method() {
    let refusing = Arc::new(Refusing::default());
    let executor: Box<dyn TaskExecutor> = Box::new(refusing.clone());
    delegates_every_method(executor, &refusing);
}

#[test]
fn inline_executors_report_it() {
    assert!(ImmediateExecutor.runs_inline());
    assert!((|task: Task| task.run()).runs_inline());
    assert!(Arc::new(ImmediateExecutor).runs_inline());
    assert!(!Planned::new(&[]).runs_inline());
    for (name, pool) in crate::support::pools(1) {
        assert!(!pool.runs_inline(), "{name}");
    }
}

#[test]
fn a_rejection_converts_to_a_boxed_error() {
    let rejected: Box<dyn std::error::Error> = Box::new(ExecuteError(Task::new(|| ())));
    assert!(rejected.to_string().contains("did not take the task"));
    assert_eq!(format!("{rejected:?}"), "ExecuteError(Task(boxed))");
}
