//! The machine and the software of a run.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::thread::{self, available_parallelism};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The crates whose versions matter to readers of the tables.
const CRATES: &[&str] = &[
    "async-io",
    "futures-timer",
    "hierarchical_hash_wheel_timer",
    "mimalloc",
    "parking_lot",
    "pingora-timeout",
    "timer-core",
    "tokio",
    "tokio-util",
];

/// The machine, its software and the date.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The name of the processor.
    pub cpu: String,
    /// The number of hardware threads.
    pub cores: usize,
    /// The memory in GiB.
    pub memory_gib: u64,
    /// The name and version of the system.
    pub kernel: String,
    /// The version of the compiler.
    pub rustc: String,
    /// The commit of this workspace, if it is a git repository.
    pub commit: String,
    /// The versions of the measured crates.
    pub versions: BTreeMap<String, String>,
    /// The beginning of the run, such as `2025-01-31 12:00 UTC`.
    pub date: String,
    /// The number of busy CPUs in the second before the run. The load average of a minute would
    /// include the compilation. Above 0.3 the tables warn that the figures cannot be trusted.
    #[serde(default)]
    pub busy: f64,
}

impl Machine {
    /// Describes this machine. Facts that cannot be determined are empty.
    pub fn of_this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let memory =
            field(&read("/proc/meminfo"), "MemTotal").and_then(|kib| kib.split(' ').next()?.parse::<u64>().ok());
        let kernel = read("/proc/sys/kernel/osrelease");
        let versions = versions(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock")));
        let cores = available_parallelism().map_or(0, usize::from);
        let before = read("/proc/stat");
        thread::sleep(Duration::from_secs(1));
        let busy = busy_between(&before, &read("/proc/stat")).unwrap_or_default();
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self {
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            cores,
            memory_gib: memory.unwrap_or_default() >> 20,
            kernel: format!("{} {}", std::env::consts::OS, kernel.trim()),
            rustc: said("rustc", &["--version"]),
            commit: said("git", &["describe", "--always", "--dirty"]),
            versions: versions.filter(|(name, _)| CRATES.contains(&name.as_str())).collect(),
            date: date(seconds),
            busy: (100.0 * busy * cores as f64).round() / 100.0,
        }
    }
}

/// Returns the share of all CPU time that was busy between two readings of `/proc/stat`, including
/// the time taken by other machines.
fn busy_between(before: &str, after: &str) -> Option<f64> {
    // The columns are user, nice, system, idle, iowait, irq, softirq and steal. The first includes
    // the time of guests.
    let times = |text: &str| -> Option<Vec<u64>> {
        let cpu = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        cpu.split_whitespace().take(8).map(|ticks| ticks.parse().ok()).collect()
    };
    let (before, after) = (times(before)?, times(after)?);
    let passed: Vec<u64> = after.iter().zip(before).map(|(after, before)| after.saturating_sub(before)).collect();
    let (all, idle): (u64, u64) = (passed.iter().sum(), passed.iter().skip(3).take(2).sum());
    (all > 0).then(|| (all - idle) as f64 / all as f64)
}

/// Returns the text after `name :` in one of the lines.
fn field(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(field, value)| (field.trim(), value.trim()))
        .find(|(field, _)| *field == name)
        .map(|found| found.1.into())
}

/// Returns the name and version of each package in a lock file.
fn versions(lock: &str) -> impl Iterator<Item = (String, String)> {
    lock.split("[[package]]").skip(1).filter_map(|package| {
        let value = |key: &str| package.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_prefix('='));
        let value = |key| value(key).map(|value: &str| value.trim().trim_matches('"').to_owned());
        Some((value("name")?, value("version")?))
    })
}

/// Returns the first line of a program's output, or an empty text.
fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// Formats seconds since 1970 as date and minute, by the inverse of Hinnant's `days_from_civil`.
fn date(seconds: u64) -> String {
    let (days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    // Days since 1 March 0000. An era has 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::{Machine, busy_between, date, field, versions};

    #[test]
    fn dates_are_those_of_the_calendar() {
        let known = [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_868_799, "2000-02-29 23:59 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ];
        for (seconds, expected) in known {
            assert_eq!(date(seconds), expected);
        }
    }

    #[test]
    fn versions_are_read_from_a_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.2\"\n\n[[package]]\nname = \"b\"\nversion = \"3\"\n";
        let pairs = [("a", "1.2"), ("b", "3")].map(|(name, version)| (name.to_owned(), version.to_owned()));
        assert_eq!(versions(lock).collect::<Vec<_>>(), pairs);
    }

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::of_this();
        assert!(machine.cores > 0 && machine.date.starts_with("20"));
        assert_eq!(machine.versions["timer-core"], env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn time_neither_idle_nor_waiting_is_busy() {
        let before = "cpu  10 0 10 100 50 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        let after = "cpu  40 10 20 160 80 5 5 10 30 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(busy_between(before, after), Some(0.4375));
        assert_eq!(busy_between(before, before), None);
        assert_eq!(busy_between("", ""), None);
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "model\t\t: 1\nmodel name\t: Some CPU @ 2: fast\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Some CPU @ 2: fast"));
    }
}
