//! A process whose CPU quota is used up by other threads. It needs Linux, and the right to make a
//! control group.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{MILLI, SECOND, accepted, wait_until};
use timer_core::{LateCause, Timer};

/// Set for the process in the group.
const INSIDE: &str = "TIMER_TEST_INSIDE_QUOTA";

/// A control group with a fifth of one CPU, before all other processes.
struct Group(PathBuf);

impl Group {
    /// Returns `None` if this process may not make a group, or if groups cannot divide the CPUs.
    fn new() -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let name = format!("timer-test-{}", std::process::id());
        let first = Self(root.join("cpu").join(&name));
        if fs::create_dir(&first.0).is_ok() {
            return first.limit([("cpu.cfs_quota_us", "20000"), ("cpu.shares", "100000")]);
        }
        fs::write(root.join("cgroup.subtree_control"), "+cpu").ok()?;
        let second = Self(root.join(&name));
        fs::create_dir(&second.0).ok()?;
        second.limit([("cpu.max", "20000 100000"), ("cpu.weight", "10000")])
    }

    fn limit(self, settings: [(&str, &str); 2]) -> Option<Self> {
        settings.iter().all(|(file, value)| fs::write(self.0.join(file), value).is_ok()).then_some(self)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn the_throttled_time_of_a_process_is_the_quotas() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let Some(group) = Group::new() else { return eprintln!("skipped, because no control group can be made") };
    let mut shell = Command::new("sh");
    shell.args(["-c", "echo 0 > $0/cgroup.procs && exec \"$@\""]).arg(&group.0).arg(std::env::current_exe().unwrap());
    let status = shell
        .args(["--exact", "--nocapture", "the_throttled_time_of_a_process_is_the_quotas"])
        .env(INSIDE, "")
        .status();
    assert!(status.unwrap().success());
}

fn inside() {
    let timer = Timer::new();
    timer.start().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let burn = |stop: Arc<AtomicBool>| move || while !stop.load(Ordering::Relaxed) {};
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(burn(stop.clone()))).collect();
    let part = |cause| timer.stats().lateness.part(cause);
    wait_until(|| {
        accepted(timer.new_timeout(MILLI, |_| {}));
        part(LateCause::Quota) > 2 * SECOND
    });
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(part(LateCause::Quota) > 4 * part(LateCause::System), "{:?}", timer.stats().lateness);
}
