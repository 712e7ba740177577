//! The settings that the worker's thread inherits and passes on, and a system that refuses a
//! thread. The tests need Linux to read these settings.

use crate::support::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{current_timer_slack, gettid};
use std::cell::RefCell;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use timer_core::{RejectReason, Timer};

/// SIGHUP, SIGINT, SIGUSR1, SIGTERM, SIGCHLD.
const HANDLED: [u32; 5] = [1, 2, 10, 15, 17];
/// SIGILL, SIGABRT, SIGFPE, SIGSEGV, which a thread raises by its own fault.
const FAULTS: [u32; 4] = [4, 6, 8, 11];

/// Returns the value of a line of a status file in `/proc`.
fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("no such line");
    line.trim_start_matches(':').trim()
}

/// Returns `true` if the status file lists the signal as blocked.
fn blocks(status: &str, signal: u32) -> bool {
    u64::from_str_radix(field(status, "SigBlk"), 16).unwrap() >> (signal - 1) & 1 == 1
}

fn own_status() -> String {
    std::fs::read_to_string("/proc/thread-self/status").unwrap()
}

/// Runs `task` on the worker and returns its result.
fn run_on_worker<T: Send + 'static>(timer: &Timer, task: impl FnOnce() -> T + Send + 'static) -> T {
    let (report, reports) = channel();
    accepted(timer.new_timeout(MILLI, move |_| report.send(task()).unwrap()));
    next(&reports)
}

// A signal handler on the worker would delay the timeouts.
#[test]
fn signals_are_handled_on_other_threads() {
    let before = own_status();
    let timer = Timer::new();
    let status = run_on_worker(&timer, own_status);
    assert!(HANDLED.into_iter().all(|signal| blocks(&status, signal)), "{status}");
    assert!(!FAULTS.into_iter().any(|signal| blocks(&status, signal)), "{status}");
    assert_eq!(field(&own_status(), "SigBlk"), field(&before, "SigBlk"), "the caller's mask is restored");
}

// Threads and processes that a task starts must not inherit the worker's slack of 1 ns, which would
// wake the machine for each of their waits.
#[test]
fn threads_of_a_task_have_the_callers_timer_slack() {
    let usual = current_timer_slack().unwrap();
    assert_ne!(usual, 1, "the test needs a caller with slack");
    let timer = Timer::new();
    // The worker must have waited once before.
    run_on_worker(&timer, || {});
    let (own, thread, process) = run_on_worker(&timer, || {
        let thread = std::thread::spawn(|| current_timer_slack().unwrap()).join().unwrap();
        let process = Command::new("cat").arg("/proc/self/timerslack_ns").output().unwrap().stdout;
        (current_timer_slack().unwrap(), thread, String::from_utf8(process).unwrap())
    });
    assert_eq!((own, thread, process.trim()), (usual, usual, usual.to_string().as_str()));
}

#[test]
fn the_worker_waits_without_slack() {
    let timer = Timer::new();
    let id = run_on_worker(&timer, || gettid().as_raw_nonzero());
    accepted(timer.new_timeout(HOUR, |_| {}));
    // Reading the slack of another thread needs a permission.
    let Ok(_) = std::fs::read_to_string(format!("/proc/{id}/timerslack_ns")) else { return };
    let begun = Instant::now();
    while std::fs::read_to_string(format!("/proc/{id}/timerslack_ns")).unwrap().trim() != "1" {
        assert!(begun.elapsed() < MAX_WAIT, "the worker waits with slack");
        watch_for(MILLI);
    }
}

/// Tries to start a worker without room for its stack, and then with room. The test below runs this
/// as a separate program.
#[test]
#[ignore = "a part of a_refused_thread_is_reported_and_tried_again"]
fn child_without_room_for_threads() {
    let status = own_status();
    let size: u64 = field(&status, "VmSize").trim_end_matches(" kB").parse().unwrap();
    let before = getrlimit(Resource::As);
    let timer = Timer::new();
    setrlimit(Resource::As, Rlimit { current: Some((size + 512) << 10), maximum: before.maximum }).unwrap();
    let captured = std::sync::Arc::new(());
    let inner = captured.clone();
    let rejected = timer.new_timeout(Duration::ZERO, move |_| drop(inner)).err().map(|rejected| {
        let reason = rejected.reason;
        drop(rejected.into_inner());
        reason
    });
    let started = timer.start();
    let stats = timer.stats();
    setrlimit(Resource::As, before).unwrap();
    assert_eq!(rejected, Some(RejectReason::ThreadRefused));
    assert_eq!((started, std::sync::Arc::strong_count(&captured)), (Err(RejectReason::ThreadRefused), 1));
    assert_eq!((stats.rejected, stats.scheduled, stats.pending), (1, 0, 0));
    run_on_worker(&timer, || {});
    assert_eq!(timer.stop().unwrap().len(), 0);
}

#[test]
fn a_refused_thread_is_reported_and_tried_again() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "worker_thread::child_without_room_for_threads", "--ignored", "--test-threads=1"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

/// A thread-local value that reports the exit of its thread after a while.
struct AtExit(Arc<AtomicBool>);

impl Drop for AtExit {
    fn drop(&mut self) {
        watch_for(20 * MILLI);
        self.0.store(true, SeqCst);
    }
}

// Leak checkers, and libraries that are unloaded, require that no thread is left.
#[test]
fn the_thread_has_exited_when_a_stop_returns() {
    thread_local! {
        static AT_EXIT: RefCell<Option<AtExit>> = const { RefCell::new(None) };
    }
    let ends: [fn(&Timer); 3] = [
        |timer| drop(timer.stop().unwrap()),
        |timer| drop(timer.stop_and_wait(MAX_WAIT).unwrap()),
        |timer| drop(timer.drain(MAX_WAIT).unwrap()),
    ];
    for end in ends {
        let timer = Timer::builder().name("leaves").build().unwrap();
        let exited = Arc::new(AtomicBool::new(false));
        let at_exit = AtExit(exited.clone());
        run_on_worker(&timer, move || AT_EXIT.set(Some(at_exit)));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    end(&timer);
                    assert!(exited.load(SeqCst), "the thread is still there");
                });
            }
        });
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        let mut names = threads.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        assert!(names.all(|name| name != "leaves\n"));
    }
}
