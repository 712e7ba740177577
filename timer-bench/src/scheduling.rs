//! The scheduling of this thread: its CPUs, its niceness and its CPU time.
//!
//! Except for [`thread_cpu`], the functions work on Linux only. Elsewhere the list of CPUs is
//! empty, and nothing can be set.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Returns the CPU time of this thread so far, user and system. This is a system call of a tenth of
/// a microsecond or more.
#[inline]
pub fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Returns the CPUs on which this thread may run.
#[cfg(target_os = "linux")]
pub fn cpus() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Restricts this thread, and the threads that it starts from now on, to these CPUs. Returns
/// `false` if the system refuses.
#[cfg(target_os = "linux")]
pub fn pin(cpus: &[usize]) -> bool {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    sched_setaffinity(None, &set).is_ok()
}

/// Gives this thread alone the lowest priority. Returns `false` if the system refuses.
#[cfg(target_os = "linux")]
pub fn lower_priority() -> bool {
    const NICEST: i32 = 19;
    let this = rustix::thread::gettid();
    rustix::process::setpriority_process(Some(this), NICEST).is_ok()
}

/// Returns an empty list, because the CPUs are not known here.
#[cfg(not(target_os = "linux"))]
pub fn cpus() -> Vec<usize> {
    Vec::new()
}

/// Returns `false`, because this system has no such call.
#[cfg(not(target_os = "linux"))]
pub fn pin(_: &[usize]) -> bool {
    false
}

/// Returns `false`, because this system has no such call.
#[cfg(not(target_os = "linux"))]
pub fn lower_priority() -> bool {
    false
}

/// Confines this thread, and the threads that it starts, to `count` of its CPUs.
///
/// # Errors
///
/// Fails if the thread has fewer CPUs, or if the system refuses.
pub fn confine(count: usize) -> Result<(), String> {
    let all = cpus();
    if all.len() < count {
        return Err(format!("{count} CPUs are needed, but only {} can be chosen", all.len()));
    }
    if all.len() > count && !pin(&all[..count]) {
        return Err(format!("the system refuses to confine the thread to {count} CPUs"));
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{confine, cpus, lower_priority, pin, thread_cpu};
    use std::hint::black_box;
    use std::thread;

    #[test]
    fn a_confinement_extends_to_started_threads() {
        // The confinement lasts as long as the thread, so the test needs a thread of its own.
        thread::spawn(|| {
            let all = cpus();
            assert!(confine(all.len() + 1).unwrap_err().contains("are needed"));
            confine(1).unwrap();
            assert_eq!(thread::spawn(cpus).join().unwrap(), all[..1]);
            assert!(pin(&all) && cpus() == all);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_cpu_time_belongs_to_this_thread() {
        let other = thread::spawn(|| {
            assert!(lower_priority());
            let before = thread_cpu();
            let sum: u64 = (0..1_000_000_u64).map(black_box).sum();
            assert!(sum > 0);
            thread_cpu() - before
        });
        let other = other.join().unwrap();
        let begin = thread_cpu();
        assert!(!other.is_zero() && thread_cpu() >= begin);
    }
}
