//! Opening a timer while the system refuses a thread. The process has no room for another stack in
//! the meantime, so this test is a separate binary. It needs Linux.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;
use timer_durable::{Due, DurableTimer, Error, MemoryStore, Topic};
use timer_executor::{ImmediateExecutor, ThreadPoolExecutor};

/// Runs `work` while the process has no room for another thread's stack.
fn run_without_room<R>(work: impl FnOnce() -> R) -> R {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let size: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    let before = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some((size + 512) << 10), maximum: before.maximum }).unwrap();
    let result = work();
    setrlimit(Resource::As, before).unwrap();
    result
}

#[test]
fn a_timer_whose_thread_is_refused_does_not_open() {
    let builder = || DurableTimer::builder().topic(Topic::new("t"), |_: &Due<()>| Ok(()));
    // The hook prints a backtrace, for which the process has no room.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (pool, plain, inline) = run_without_room(|| {
        let inline = builder().executor(ImmediateExecutor);
        (
            ThreadPoolExecutor::try_new(2),
            builder().open(MemoryStore::new()).wait(),
            inline.open(MemoryStore::new()).wait(),
        )
    });
    std::panic::set_hook(hook);
    let error = pool.unwrap_err();
    assert!(error.to_string().contains("Resource temporarily unavailable"), "{error}");
    assert!(matches!(plain, Err(Error::ThreadRefused(_))), "the pool: {plain:?}");
    assert!(matches!(inline, Err(Error::ThreadRefused(_))), "the keeper: {inline:?}");
    let timer = builder().open(MemoryStore::new()).wait().unwrap();
    assert!(timer.stop(Duration::from_secs(60)).wait().unwrap().released);
}
