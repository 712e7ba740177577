//! A panic of user code does not leave the executor.

use std::cell::RefCell;
use std::io;
use std::panic::{panic_any, resume_unwind};
use std::sync::{Arc, Mutex, Once};

use timer_executor::panics::catch;
use timer_executor::{Task, TaskExecutor};

use crate::support::{NEVER, Recorder, numbered, pools, sorted_numbers};

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
fn a_panic_in_drop_while_unwinding_is_contained() {
    let recorder = Arc::new(Recorder { panics: true, ..Recorder::default() });
    drop(recorder.task());
    let task = recorder.task();
    let message = catch(move || {
        let _dropped_by_the_unwinding = task;
        panic!("the outer one");
    });
    assert_eq!(message.unwrap_err().to_string(), "the outer one");
    assert_eq!(recorder.calls(), ["abandoned", "abandoned"]);
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

#[test]
fn panics_leave_all_threads_alive() {
    for (name, executor) in pools(2) {
        let mut tasks = (0..50).map(|_| Task::new(|| panic!("one of many"))).collect();
        executor.execute_batch(&mut tasks);
        // Two tasks that wait for each other need both threads.
        let (left, right) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        let (done, finished) = std::sync::mpsc::channel();
        let other = done.clone();
        let one = Task::new(move || {
            left.0.send(()).unwrap();
            right.1.recv_timeout(NEVER).unwrap();
            done.send(()).unwrap();
        });
        let two = Task::new(move || {
            right.0.send(()).unwrap();
            left.1.recv_timeout(NEVER).unwrap();
            other.send(()).unwrap();
        });
        executor.execute_batch(&mut vec![one, two]);
        assert_eq!(finished.iter().count(), 2, "{name}");
    }
}

/// The destination of one thread's events.
#[derive(Clone, Default)]
enum Log {
    #[default]
    Nowhere,
    Kept(Arc<Mutex<Vec<u8>>>),
    Broken,
}

thread_local! {
    static LOG: RefCell<Log> = const { RefCell::new(Log::Nowhere) };
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Log::Nowhere => {}
            Log::Kept(log) => log.lock().unwrap().extend_from_slice(bytes),
            Log::Broken => panic!("a broken log"),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `f` while the events of this thread go to `log`.
///
/// The process has one subscriber. Beside a subscriber of a single thread, an event that another
/// thread emits first would be disabled for all threads.
fn logging(log: Log, f: impl FnOnce()) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let writer = || LOG.with_borrow(Log::clone);
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(writer).finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
        tracing::callsite::rebuild_interest_cache();
    });
    LOG.set(log);
    f();
    LOG.set(Log::Nowhere);
}

#[test]
fn a_panic_is_reported_as_a_tracing_error() {
    let log = Arc::new(Mutex::new(Vec::new()));
    logging(Log::Kept(log.clone()), || {
        Task::new(|| panic!("first boxed")).run();
        let recorder = Arc::new(Recorder { panics: true, ..Recorder::default() });
        recorder.task().run();
        drop(recorder.task());
    });
    let text = String::from_utf8(log.lock().unwrap().clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    let expected = [
        ("a task panicked", "panic=first boxed"),
        ("a task panicked", "panic=run panics"),
        ("a task that was never run panicked", "panic=abandoned panics"),
    ];
    for (line, (event, panic)) in lines.iter().zip(expected) {
        assert!(line.contains("ERROR") && line.contains(event) && line.contains(panic), "{line}");
    }
}

#[test]
fn a_panic_of_the_subscriber_is_contained() {
    logging(Log::Broken, || Task::new(|| panic!("unheard")).run());
}
