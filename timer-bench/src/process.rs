//! The resources that this process uses: CPU time, memory and wake-ups. They come from the process
//! clock and from `/proc`.
//!
//! Memory and wake-ups are known on Linux only. Elsewhere they are `None`, and their figures are
//! not available.

use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Returns the CPU time of all threads so far, user and system.
pub(crate) fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Returns the CPU time of the calling thread so far, user and system.
#[cfg(feature = "tokio")]
pub(crate) fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Returns the resident memory in bytes.
pub(crate) fn resident() -> Option<u64> {
    Some(status("/proc/self/status", "VmRSS")? * 1024)
}

/// Returns the peak of resident memory since [`reset_peak`] in bytes.
pub(crate) fn peak() -> Option<u64> {
    Some(status("/proc/self/status", "VmHWM")? * 1024)
}

/// Resets [`peak`]. If the kernel refuses, the peak remains that of the whole process.
pub(crate) fn reset_peak() {
    let _: std::io::Result<()> = fs::write("/proc/self/clear_refs", "5");
}

/// Returns the number of voluntary context switches of all threads but the first, which measures.
pub(crate) fn voluntary_switches() -> Option<u64> {
    let first = std::process::id().to_string();
    let mut switches = 0;
    for task in fs::read_dir("/proc/self/task").ok()? {
        let task = task.ok()?;
        if task.file_name().to_str() != Some(&first) {
            let path = task.path().join("status");
            // A thread that has just ended has no such file.
            switches += status(path.to_str()?, "voluntary_ctxt_switches").unwrap_or(0);
        }
    }
    Some(switches)
}

fn status(path: &str, field: &str) -> Option<u64> {
    number_of(&fs::read_to_string(path).ok()?, field)
}

/// Returns the number in the line `field:  number unit`.
fn number_of(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split(':').next() == Some(field))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Waits until the process is quiescent. Returns the time that took, to about a millisecond, or
/// `None` if the process is still at work after `limit`. The calling thread must have nothing else
/// to do.
pub(crate) fn until_quiet(limit: Duration) -> Option<Duration> {
    const SLICE: Duration = Duration::from_millis(1);
    const REST: Duration = Duration::from_millis(8);
    // The CPU time that one slice costs the thread that looks.
    const LOOKING: Duration = Duration::from_micros(100);

    let begin = Instant::now();
    let mut busy_until = begin;
    let mut before = cpu();
    while begin.elapsed() < limit {
        thread::sleep(SLICE);
        let after = cpu();
        let now = Instant::now();
        if after - before > LOOKING {
            busy_until = now;
        } else if now - busy_until >= REST {
            return Some(busy_until - begin);
        }
        before = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{cpu, number_of};
    use std::hint::black_box;

    #[test]
    fn work_uses_cpu_time() {
        let before = cpu();
        let sum: u64 = (0..1_000_000_u64).map(black_box).sum();
        assert!(cpu() > before && sum > 0);
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "Name:\tworkload\nVmRSSAnon:\t 1 kB\nVmRSS:\t  5120 kB\nvoluntary_ctxt_switches:\t7\n";
        assert_eq!(number_of(text, "VmRSS"), Some(5120));
        assert_eq!(number_of(text, "voluntary_ctxt_switches"), Some(7));
        assert_eq!(number_of(text, "switches"), None);
        assert_eq!(number_of(text, "Name"), None);
    }
}
