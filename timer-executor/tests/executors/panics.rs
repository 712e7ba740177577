//! A panic of user code does not leave the executor.

use std::panic::{panic_any, resume_unwind};
use std::sync::{Arc, Mutex};

use timer_executor::panics::catch;
use timer_executor::{Task, TaskExecutor};
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{Recorder, numbered, pools, sorted_numbers};

/// A payload that panics when it is dropped, with another one as the payload, `self.0` times.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic_any(Bomb(self.0 - 1));
        }
    }
}

#[test]
fn a_caught_panic_has_its_text() {
    let text = |f: fn()| catch(f).unwrap_err().to_string();
    assert_eq!(text(|| panic!("plain")), "plain");
    assert_eq!(text(|| panic!("with number {}", 7)), "with number 7");
    assert_eq!(text(|| resume_unwind(Box::new(String::from("no hook")))), "no hook");
    assert_eq!(text(|| panic_any(7_u8)), "a panic that is not text");
    assert_eq!(catch(|| "fine").unwrap(), "fine");
}

#[test]
fn a_payload_that_panics_in_drop_is_contained() {
    for depth in [1, 2, 3] {
        let message = catch(|| panic_any(Bomb(depth))).unwrap_err();
        assert_eq!(message.to_string(), "a panic that is not text");
        Task::new(move || panic_any(Bomb(depth))).run();
    }
}

#[test]
fn a_capture_that_panics_in_drop_is_contained() {
    for run in [true, false] {
        let bomb = Bomb(2);
        let task = Task::new(move || drop(bomb));
        if run { task.run() } else { drop(task) }
    }
}

#[test]
fn panicking_tasks_harm_no_other_tasks() {
    for (name, executor) in pools(2) {
        for round in 0..50 {
            let (mut tasks, ran) = numbered(20);
            for at in [0, 7, 7, 19, 23] {
                tasks.insert(at, Task::new(|| panic!("in the middle of a batch")));
            }
            tasks.insert(3, Task::new(|| panic_any(Bomb(1))));
            executor.execute_batch(&mut tasks);
            assert!(tasks.is_empty(), "{name}");
            executor.execute(Task::new(|| panic!("on its own"))).unwrap();
            assert!(sorted_numbers(ran).into_iter().eq(0..20), "{name}, round {round}");
        }
    }
}

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

// Beside a subscriber of a single thread, an event that another thread emits first would be
// disabled for all threads. The messages show which events are those of this test.
#[test]
fn a_panic_is_reported_as_a_tracing_error() {
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(|| LOG.make_writer()).finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    tracing::callsite::rebuild_interest_cache();
    Task::new(|| panic!("first boxed")).run();
    let recorder = Arc::new(Recorder { panics: true, ..Recorder::default() });
    recorder.task().run();
    drop(recorder.task());
    let text = String::from_utf8(LOG.lock().unwrap().clone()).unwrap();
    for (event, panic) in [
        ("a task panicked", "panic=first boxed"),
        ("a task panicked", "panic=run panics"),
        ("a task that was never run panicked", "panic=abandoned panics"),
    ] {
        let is_it = |line: &str| line.contains("ERROR") && line.contains(event) && line.contains(panic);
        assert!(text.lines().any(is_it), "{event}, {panic}: {text}");
    }
}
