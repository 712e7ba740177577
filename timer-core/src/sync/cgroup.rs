//! The time for which a CPU quota has stopped this process, as its control group counts it.
//!
//! A group with a quota may use its CPUs for a part of each period, which lasts 100 ms by default.
//! After that its threads are stopped until the period ends. The kernel adds up the time for which
//! they are stopped, on each CPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The control group of this process that divides the CPUs.
#[derive(Clone, Debug)]
pub(crate) struct Cgroup {
    statistics: PathBuf,
}

impl Cgroup {
    /// Returns the group of this process, or `None` if the system has no control groups.
    pub(crate) fn of_this_process() -> Option<Self> {
        static OWN: OnceLock<Option<Cgroup>> = OnceLock::new();
        // Neither Miri nor a model has the files of a system.
        let may_read = cfg!(all(target_os = "linux", not(miri), not(timer_loom)));
        OWN.get_or_init(|| Self::find(Path::new("/")).filter(|_| may_read)).clone()
    }

    /// Finds the group by the files of the system, which are below `root`.
    pub(crate) fn find(root: &Path) -> Option<Self> {
        let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
        let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
        let has_cpu = |names: &str| names.split(',').any(|name| name == "cpu");
        // Each line is `NUMBER:CONTROLLERS:PATH`. The second version has no list of controllers.
        let group = |is_wanted: &dyn Fn(&str) -> bool| {
            let mut lines = groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
            lines.find(|(controllers, _)| is_wanted(controllers)).map(|(_, path)| path)
        };
        let first = group(&has_cpu);
        let path = first.or_else(|| group(&str::is_empty))?;
        mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let [kind, _, options] = words(kind)?;
            let is_wanted = if first.is_some() { kind == "cgroup" && has_cpu(options) } else { kind == "cgroup2" };
            let [_, _, _, mounted, folder] = words(place).filter(|_| is_wanted)?;
            // A container sees its own group at the root of the mount.
            let below = Path::new(path).strip_prefix(mounted).unwrap_or(Path::new(""));
            let folder = root.join(folder.trim_start_matches('/')).join(below);
            Some(Self { statistics: folder.join("cpu.stat") })
        })
    }

    /// Returns the time, in nanoseconds, for which the CPUs were denied to the group since it was
    /// made. Returns `None` if it has never had a quota.
    pub(crate) fn throttled(&self) -> Option<u64> {
        let text = fs::read_to_string(&self.statistics).ok()?;
        text.lines().find_map(|line| match line.split_once(' ')? {
            ("throttled_usec", micros) => micros.parse::<u64>().ok()?.checked_mul(1_000),
            ("throttled_time", nanos) => nanos.parse().ok(),
            _ => None,
        })
    }
}

/// Returns the first words of a line.
fn words<const N: usize>(line: &str) -> Option<[&str; N]> {
    line.split(' ').take(N).collect::<Vec<_>>().try_into().ok()
}

#[cfg(all(test, not(timer_loom)))]
#[allow(clippy::unwrap_used, reason = "tests, and the files of other tests")]
pub(crate) mod tests;
