//! What the scheduler does with this thread: on which CPUs it may run, how nice it is, and the CPU time it had.
//!
//! On Linux only; elsewhere there is one list of CPUs, empty, and nothing can be chosen.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// CPU time of this thread so far, user and system. A system call: a tenth of a microsecond or more.
#[inline]
pub fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// The CPUs on which this thread may run.
#[cfg(target_os = "linux")]
pub fn cpus() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Lets this thread, and those that it starts from now on, run on these CPUs only; `false` if the system refuses.
#[cfg(target_os = "linux")]
pub fn pin(cpus: &[usize]) -> bool {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    sched_setaffinity(None, &set).is_ok()
}

/// Makes this thread, and no other, as nice as can be; `false` if the system refuses.
#[cfg(target_os = "linux")]
pub fn yield_to_all_others() -> bool {
    const NICEST: i32 = 19;
    let this = rustix::thread::gettid();
    rustix::process::setpriority_process(Some(this), NICEST).is_ok()
}

/// The CPUs on which this thread may run: not known here.
#[cfg(not(target_os = "linux"))]
pub fn cpus() -> Vec<usize> {
    Vec::new()
}

/// Cannot be done here.
#[cfg(not(target_os = "linux"))]
pub fn pin(_: &[usize]) -> bool {
    false
}

/// Cannot be done here.
#[cfg(not(target_os = "linux"))]
pub fn yield_to_all_others() -> bool {
    false
}

/// Confines this thread, and those that it starts, to `count` of its CPUs; all of them if it has no more.
///
/// # Errors
///
/// If it has fewer, or the system refuses.
pub fn confine(count: usize) -> Result<(), String> {
    let all = cpus();
    if all.len() < count {
        return Err(format!("needs {count} CPUs, and {} can be chosen", all.len()));
    }
    if all.len() > count && !pin(&all[..count]) {
        return Err(format!("the system refuses to confine it to {count} CPUs"));
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{confine, cpus, pin, thread_cpu, yield_to_all_others};
    use std::hint::black_box;
    use std::thread;

    #[test]
    fn a_thread_is_confined_and_what_it_starts_is_too() {
        // On a thread of its own: the choice lasts as long as the thread.
        thread::spawn(|| {
            let all = cpus();
            assert!(confine(all.len() + 1).unwrap_err().contains("needs"));
            confine(1).unwrap();
            assert_eq!(thread::spawn(cpus).join().unwrap(), all[..1]);
            assert!(pin(&all) && cpus() == all);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_cpu_time_is_that_of_this_thread() {
        let other = thread::spawn(|| {
            assert!(yield_to_all_others());
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
