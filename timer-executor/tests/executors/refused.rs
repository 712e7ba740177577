//! A pool whose threads the system refuses.

use std::process::Command;
use std::thread;
use timer_executor::ThreadPoolExecutor;

const MARK: &str = "TIMER_EXECUTOR_CHILD";

/// Runs again in a child process whose threads need more stack than there are addresses. With one
/// test thread, a test runs on the main thread.
#[test]
fn a_pool_whose_threads_are_refused_is_an_error() {
    if std::env::var_os(MARK).is_some() {
        thread::Builder::new().spawn(|| {}).unwrap_err();
        let error = ThreadPoolExecutor::try_new(2).unwrap_err();
        return assert!(error.to_string().contains("Os { code: "), "the error of the system: {error}");
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "refused::a_pool_whose_threads_are_refused_is_an_error", "--test-threads=1"]);
    // A quarter of the addresses, or more of those of 32 bits.
    let stack = (usize::MAX >> 2).max(0xE000_0000);
    let output = child.env(MARK, "1").env("RUST_MIN_STACK", stack.to_string()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
